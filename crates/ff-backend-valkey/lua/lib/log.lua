-- The event log of a partition: one stream entry for each call, its id the number of its first
-- event. Each event is preceded by its length in 3 bytes.

-- Numbers for `count` events of a partition: the first of them.
local function take_numbers(prefix, partition, count)
  return redis.call('HINCRBY', prefix .. ':part:{fp:' .. partition .. '}', 'n', count) - count + 1
end

local function append_events(prefix, partition, first, events)
  redis.call('XADD', prefix .. ':ev:{fp:' .. partition .. '}', string.format('%.0f-0', first), 'e', events)
end

local function framed(event)
  return struct.pack('>I3', #event) .. event
end

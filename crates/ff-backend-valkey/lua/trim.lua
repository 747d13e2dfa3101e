-- ff_trim: removes the oldest events of one home's log. Numbers go on from the stream's own count.
-- Keys: the home's event stream. Arguments: call version; prefix; events from
-- before this instant go; of the rest the newest so many bytes stay; most entries of one call.
-- Reply: events removed, 1 when more is to be removed.
-- Errors: FFCALLVERSION. Events: none.

-- Number of events in an entry and the time of the last.
local function extent(events)
  local count, place, time = 0, 1, 0
  while place <= #events do
    local length = struct.unpack('>I3', string.sub(events, place, place + 2))
    time = struct.unpack('>I6', string.sub(events, place + 20, place + 25))
    count, place = count + 1, place + 3 + length
  end
  return count, time
end

local function trim(keys, args)
  local before, bytes, most = tonumber(args[3]), tonumber(args[4]), tonumber(args[5])
  local stream = keys[1]
  local length = redis.call('XLEN', stream)
  if length == 0 then
    return { 0, 0 }
  end
  local size = redis.call('MEMORY', 'USAGE', stream, 'SAMPLES', 5) / length
  local over = length - math.floor(bytes / size)
  local removed, last = 0, nil
  local entries = redis.call('XRANGE', stream, '-', '+', 'COUNT', most)
  for i = 1, #entries do
    local count, time = extent(entries[i][2][2])
    if i > over and time >= before then
      break
    end
    removed, last = removed + count, i
  end
  if not last then
    return { 0, 0 }
  end
  redis.call('XTRIM', stream, 'MINID', entry_id(entry_number(entries[last][1]) + 1))
  return { removed, last == #entries and last < length and 1 or 0 }
end

serve('ff_trim', { 'allow-oom' }, trim)

-- ff_trim: removes the oldest events of one home's log. Numbers go on from the stream's own count.
-- Keys: the home's event stream. Arguments: call version; prefix; events from
-- before this instant go; of the rest the newest so many bytes stay; most entries of one call.
-- Reply: events removed, 1 when more may be to remove.
-- Errors: FFCALLVERSION. Events: none.

-- Events after which a call ends: each costs a step, and everything else waits meanwhile.
local TRIMMED_MOST = 2000

-- Number of events in an entry and the time of the last. Lengths alone lead there.
local function extent(events)
  local count, place, last = 0, 1, 1
  while place <= #events do
    last = place
    place = place + 3 + struct.unpack('>I3', events, place)
    count = count + 1
  end
  return count, struct.unpack('>I6', events, last + 20)
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
  local removed, entries, last, more = 0, 0, nil, 0
  -- One by one: mostly the first stays, and nothing else is read.
  while entries < length do
    if entries == most or removed >= TRIMMED_MOST then
      more = 1
      break
    end
    local entry = redis.call('XRANGE', stream, last and '(' .. last or '-', '+', 'COUNT', 1)[1]
    local count, time = extent(entry[2][2])
    if entries >= over and time >= before then
      break
    end
    removed, entries, last = removed + count, entries + 1, entry[1]
  end
  if last then
    redis.call('XTRIM', stream, 'MINID', entry_id(entry_number(last) + 1))
  end
  return { removed, more }
end

serve('ff_trim', { 'allow-oom' }, trim)

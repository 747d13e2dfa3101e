-- ff_history: the events of one execution, newest first, by the chain that links them.
-- Keys: the partition's event stream. Arguments: call version; number of the newest event wanted;
-- seq at which to stop (events with it or a lower one are left out); most events.
-- Reply: for each event its number and bytes. It ends early where retention has removed one.
-- Errors: FFCALLVERSION. Events: none.

-- The event with this number, if it is kept.
local function event_at(stream, number)
  local id = entry_id(entry_of(number))
  local entry = redis.call('XRANGE', stream, id, id)[1]
  if not entry then
    return nil
  end
  local events, starts, place = entry[2][2], {}, 1
  while place <= #events do
    starts[#starts + 1] = place
    place = place + 3 + struct.unpack('>I3', string.sub(events, place, place + 2))
  end
  -- The last event of an entry has a multiple of NUMBERS.
  local start = starts[#starts - (entry_of(number) * NUMBERS - number)]
  if not start then
    return nil
  end
  local length = struct.unpack('>I3', string.sub(events, start, start + 2))
  return string.sub(events, start + 3, start + 2 + length)
end

local function history(keys, args)
  local stream, number, stop, most = keys[1], tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
  local reply = {}
  while number > 0 and #reply < 2 * most do
    local event = event_at(stream, number)
    if not event then
      break
    end
    -- Kind, uuid, time, then seq and the number of the event before.
    local seq, previous = struct.unpack('>I4I6', string.sub(event, 24, 33))
    if previous == THE_ONE_BEFORE then
      previous = number - 1
    end
    if seq <= stop then
      break
    end
    append(reply, number, event)
    number = previous
  end
  return reply
end

serve('ff_history', { 'no-writes' }, history)

-- ff_events: the logs of some homes of one node, each after a number.
-- Keys: one of the node, for routing. Arguments: call version; prefix; most entries of a home,
-- 0 to learn only where the logs end; then home and number, in turn.
-- Reply: for each home that has something to tell: its tag, the newest event number if only that was
-- asked for, else 1 when the log goes on behind the entries that follow; these with the number of
-- their last event and their bytes.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

-- The number of the newest event, kept or not.
local function newest(stream)
  if redis.call('EXISTS', stream) == 0 then
    return 0
  end
  local about = redis.call('XINFO', 'STREAM', stream)
  for i = 1, #about, 2 do
    if about[i] == 'last-generated-id' then
      return entry_number(about[i + 1]) * NUMBERS
    end
  end
end

local function events(keys, args)
  local prefix, most = args[2], tonumber(args[3])
  local reply = {}
  for h = 4, #args, 2 do
    local stream, after = log_key(prefix, args[h]), tonumber(args[h + 1])
    local answer, tells = { args[h] }, false
    if most == 0 then
      answer[2] = newest(stream)
      tells = answer[2] > 0
    else
      -- The entry that holds the next number may hold this one too.
      local entries = redis.call('XRANGE', stream, entry_id(entry_of(after + 1)), '+', 'COUNT', most + 1)
      answer[2] = #entries > most and 1 or 0
      tells = #entries > 0
      for i = 1, math.min(#entries, most) do
        append(answer, entry_number(entries[i][1]) * NUMBERS, entries[i][2][2])
      end
    end
    if tells then
      append(reply, answer)
    end
  end
  return reply
end

serve('ff_events', { 'no-writes', 'allow-cross-slot-keys' }, events)

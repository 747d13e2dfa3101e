-- ff_events: the log of some partitions of one node, each after a number.
-- Keys: one of the node, for routing. Arguments: call version; prefix; most entries of a partition;
-- then partition and number, in turn.
-- Reply: for each partition its number, the newest event number, and the entries: number of the
-- first event, bytes.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

local function events(keys, args)
  local prefix, most = args[2], tonumber(args[3])
  local reply = {}
  for p = 4, #args, 2 do
    local stream = prefix .. ':ev:{fp:' .. args[p] .. '}'
    local newest = redis.call('HGET', prefix .. ':part:{fp:' .. args[p] .. '}', 'n') or '0'
    local answer = { args[p], newest }
    if tonumber(newest) > tonumber(args[p + 1]) then
      -- The entry that holds the number may hold later ones too.
      local first = redis.call('XREVRANGE', stream, args[p + 1], '-', 'COUNT', 1)[1]
      local from = first and first[1] or '-'
      for _, entry in ipairs(redis.call('XRANGE', stream, from, '+', 'COUNT', most + 1)) do
        append(answer, (string.match(entry[1], '^%d+')), entry[2][2])
      end
    end
    reply[#reply + 1] = answer
  end
  return reply
end

serve('ff_events', { 'no-writes', 'allow-cross-slot-keys' }, events)

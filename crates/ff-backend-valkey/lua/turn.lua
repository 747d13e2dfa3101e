-- ff_turn: whose turn it is to do what one engine is enough for. Retention is such a round, so this
-- goes on when memory is short.
-- Keys: the turn. Arguments: call version; prefix; who asks; for how many milliseconds, at least 1.
-- Reply: 1 when it is the caller's turn, which now lasts so long, 0 when it is another's.
-- Errors: FFCALLVERSION. Events: none.

local function turn(keys, args)
  local by, ms = args[3], args[4]
  local holder = redis.call('GET', keys[1])
  if holder and holder ~= by then
    return 0
  end
  redis.call('SET', keys[1], by, 'PX', ms)
  return 1
end

serve('ff_turn', { 'allow-oom' }, turn)

-- The function under `ff bench`'s floor: the writes of one step of lifecycles, and no rules. It is a
-- library of its own, loaded for a run and deleted after it; names are filled in when it is loaded.
-- Keys: one of the partition, for routing. Arguments: stem of the records' keys; sorted set that
-- the items enter; sorted set that they leave; score; number of items. Each item: its id, and the
-- values of ten fields. Reply: the number of items. Errors: none. Events: none.

redis.register_function('@FUNCTION@', function(keys, args)
  local stem, entered, left, score, count = args[1], args[2], args[3], args[4], tonumber(args[5])
  local at = 6
  for _ = 1, count do
    local id = args[at]
    redis.call('HSET', stem .. id, 'a', args[at + 1], 'b', args[at + 2], 'c', args[at + 3],
      'd', args[at + 4], 'e', args[at + 5], 'f', args[at + 6], 'g', args[at + 7],
      'h', args[at + 8], 'i', args[at + 9], 'j', args[at + 10])
    redis.call('ZADD', entered, score, id)
    redis.call('ZREM', left, id)
    at = at + 11
  end
  return count
end)

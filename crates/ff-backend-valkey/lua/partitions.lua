-- ff_partitions: agrees on the partition counts. The first caller sets all of them at once.
-- Keys: the record. Arguments: call version; counts of flows, budgets and quotas.
-- Reply: the three counts that hold. Errors: FFCALLVERSION. Events: none.

local function partitions(keys, args)
  local names = { 'num_flow_partitions', 'num_budget_partitions', 'num_quota_partitions' }
  if redis.call('EXISTS', keys[1]) == 0 then
    redis.call('HSET', keys[1], names[1], args[2], names[2], args[3], names[3], args[4])
  end
  return redis.call('HMGET', keys[1], unpack(names))
end

-- Goes on when memory is short: every process begins with it, and only the first writes anything.
serve('ff_partitions', { 'allow-oom' }, partitions)

-- ff_stage: lays rows ready that a commit moves to their place, since they are too many for one call.
-- Nobody knows of them before; what is not moved goes by itself.
-- Keys: that of the rows. Arguments: call version; prefix; milliseconds until they go; names and
-- values, in turn.
-- Reply: how many rows lie there now. Errors: FFCALLVERSION. Events: none.

local function stage(keys, args)
  redis.call('HSET', keys[1], unpack(args, 4))
  redis.call('PEXPIRE', keys[1], args[3])
  return redis.call('HLEN', keys[1])
end

serve('ff_stage', {}, stage)

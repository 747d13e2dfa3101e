-- ff_homes: how many namespaces have homes.
-- Keys: the register. Arguments: call version; prefix. Reply: how many.
-- Errors: FFCALLVERSION. Events: none. Only reads.

local function homes(keys)
  return redis.call('SCARD', keys[1])
end

serve('ff_homes', { 'no-writes' }, homes)

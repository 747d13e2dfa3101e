-- ff_keyring: replaces the record of the keys that sign waitpoint tokens if nobody else has.
-- Keys: the record. Arguments: call version; the record that was read (empty: absent); the new one.
-- Reply: 1 when it was written, 0 when another had been. Errors: FFCALLVERSION. Events: none.

local function keyring(keys, args)
  if (redis.call('GET', keys[1]) or '') ~= args[2] then
    return 0
  end
  redis.call('SET', keys[1], args[3])
  return 1
end

-- Goes on when memory is short: retention takes retired keys out.
serve('ff_keyring', { 'allow-oom' }, keyring)

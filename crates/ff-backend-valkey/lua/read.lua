-- ff_read: values of keys of one partition and the time, all of one moment.
-- Keys: the keys to read, strings. In a cluster all of one partition.
-- Arguments: call version; prefix; partition.
-- Reply: the store's time, then each value, or nothing where the key is absent.
-- Errors: FFCALLVERSION. Events: none.

local function read(keys, args)
  local reply = { clock(args[2], args[3]) }
  for i, key in ipairs(keys) do
    reply[i + 1] = redis.call('GET', key)
  end
  return reply
end

serve('ff_read', { 'no-writes' }, read)

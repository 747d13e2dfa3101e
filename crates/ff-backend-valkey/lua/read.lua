-- ff_read: values of keys and rows of one partition and the time, all of one moment.
-- Keys: the keys to read: first strings, then hashes. In a cluster all of one partition.
-- Arguments: call version; prefix; partition; number of strings; then for each row the place of its
-- hash among the keys, and its field.
-- Reply: the store's time, then each string, then each row, or nothing where one is absent.
-- Errors: FFCALLVERSION. Events: none.

local function read(keys, args)
  local strings = tonumber(args[4])
  local reply = { clock(args[2], args[3]) }
  for i = 1, strings do
    reply[i + 1] = redis.call('GET', keys[i])
  end
  for at = 5, #args, 2 do
    reply[#reply + 1] = redis.call('HGET', keys[tonumber(args[at])], args[at + 1])
  end
  return reply
end

serve('ff_read', { 'no-writes' }, read)

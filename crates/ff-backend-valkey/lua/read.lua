-- ff_read: values of keys, and parts of hashes, of one home and the time, all of one moment.
-- Keys: the keys to read: first strings, then hashes. In a cluster all of one home.
-- Arguments: call version; prefix; number of strings; then for each part of a hash a letter,
-- the place of the hash among the keys, and a field: R for the value of the field; N for the entry
-- whose name is the highest number, as that number in 4 bytes and its value; A for all fields and
-- values in turn.
-- Reply: the store's time, then each string, then each part, or nothing where one is absent.
-- Errors: FFCALLVERSION. Events: none.

local function newest_of(key)
  local newest
  for _, field in ipairs(redis.call('HKEYS', key)) do
    newest = math.max(newest or 0, tonumber(field))
  end
  return newest and struct.pack('>I4', newest) .. redis.call('HGET', key, string.format('%.0f', newest))
end

local function part_of(letter, key, field)
  if letter == 'R' then
    return redis.call('HGET', key, field)
  elseif letter == 'N' then
    return newest_of(key) or false
  end
  return redis.call('HGETALL', key)
end

local function read(keys, args)
  local strings = tonumber(args[3])
  local reply = { clock(args[2]) }
  for i = 1, strings do
    reply[i + 1] = redis.call('GET', keys[i])
  end
  for at = 4, #args, 3 do
    reply[#reply + 1] = part_of(args[at], keys[tonumber(args[at + 1])], args[at + 2])
  end
  return reply
end

serve('ff_read', { 'no-writes' }, read)

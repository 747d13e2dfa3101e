-- Small tools for lists, and the list of submits that searches walk.
-- A list of submits holds one hour of a partition; a sorted set names the hours that there are.

local function append(list, a, b)
  local n = #list
  list[n + 1] = a
  if b then
    list[n + 2] = b
  end
end

-- Appends so much of another list.
local function append_all(list, args, from, to)
  local n = #list
  for i = from, to do
    n = n + 1
    list[n] = args[i]
  end
end

-- The list under a key of a map, made when it is not there.
local function under(map, key)
  local list = map[key]
  if not list then
    list = {}
    map[key] = list
  end
  return list
end

local function append_submits(bucket, hours, entries)
  if redis.call('RPUSH', bucket, unpack(entries)) == #entries then
    local hour = string.match(bucket, '%d+$')
    redis.call('ZADD', hours, hour, hour)
  end
end

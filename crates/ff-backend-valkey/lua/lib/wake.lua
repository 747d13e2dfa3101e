-- Wake tokens: one for each execution that became eligible, at most 8 in a list; a token is the
-- number of the partition. A waiting process takes one and claims there; without anybody waiting
-- the list stays short.

local TOKENS_MOST = 8

local function push_wakes(key, partition, count)
  local room = TOKENS_MOST - redis.call('LLEN', key)
  if room <= 0 then
    return
  end
  if count == 1 then
    redis.call('LPUSH', key, partition)
    return
  end
  local tokens = {}
  for i = 1, math.min(room, count) do
    tokens[i] = partition
  end
  redis.call('LPUSH', key, unpack(tokens))
end

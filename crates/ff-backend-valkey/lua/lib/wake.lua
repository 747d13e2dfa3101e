-- Wake tokens: one for each execution that became eligible, at most 8 in a list; a token is the
-- number of the partition. A waiting process takes one and claims there; without anybody waiting
-- the list stays short. The one that fills a list names no partition: whoever takes it looks
-- everywhere and lets another do so, because not every execution behind it has a token.

local TOKENS_MOST = 8

-- As in `src/token.rs`.
local ELSEWHERE = 65535

local function push_wakes(key, partition, count)
  local room = TOKENS_MOST - redis.call('LLEN', key)
  if room <= 0 then
    return
  end
  if count == 1 and room > 1 then
    redis.call('LPUSH', key, partition)
    return
  end
  local tokens = {}
  for i = 1, math.min(room, count) do
    tokens[i] = i < room and partition or ELSEWHERE
  end
  redis.call('LPUSH', key, unpack(tokens))
end

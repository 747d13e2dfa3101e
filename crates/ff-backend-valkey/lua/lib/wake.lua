-- Wake tokens: one for each execution that became eligible, at most 8 in a list; a token is the
-- number of the partition. A waiting process takes one and claims there; without anybody waiting
-- the list stays short. The one that fills a list names no partition: whoever takes it looks
-- everywhere and lets another do so, because not every execution behind it has a token. A list goes by
-- itself a while after it was begun: nobody takes the tokens of a queue that nobody waits for, and
-- whoever waits looks first, and then once a second.

local TOKENS_MOST = 8

-- As in `src/token.rs`. Of the server's time whatever clock the rules go by: nothing rests on it.
local LIST_MS = 60000

-- As in `src/token.rs`.
local ELSEWHERE = 65535

local function push_wakes(key, partition, count)
  local there = redis.call('LLEN', key)
  local room = TOKENS_MOST - there
  if room <= 0 then
    return
  end
  local tokens = {}
  for i = 1, math.min(room, count) do
    tokens[i] = i < room and partition or ELSEWHERE
  end
  redis.call('LPUSH', key, unpack(tokens))
  if there == 0 then
    redis.call('PEXPIRE', key, LIST_MS)
  end
end

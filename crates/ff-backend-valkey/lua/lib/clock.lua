-- The store's clock: the time of the node that a function runs on.
-- Replaced by clock_settable.lua in the library that tests load on servers of their own.

-- Unix milliseconds.
local function clock(prefix)
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Lets the server remove a key by itself at an instant.
local function expire_at(key, at)
  redis.call('PEXPIREAT', key, at)
end

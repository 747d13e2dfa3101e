-- A clock that stands until a test moves it: one key for each home, all moved together.
-- Takes the place of clock.lua; never part of the library of a real deployment.

-- Unix milliseconds.
local function clock(prefix, home)
  return tonumber(redis.call('GET', prefix .. ':clock:' .. home))
end

-- The server's own expiry follows another clock, so nothing is left to it. Rules look at the
-- instant stored in the value.
local function expire_at(key, at)
end

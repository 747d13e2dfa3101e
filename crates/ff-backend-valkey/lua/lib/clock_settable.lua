-- A clock that stands until a test moves it, one for each deployment on a node. It is kept by the
-- library and not in a key, so that every home has it, also one that nobody has written to yet.
-- Takes the place of clock.lua; never part of the library of a real deployment.

local clocks = {}

-- Unix milliseconds.
local function clock(prefix)
  if not clocks[prefix] then
    error('the clock of this store was not set')
  end
  return clocks[prefix]
end

-- The server's own expiry follows another clock, so nothing is left to it. Rules look at the
-- instant stored in the value.
local function expire_at(key, at)
end

-- ff_set_clock: moves it. Arguments: prefix; Unix milliseconds. Reply: the new time.
redis.register_function{
  function_name = 'ff_set_clock',
  flags = { 'no-writes' },
  callback = function(keys, args)
    clocks[args[1]] = tonumber(args[2])
    return clocks[args[1]]
  end,
}

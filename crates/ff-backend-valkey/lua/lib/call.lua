-- The call version: the first argument of every function.
-- A library serves its own call version and the one before it, so that two adjacent builds can
-- work on one server during a rolling upgrade. CALL_VERSION and HASH are set when the library is
-- put together.

local CALL_VERSION = @CALL_VERSION@
local HASH = '@HASH@'

-- An error reply when this library does not serve the caller, else nil.
local function not_served(args)
  local version = tonumber(args[1])
  if version == CALL_VERSION or version == CALL_VERSION - 1 then
    return nil
  end
  return redis.error_reply('FFCALLVERSION library serves ' .. CALL_VERSION .. ' and the one before, called with '
    .. tostring(args[1]))
end

-- Registers a function that checks its caller's version first.
local function serve(name, flags, callback)
  redis.register_function{
    function_name = name,
    flags = flags,
    callback = function(keys, args)
      return not_served(args) or callback(keys, args)
    end,
  }
end

-- ff_assure: writes behind everything that the home holds by now, so that a WAIT after it speaks of all
-- of that. Nothing reads what it writes, which goes by itself.
-- Keys: the mark. Arguments: call version; prefix.
-- Reply: nothing. Errors: FFCALLVERSION. Events: none.

local MARK_MS = 1000

local function assure(keys, args)
  redis.call('SET', keys[1], '', 'PX', MARK_MS)
end

serve('ff_assure', { 'allow-oom' }, assure)

-- ff_recount: sets counts right that do not say what the records do.
-- Keys: the counts of lanes, or of the members of a flow. Arguments: call version; prefix; then fields, each
-- with what to add. Adding leaves what others count meanwhile as it is.
-- Reply: nothing. Errors: FFCALLVERSION. Events: none.

local function recount_lanes(keys, args)
  for at = 3, #args, 2 do
    add_to_lane(keys[1], args[at], args[at + 1])
  end
end

serve('ff_recount', { 'allow-oom' }, recount_lanes)

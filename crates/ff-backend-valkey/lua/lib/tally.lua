-- Counts of a flow's members: a hash of numbers by field, one field for each state and one for those
-- that have ever started. The field STOPPED stands there while no member may be claimed.

local STOPPED = '@STOPPED@'

-- Adds to a count of a call, which is written at its end.
local function recount(counts, key, field, delta)
  local fields = under(counts, key)
  fields[field] = (fields[field] or 0) + delta
end

local function write_counts(counts)
  for key, fields in pairs(counts) do
    for field, delta in pairs(fields) do
      if delta ~= 0 then
        redis.call('HINCRBY', key, field, delta)
      end
    end
  end
end

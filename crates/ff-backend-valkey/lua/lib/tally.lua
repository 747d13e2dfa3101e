-- Counts: hashes of numbers by field. Of a flow's members there is one field for each state and one for
-- those that have ever started; the field STOPPED stands there while no member may be claimed,
-- UNDER while the flow stands under limits; they go with the flow. Of a namespace's lanes in a
-- partition there is one field for each state and lane, and none that is 0: lanes come and go.

local STOPPED, UNDER = '@STOPPED@', '@UNDER@'

-- Adds to a count of a call, which is written at its end.
local function recount(counts, key, field, delta)
  local fields = under(counts, key)
  fields[field] = (fields[field] or 0) + delta
end

local function add_to_flow(key, field, delta)
  redis.call('HINCRBY', key, field, delta)
end

local function add_to_lane(key, field, delta)
  if redis.call('HINCRBY', key, field, delta) == 0 then
    redis.call('HDEL', key, field)
  end
end

-- Writes the counts of a call by one of these.
local function write_counts(counts, add)
  for key, fields in pairs(counts) do
    for field, delta in pairs(fields) do
      if delta ~= 0 then
        add(key, field, delta)
      end
    end
  end
end

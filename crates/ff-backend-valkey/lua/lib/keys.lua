-- Key names. Every key begins with the family name and the hash tag of its home; caller text comes
-- behind it and can therefore not change the slot. A home is given as its tag: `{fp:7}`.

-- The home of executions and flows.
local function partition_home(partition)
  return '{fp:' .. partition .. '}'
end

-- Only these have executions, and with them queues and leases.
local function has_executions(home)
  return string.sub(home, 1, 4) == '{fp:'
end

local function index_key(prefix, home)
  return prefix .. ':idx:' .. home
end

local function execution_key(prefix, home, uuid)
  return prefix .. ':exec:' .. home .. ':' .. uuid
end

-- How many members of a flow are in which state.
local function tally_key(prefix, home, uuid)
  return prefix .. ':flow:' .. home .. ':' .. uuid .. ':tally'
end

-- `queue` is `<namespace>/<lane>:<class>`.
local function queue_key(index, queue)
  return index .. ':lane:' .. queue .. ':eligible'
end

-- Whether what stands in a queue requires capabilities.
local function requires_some(queue)
  return string.sub(queue, -2) ~= ':-'
end

-- The classes of a lane whose queues have entries; the lane is given as `<namespace>/<lane>:`, with which
-- the names of its queues begin.
local function ready_key(index, lane)
  return index .. ':lane:' .. lane .. 'ready'
end

-- How many executions of a namespace's lanes are in which state.
local function lanes_key(index, namespace)
  return index .. ':lanes:' .. namespace
end

-- The field of such counts.
local function lane_field(state, lane)
  return state .. ':' .. lane
end

-- The text form of a uuid of 16 bytes.
local function uuid_text(raw)
  return string.format('%08x-%04x-%04x-%04x-%04x%08x', struct.unpack('>I4I2I2I2I2I4', raw))
end

-- Key names. Every key begins with the family name and the partition's hash tag; caller text comes
-- behind it and can therefore not change the slot.

local function index_key(prefix, partition)
  return prefix .. ':idx:{fp:' .. partition .. '}'
end

local function execution_key(prefix, partition, uuid)
  return prefix .. ':exec:{fp:' .. partition .. '}:' .. uuid
end

-- `queue` is `<namespace>/<lane>:<class>`.
local function queue_key(index, queue)
  return index .. ':lane:' .. queue .. ':eligible'
end

-- The text form of a uuid of 16 bytes.
local function uuid_text(raw)
  return string.format('%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x',
    string.byte(raw, 1, 16))
end

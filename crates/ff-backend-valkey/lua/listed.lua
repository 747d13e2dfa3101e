-- ff_listed: entries of one list of a namespace in some homes of one node, oldest first.
-- Keys: one of the node, for routing. Arguments: call version; prefix; end of the list's name;
-- instant and member (name 16 bytes, then what it lists) from which on entries are wanted; most entries of a
-- home; then the homes.
-- Reply: for each home: its tag, 1 when there are no later ones, then the entries (instant 6
-- bytes, signed, then the member) in their order.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

-- Whether bytes stand before others. Comparing strings would follow the server's locale.
local function bytes_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- How many entries stand before an instant and a member.
local function entries_before(key, at, member)
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. at)
  local high = low + redis.call('ZCOUNT', key, at, at)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if bytes_before(redis.call('ZRANGE', key, middle, middle)[1], member) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function listed(keys, args)
  local prefix, list, at, member, most = args[2], args[3], args[4], args[5], tonumber(args[6])
  local reply = {}
  for h = 7, #args do
    local key = index_key(prefix, args[h]) .. ':' .. list
    local first = entries_before(key, at, member)
    -- One more than wanted, to see whether there are later ones.
    local rows = redis.call('ZRANGE', key, first, first + most, 'WITHSCORES')
    local entry = { args[h], #rows <= 2 * most and 1 or 0 }
    for i = 1, math.min(#rows, 2 * most), 2 do
      append(entry, struct.pack('>I6', tonumber(rows[i + 1])) .. rows[i])
    end
    reply[#reply + 1] = entry
  end
  return reply
end

serve('ff_listed', { 'no-writes', 'allow-cross-slot-keys' }, listed)

-- ff_created: executions of each partition of one node in the order of their submit, newest first.
-- Keys: one of the node, for routing. Arguments: call version; prefix; entries made after this
-- instant are left out; most entries of a partition; then the partitions by their tags.
-- Entries stand in the order in which they were written, which may differ by a moment from the
-- order of their times: the caller sorts, and trusts what is a moment older than the last.
-- Reply: for each partition: its tag, 1 when there are no older ones, then the entries (instant
-- 6 bytes, uuid 16), newest first.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

-- How many entries of a bucket were made up to `before`, give or take the moment.
local function place_of(bucket, before, length)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    if struct.unpack('>I6', redis.call('LINDEX', bucket, middle)) <= before then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- Entries of the lists, newest first, and whether there are no older ones.
local function from_lists(index, before, most)
  local found, hours = {}, redis.call('ZRANGE', index .. ':created', 0, -1, 'REV')
  for _, hour in ipairs(hours) do
    if tonumber(hour) * 3600000 <= before then
      local bucket = index .. ':created:' .. hour
      local last = place_of(bucket, before, redis.call('LLEN', bucket))
      local from = math.max(0, last - (most - #found))
      if last > 0 then
        local entries = redis.call('LRANGE', bucket, from, last - 1)
        for i = #entries, 1, -1 do
          append(found, entries[i])
        end
      end
      if #found >= most then
        return found, from == 0 and hour == hours[#hours]
      end
    end
  end
  return found, true
end

-- The same of what stands outside the lists: it has outlived them, or came too late for its place.
local function from_old(index, before, most)
  local found = {}
  local rows = redis.call('ZRANGE', index .. ':old', string.format('%.0f', before), '-inf', 'BYSCORE', 'REV',
    'LIMIT', 0, most + 1, 'WITHSCORES')
  for i = 1, math.min(#rows, 2 * most), 2 do
    append(found, struct.pack('>I6', tonumber(rows[i + 1])) .. rows[i])
  end
  return found, #rows <= 2 * most
end

local function is_newer(a, b)
  return not b or (a and struct.unpack('>I6', a) >= struct.unpack('>I6', b))
end

-- Adds the newest of both to the reply.
local function newest(index, before, most, reply)
  local listed, all_listed = from_lists(index, before, most)
  local old, all_old = from_old(index, before, most)
  local i, j = 1, 1
  while #reply - 2 < most and (listed[i] or old[j]) do
    if is_newer(listed[i], old[j]) then
      append(reply, listed[i])
      i = i + 1
    else
      append(reply, old[j])
      j = j + 1
    end
  end
  if all_listed and all_old and not listed[i] and not old[j] then
    reply[2] = 1
  end
end

local function created(keys, args)
  local prefix, before, most = args[2], tonumber(args[3]), tonumber(args[4])
  local reply = {}
  for p = 5, #args do
    local entry = { args[p], 0 }
    newest(index_key(prefix, args[p]), before, most, entry)
    reply[#reply + 1] = entry
  end
  return reply
end

serve('ff_created', { 'no-writes', 'allow-cross-slot-keys' }, created)

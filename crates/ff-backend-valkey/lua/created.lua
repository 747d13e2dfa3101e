-- ff_created: executions of each partition of one node in the order of their submit, newest first.
-- Keys: one of the node, for routing. Arguments: call version; prefix; entries made after this
-- instant are left out; most entries of a partition; then the partitions.
-- Entries stand in the order in which they were written, which may differ by a moment from the
-- order of their times: the caller sorts, and trusts what is a moment older than the last.
-- Reply: for each partition: its number, 1 when there are no older ones, then the entries (instant
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

-- Entries of the lists; false when there are as many as wanted.
local function from_lists(index, before, most, reply)
  local hours = redis.call('ZRANGE', index .. ':created', 0, -1, 'REV')
  for _, hour in ipairs(hours) do
    if tonumber(hour) * 3600000 <= before then
      local bucket = index .. ':created:' .. hour
      local last = place_of(bucket, before, redis.call('LLEN', bucket))
      local from = math.max(0, last - (most - (#reply - 2)))
      if last > 0 then
        local entries = redis.call('LRANGE', bucket, from, last - 1)
        for i = #entries, 1, -1 do
          append(reply, entries[i])
        end
      end
      if #reply - 2 >= most then
        return from == 0 and hour == hours[#hours]
      end
    end
  end
  return true
end

-- Entries of what has outlived the lists: all of it is older than what stands in them.
local function from_old(index, before, most, reply)
  local left = most - (#reply - 2)
  local rows = redis.call('ZRANGE', index .. ':old', string.format('%.0f', before), '-inf', 'BYSCORE', 'REV',
    'LIMIT', 0, left + 1, 'WITHSCORES')
  for i = 1, math.min(#rows, 2 * left), 2 do
    append(reply, struct.pack('>I6', tonumber(rows[i + 1])) .. rows[i])
  end
  return #rows <= 2 * left
end

local function newest(index, before, most, reply)
  if from_lists(index, before, most, reply) and from_old(index, before, most, reply) then
    reply[2] = 1
  end
end

local function created(keys, args)
  local prefix, before, most = args[2], tonumber(args[3]), tonumber(args[4])
  local reply = {}
  for p = 5, #args do
    local entry = { args[p], 0 }
    newest(index_key(prefix, partition_home(args[p])), before, most, entry)
    reply[#reply + 1] = entry
  end
  return reply
end

serve('ff_created', { 'no-writes', 'allow-cross-slot-keys' }, created)

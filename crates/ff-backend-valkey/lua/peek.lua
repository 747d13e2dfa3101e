-- ff_peek: the front of the queues of some lanes, in all partitions of one node.
-- Keys: one of the node, for routing. Arguments: call version; prefix; most entries of a queue, 0 to
-- know only the score of its front; the one class to look at, empty for all; number of lanes; the
-- lanes as `<namespace>/<lane>:`; then the partitions.
-- Reply: for each queue with entries a list: partition, name, score of its front or below, 1 when
-- nothing stands behind the entries that follow; these with score, id, and 1 when the deadline has
-- passed. A queue of which only the score is asked for may turn out to be empty.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

-- Whether time has something to do in a partition: only then may an entry be past its deadline.
local function is_behind(index, now)
  local first = redis.call('ZRANGE', index .. ':timers', 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2]) <= now
end

-- A queued execution may have other timers than its deadline: its record tells.
local function is_expired(prefix, home, raw, now)
  local at = redis.call('ZSCORE', index_key(prefix, home) .. ':timers', raw)
  if not at or tonumber(at) > now then
    return false
  end
  local core = execution_key(prefix, home, uuid_text(raw)) .. ':core'
  local head = redis.call('GETRANGE', core, 0, HEAD_BYTES + LIMITS_BYTES - 1)
  if #head < HEAD_BYTES + LIMITS_BYTES or not has_flag(string.byte(head, FLAGS_AT), LIMITED) then
    return false
  end
  local deadline = struct.unpack(LIMITS, head, HEAD_BYTES + 1)
  return deadline > 0 and deadline <= now
end

local function front_of(prefix, home, queue, most, now, behind, entry)
  local key = queue_key(index_key(prefix, home), queue)
  local rows = redis.call('ZRANGE', key, 0, most, 'WITHSCORES')
  entry[4] = #rows / 2 <= most and 1 or 0
  for i = 1, #rows, 2 do
    append(entry, rows[i + 1], rows[i])
    append(entry, behind and is_expired(prefix, home, rows[i], now) and 1 or 0)
  end
  return #rows > 0
end

-- The queues of one partition that are of these lanes.
local function peek_partition(prefix, partition, lanes, only, most, reply)
  local home = partition_home(partition)
  local index = index_key(prefix, home)
  local now, behind
  for _, lane in ipairs(lanes) do
    local ready = redis.call('ZRANGE', ready_key(index, lane), 0, -1, 'WITHSCORES')
    for r = 1, #ready, 2 do
      if only == '' or ready[r] == only then
        local queue = lane .. ready[r]
        local entry = { partition, queue, ready[r + 1], 0 }
        if most >= 0 and not now then
          now = clock(prefix)
          behind = is_behind(index, now)
        end
        if most < 0 or front_of(prefix, home, queue, most, now, behind, entry) then
          reply[#reply + 1] = entry
        end
      end
    end
  end
end

local function peek(keys, args)
  local prefix, most, only, count = args[2], tonumber(args[3]) - 1, args[4], tonumber(args[5])
  local lanes, reply = {}, {}
  append_all(lanes, args, 6, 5 + count)
  for p = 6 + count, #args do
    peek_partition(prefix, args[p], lanes, only, most, reply)
  end
  return reply
end

serve('ff_peek', { 'no-writes', 'allow-cross-slot-keys' }, peek)

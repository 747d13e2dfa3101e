-- ff_peek: the front of the queues of some lanes, in all partitions of one node.
-- Keys: one of the node, for routing. Arguments: call version; prefix; most entries of a queue, 0 to
-- know only the score of its front; the one class to look at, empty for all; number of lanes; the
-- lanes as `<namespace>/<lane>:`; then the partitions, of which one where a call before had no room for
-- more is given as `<partition>:<place of the lane>:<cursor>`.
-- Reply: for each queue with entries a list: partition, name, score of its front or below, 1 when
-- nothing stands behind the entries that follow; these with score, id, and 1 when the deadline has
-- passed. A queue of which only the score is asked for may turn out to be empty. Where there is more than
-- a call has room for, a last list of three: partition, place of the lane and cursor to go on with; the
-- partitions behind that one are yet to be looked at. Queues may then be told twice.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

-- Queues and entries of them that one call reads, about, and queues at the least: everything else waits
-- while it runs.
local ROWS_MOST, QUEUES_LEAST = 512, 16

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

-- Classes of a lane that may have entries, with the scores of their fronts, from a cursor on; and the
-- cursor behind them, '0' for the end. The order of many may change from call to call, and a place in it
-- would then pass over some: a scan has all that are there from its first call to its last.
local function classes_of(ready, only, cursor, most)
  if only ~= '' then
    local score = redis.call('ZSCORE', ready, only)
    return score and { only, score } or {}, '0'
  end
  if cursor == '0' then
    local rows = redis.call('ZRANGE', ready, 0, most, 'WITHSCORES')
    if #rows / 2 <= most then
      return rows, '0'
    end
  end
  local found = redis.call('ZSCAN', ready, cursor, 'COUNT', most)
  return found[2], found[1]
end

-- The queues of one partition that are of the lanes of a call. Where there is no room for all: place of
-- the lane and cursor to go on with.
local function peek_partition(call, partition, lane_from, cursor)
  local home = partition_home(partition)
  local index = index_key(call.prefix, home)
  local now, behind
  for place = lane_from, #call.lanes do
    local lane, rows = call.lanes[place]
    if call.room <= 0 then
      return place, cursor
    end
    rows, cursor = classes_of(ready_key(index, lane), call.only, cursor, call.queues_most)
    for r = 1, #rows, 2 do
      local queue = lane .. rows[r]
      local entry = { partition, queue, rows[r + 1], 0 }
      if call.most >= 0 and not now then
        now = clock(call.prefix)
        behind = is_behind(index, now)
      end
      if call.most < 0 or front_of(call.prefix, home, queue, call.most, now, behind, entry) then
        append(call.reply, entry)
      end
    end
    call.room = call.room - #rows / 2
    if cursor ~= '0' then
      return place, cursor
    end
  end
end

local function peek(keys, args)
  local entries, count = tonumber(args[3]), tonumber(args[5])
  local queues_most = math.max(QUEUES_LEAST, math.floor(ROWS_MOST / (1 + entries)))
  local call = { prefix = args[2], most = entries - 1, only = args[4], lanes = {}, reply = {},
    queues_most = queues_most, room = queues_most }
  append_all(call.lanes, args, 6, 5 + count)
  for p = 6 + count, #args do
    local partition, lane, cursor = string.match(args[p], '^(%d+):(%d+):(%d+)$')
    partition = partition or args[p]
    lane, cursor = peek_partition(call, partition, tonumber(lane or 1), cursor or '0')
    if lane then
      append(call.reply, { partition, lane, cursor })
      break
    end
  end
  return call.reply
end

serve('ff_peek', { 'no-writes', 'allow-cross-slot-keys' }, peek)

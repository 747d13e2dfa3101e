-- ff_claim: leases the front of queues to one worker, or sets aside what stands under limits, which
-- have to be asked first. It decides nothing but the order: what a claim makes of an execution is
-- noted in short before the record's body and worked out by whoever reads it.
-- Keys: one of the home, for routing. In a cluster there is one queue, and the keys are those that are
-- written, apart from records, timers and counts of flows, which are read before anything is written.
-- Arguments: call version; prefix; ttl; who (bytes that end the noted claim); middle and end of the
-- events (outcome, namespace, lane and instance); most bytes of payloads and of what tasks carry
-- besides; whether the claim has tasks already (1), else the first is taken whatever its size; how
-- much younger than the bound an entry may be; what stands under limits: 'own' for executions that
-- do themselves or by their flow, 'all' of the lane, or 'pass' to leave them where they are; from
-- which instant on the worker counts as silent; number of queues. Each queue: home; name; bound
-- as score and 16 bytes (an entry behind it is left); lease ids, 16 bytes each, as many as may be
-- taken.
-- Reply: the store's time, and nothing else when the worker is silent; then for each queue a list: 1 when it stopped because of the bytes,
-- score and id of what stands first now (empty: nothing) and 1 when that is past its deadline;
-- then for each entry met, in order, its id, and its record and payload (empty when it stands in
-- the record; the score of what was set aside), or 'expired' when its deadline has passed and the
-- machine must end it, or 'passed' when it stands under limits and was left,
-- or 'missing' when there is no such execution, or 'stopped' when its flow lets no member be claimed
-- any more (both were taken out of the queue: the machine ends the latter).
-- Errors: FFCALLVERSION. Events: execution.claimed.

local CLAIMED = '@EVENT_CLAIMED@'

-- Fields of the counts of a flow's members; the states count lanes too.
local WAITING, RESUMABLE, ACTIVE, STARTED = '@WAITING@', '@RESUMABLE@', '@ACTIVE@', '@STARTED@'

-- Entries that one call takes out of a queue, or leaves there, without having a use for them: it goes
-- on behind them so far.
local PASSED_MOST = 64

-- In place of a lease id: it was set aside; and how long it is.
local SET_ASIDE, SET_ASIDE_MS = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0', @SET_ASIDE_MS@

-- Whether the entry stands before the bound, or is it. Bytes are compared as numbers: comparing
-- strings would follow the server's locale.
local function within(score, raw, bound_score, bound_raw, slack)
  if score < bound_score then
    return true
  elseif score > bound_score then
    return score <= bound_score + slack
  elseif slack > 0 then
    return true
  end
  local a, b, c = struct.unpack('>I6I6I4', raw)
  local x, y, z = struct.unpack('>I6I6I4', bound_raw)
  if a ~= x then
    return a < x
  elseif b ~= y then
    return b < y
  end
  return c <= z
end

-- What a claim finds of one record: nil when its deadline has passed; else what its timer becomes
-- (nil: it stays), whether the payload stands beside it, the bytes that it carries besides, the
-- flow that it is a member of, and what its timer is now.
local function look_at(record, now)
  local flags = string.byte(record, FLAGS_AT)
  if flags == 0 then
    return true, nil, false, 0, nil, math.huge
  end
  local timer, extras, behind, due = nil, 0, HEAD_BYTES, math.huge
  if has_flag(flags, LIMITED) then
    local deadline, left, closing
    deadline, left, closing, extras = struct.unpack(LIMITS, record, HEAD_BYTES + 1)
    if deadline > 0 and deadline <= now then
      return nil
    end
    due = math.min(deadline > 0 and deadline or math.huge, closing > 0 and closing or math.huge)
    if left > 0 then -- one more than is left; 0 for no limit
      timer = math.min(due, now + left - 1)
    end
    behind = behind + LIMITS_BYTES
  end
  local flow
  if has_flag(flags, MEMBER) then
    flow = string.sub(record, behind + 1, behind + MEMBER_BYTES)
  end
  return true, timer, has_flag(flags, PAYLOAD_BESIDE), extras, flow, due
end

-- The counts of a flow, whether it lets no member be claimed any more, and whether it stands under
-- limits.
local function counts_of(prefix, home, flow, terms)
  local known = terms.flows[flow]
  if not known then
    local key = tally_key(prefix, home, uuid_text(flow))
    local marks = redis.call('HMGET', key, STOPPED, UNDER)
    known = { key = key, stopped = marks[1] ~= false, under = marks[2] ~= false }
    terms.flows[flow] = known
  end
  return known
end

-- A member runs now.
local function count_claim(counts, key, record)
  local resumes = has_flag(string.byte(record, FLAGS_AT), RESUMES)
  recount(counts, key, resumes and RESUMABLE or WAITING, -1)
  recount(counts, key, ACTIVE, 1)
  if struct.unpack('>I4', record, EPOCH_AT) == 0 then
    recount(counts, key, STARTED, 1)
  end
end

-- So many of a queue's lane run now. What is resumed counts as waiting before.
local function count_lane(index, queue, count)
  local namespace, lane = string.match(queue, '^([^/]*)/(.*):[^:]*$')
  local key = lanes_key(index, namespace)
  add_to_lane(key, lane_field(WAITING, lane), -count)
  add_to_lane(key, lane_field(ACTIVE, lane), count)
end

-- Whether its limits have to be asked: its own, those of its flow or its lane.
local function is_limited(record, counts, terms)
  return terms.limits == 'all' or (counts and counts.under)
    or has_flag(string.byte(record, FLAGS_AT), UNDER_LIMITS)
end

-- What follows the head of a record whose next claim is noted.
local function behind_noted(record, flags, lease_id, now, terms)
  local body_at, added = HEAD_BYTES + 1, ''
  if flags ~= 0 then
    body_at = behind_head(flags)
    added = string.sub(record, HEAD_BYTES + 1, body_at - 1)
  end
  return added .. lease_id .. struct.pack('>I6', now) .. terms.who .. string.sub(record, body_at)
end

-- The record with the claim noted, but for its event's number in front, and the event.
local function noted(record, raw, lease_id, now, terms)
  local last, revision, seq, epoch, attempt, kind, flags = struct.unpack(HEAD, record)
  local event = CLAIMED .. raw .. struct.pack('>I6I4I6I4I4', now, seq + 1, last, attempt, epoch + 1)
    .. terms.event_tail .. string.char(kind)
  local head = struct.pack(HEAD_BEHIND_NUMBER, revision + 1, seq + 1, epoch + 1, attempt, kind, flags,
    22 + #terms.who)
  return head .. behind_noted(record, flags, lease_id, now, terms), event
end

-- The record with the note that it was set aside, which is no event.
local function noted_aside(record, now, terms)
  local last, revision, seq, epoch, attempt, kind, flags = struct.unpack(HEAD, record)
  return struct.pack(HEAD, last, revision + 1, seq, epoch, attempt, kind, flags, 22 + #terms.who)
    .. behind_noted(record, flags, SET_ASIDE, now, terms)
end

-- Entries behind those that were read.
local function read_on(key, rows, wanted)
  local from = #rows / 2
  local more = redis.call('ZRANGE', key, from, from + wanted, 'WITHSCORES')
  for i = 1, #more do
    rows[#rows + 1] = more[i]
  end
end

-- Notes an entry that may be taken; false when the reply holds no more.
local function take(core, record, raw, timer, beside, extras, counts, terms, taken, reply)
  local payload = beside and redis.call('GET', string.sub(core, 1, -5) .. 'payload') or ''
  local bytes = (beside and #payload or INLINE_BYTES) + extras
  if terms.bytes_left < bytes and terms.any then
    return false
  end
  terms.any = true
  terms.bytes_left = terms.bytes_left - bytes
  taken.count = taken.count + 1
  append(taken.found, core, record)
  append(taken.claimed, raw)
  append(taken.gone, raw)
  taken.counted[taken.count] = counts
  if timer then
    append(taken.timers, timer, raw)
  end
  append(reply, raw, #taken.found)
  append(reply, payload)
  return true
end

-- Notes an entry that is set aside.
local function take_aside(core, record, raw, due, score, now, taken, reply)
  taken.count = taken.count + 1
  taken.aside[taken.count] = true
  append(taken.found, core, record)
  append(taken.claimed, raw)
  append(taken.gone, raw)
  append(taken.timers, math.min(due, now + SET_ASIDE_MS), raw)
  append(reply, raw, #taken.found)
  append(reply, score)
end

-- An entry is left in its queue.
local function leave(raw, why, row, taken, reply)
  append(reply, raw, why)
  taken.left = taken.left or { row = row, expired = why == 'expired' }
end

-- Reads what may be taken of one queue into `taken`: keys, records, ids, payloads. Writes nothing.
-- Gives the row that stands first afterwards.
local function choose(prefix, home, key, rows, bound_score, bound_raw, wanted, now, terms, taken, reply)
  local row = 1
  while taken.count < wanted and taken.passed < PASSED_MOST and not terms.full do
    if not rows[row] and taken.passed > 0 then
      read_on(key, rows, wanted)
    end
    local raw = rows[row]
    if not raw or not within(tonumber(rows[row + 1]), raw, bound_score, bound_raw, terms.slack) then
      break
    end
    local core = execution_key(prefix, home, uuid_text(raw)) .. ':core'
    local record = redis.call('GET', core)
    if not record then
      append(reply, raw, 'missing')
      append(taken.gone, raw)
    else
      local claimable, timer, beside, extras, flow, due = look_at(record, now)
      local counts = flow and counts_of(prefix, home, flow, terms)
      if counts and counts.stopped then
        append(reply, raw, 'stopped')
        append(taken.gone, raw)
        taken.passed = taken.passed + 1
      elseif not claimable then
        leave(raw, 'expired', row, taken, reply)
      elseif is_limited(record, counts, terms) then
        if terms.limits == 'pass' then
          leave(raw, 'passed', row, taken, reply)
          taken.passed = taken.passed + 1
        else
          take_aside(core, record, raw, due, rows[row + 1], now, taken, reply)
        end
      elseif not take(core, record, raw, timer, beside, extras, counts, terms, taken, reply) then
        terms.full = true
        break
      end
    end
    row = row + 2
  end
  if not rows[row] and taken.passed > 0 then
    read_on(key, rows, 0)
  end
  -- What was passed over stands before what was not looked at.
  return taken.left and taken.left.row or row
end

-- Writes all that was taken of one queue.
local function lease(prefix, home, index, queue, lease_ids, now, terms, taken)
  local events, leases, counts, expiry = {}, {}, {}, now + terms.ttl
  local found, raw = taken.found, taken.claimed
  for i = 1, taken.count do
    if taken.aside[i] then
      found[2 * i] = noted_aside(found[2 * i], now, terms)
    else
      local lease_id = string.sub(lease_ids, i * 16 - 15, i * 16)
      local record, event = noted(found[2 * i], raw[i], lease_id, now, terms)
      if taken.counted[i] then
        count_claim(counts, taken.counted[i].key, found[2 * i])
      end
      found[2 * i] = record
      events[#events + 1] = framed(event)
      append(leases, expiry, raw[i])
    end
  end
  local number = #events > 0 and append_events(prefix, home, table.concat(events), #events)
  for i = 1, taken.count do
    if not taken.aside[i] then
      found[2 * i] = struct.pack('>I6', number) .. found[2 * i]
      number = number + 1
    end
    redis.call('SET', found[2 * i - 1], found[2 * i])
  end
  if #leases > 0 then
    redis.call('ZADD', index .. ':leases', unpack(leases))
    count_lane(index, queue, #leases / 2)
  end
  if #taken.timers > 0 then
    redis.call('ZADD', index .. ':timers', unpack(taken.timers))
  end
  write_counts(counts, add_to_flow)
end

local function claim_queue(prefix, home, queue, bound_score, bound_raw, lease_ids, now, terms)
  local index = index_key(prefix, home)
  local key = queue_key(index, queue)
  local wanted = #lease_ids / 16
  -- One more than can be taken: the new front.
  local rows = redis.call('ZRANGE', key, 0, wanted, 'WITHSCORES')
  if terms.in_cluster then
    redis.call('EXISTS', index .. ':timers')
  end
  local taken = { count = 0, passed = 0, found = {}, claimed = {}, gone = {}, timers = {}, counted = {}, aside = {} }
  local reply = { 0, '', '', 0 }
  local front = choose(prefix, home, key, rows, bound_score, bound_raw, wanted, now, terms, taken, reply)
  if taken.count > 0 then
    lease(prefix, home, index, queue, lease_ids, now, terms, taken)
  end
  if #taken.gone > 0 then
    redis.call('ZREM', key, unpack(taken.gone))
  end
  if rows[front] then
    redis.call('ZADD', index .. ':ready', rows[front + 1], queue)
    reply[2], reply[3], reply[4] = rows[front + 1], rows[front], taken.left and taken.left.expired and 1 or 0
  else
    redis.call('ZREM', index .. ':ready', queue)
  end
  reply[1] = terms.full and 1 or 0
  -- Records took their place in the reply by number, since they were not written yet.
  for i = 5, #reply do
    if type(reply[i]) == 'number' then
      reply[i] = taken.found[reply[i]]
    end
  end
  return reply
end

local function claim(keys, args)
  local prefix, count = args[2], tonumber(args[11])
  local terms = {
    ttl = tonumber(args[3]), who = args[4], event_tail = args[5],
    bytes_left = tonumber(args[6]), any = args[7] == '1', slack = tonumber(args[8]), full = false,
    limits = args[9], in_cluster = #keys > 1, flows = {},
  }
  local now = clock(prefix)
  local reply = { now }
  if now >= tonumber(args[10]) then
    return reply
  end
  for i = 1, count do
    local at = 12 + (i - 1) * 5
    reply[i + 1] = claim_queue(prefix, args[at], args[at + 1], tonumber(args[at + 2]), args[at + 3],
      args[at + 4], now, terms)
  end
  return reply
end

serve('ff_claim', {}, claim)

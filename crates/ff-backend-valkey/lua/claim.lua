-- ff_claim: leases the front of queues to workers, or sets aside what stands under limits, which
-- have to be asked first. It decides nothing but the order: what a claim makes of an execution is
-- noted in short before the record's body and worked out by whoever reads it.
-- Several claims may come in one call; what they take of one partition is written together.
-- Keys: one of the home, for routing. In a cluster all is of one partition, and the keys are those that are
-- written, apart from records, timers and counts of flows, which are read before anything is written.
-- Arguments: call version; prefix; how much younger than the bound an entry may be; number of claims.
-- Each claim: namespace; lane; ttl; who (bytes that end the noted claim); middle and end of the
-- events (outcome, namespace, lane and instance); most bytes of payloads and of what tasks carry
-- besides; whether the claim has tasks already (1), else the first is taken whatever its size;
-- what stands under limits: 'own' for executions that
-- do themselves or by their flow, 'all' of the lane, or 'pass' to leave them where they are, which
-- only a claim alone may say; from
-- which instant on the worker counts as silent; number of queues. Each queue: home; name; bound
-- as score and 16 bytes (an entry behind it is left); lease ids, 16 bytes each, as many as may be
-- taken.
-- Reply: the store's time, then for each claim a list, empty when its worker is silent, with a list
-- for each queue: 1 when it stopped because of the bytes, 2 when it met too many entries of no use and
-- more may be had behind them; how many entries stand in the queue now;
-- score and id of the first of them (empty: none) and 1 when that is past its deadline; which of them
-- was looked at ahead, 1 for the first, and its score;
-- then for each entry met, in order, its id, and its record and payload (empty when it stands in
-- the record; the score of what was set aside), or 'expired' when its deadline has passed and the
-- machine must end it, or 'passed' when it stands under limits and was left,
-- or 'missing' when there is no such execution, or 'broken' when the entry is no id or its record is
-- damaged, or 'stopped' when its flow lets no member be claimed any more (these three were taken out of
-- the queue: the machine ends the last).
-- Errors: FFCALLVERSION. Events: execution.claimed.

local CLAIMED = '@EVENT_CLAIMED@'

-- Bytes of such an event beside its middle.
local EVENT_BYTES = 42

-- Fields of the counts of a flow's members; the states count lanes too.
local WAITING, RESUMABLE, ACTIVE, STARTED = '@WAITING@', '@RESUMABLE@', '@ACTIVE@', '@STARTED@'

-- Entries that one call takes out of a queue, or leaves there, without having a use for them: it goes
-- on behind them so far. Those of all its queues together are bounded too: everything else waits
-- while it runs.
local PASSED_MOST, PASSED_OF_CALL = 64, 128

local ID_BYTES = 16

-- How far a call looks ahead, so that its caller can tell how much to ask of a queue.
local AHEAD = 32

-- In place of a lease id: it was set aside; and how long it is.
local SET_ASIDE, SET_ASIDE_MS = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0', @SET_ASIDE_MS@

-- Whether the entry stands before the bound, or is it. Bytes are compared as numbers: comparing
-- strings would follow the server's locale. What is no id is met, so that it is moved aside.
local function within(score, raw, bound_score, bound_raw, slack)
  if score < bound_score then
    return true
  elseif score > bound_score then
    return score <= bound_score + slack
  elseif slack > 0 or #raw ~= ID_BYTES then
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
local function counts_of(call, home, flow)
  local known = call.flows[flow]
  if not known then
    local key = tally_key(call.prefix, home, uuid_text(flow))
    local marks = redis.call('HMGET', key, STOPPED, UNDER)
    known = { key = key, stopped = marks[1] ~= false, under = marks[2] ~= false }
    call.flows[flow] = known
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

-- Whether its limits have to be asked: its own, those of its flow or its lane.
local function is_limited(record, counts, terms)
  return terms.limits == 'all' or (counts and counts.under)
    or has_flag(string.byte(record, FLAGS_AT), UNDER_LIMITS)
end

-- What stands between the head of a record and its body, and the body, when its next claim is noted.
local function parts_behind_head(record, flags)
  if flags == 0 then
    return '', string.sub(record, HEAD_BYTES + 1)
  end
  local body_at = behind_head(flags)
  return string.sub(record, HEAD_BYTES + 1, body_at - 1), string.sub(record, body_at)
end

-- The framed event of a claim.
local function event_of(item, now)
  local last, _, seq, epoch, attempt, kind = struct.unpack(HEAD, item.record)
  local terms = item.terms
  return terms.event_head .. item.raw .. struct.pack('>I6I4I6I4I4', now, seq + 1, last, attempt, epoch + 1)
    .. terms.event_tail .. string.char(kind)
end

-- The record with the claim noted, whose event has this number.
local function noted(item, now, number)
  local _, revision, seq, epoch, attempt, kind, flags = struct.unpack(HEAD, item.record)
  local added, body = parts_behind_head(item.record, flags)
  local who = item.terms.who
  return struct.pack(HEAD, number, revision + 1, seq + 1, epoch + 1, attempt, kind, flags, 22 + #who)
    .. added .. item.lease_id .. struct.pack('>I6', now) .. who .. body
end

-- The record with the note that it was set aside, which is no event.
local function noted_aside(item, now)
  local last, revision, seq, epoch, attempt, kind, flags = struct.unpack(HEAD, item.record)
  local added, body = parts_behind_head(item.record, flags)
  local who = item.terms.who
  return struct.pack(HEAD, last, revision + 1, seq, epoch, attempt, kind, flags, 22 + #who)
    .. added .. SET_ASIDE .. struct.pack('>I6', now) .. who .. body
end

-- Entries behind those that were read.
local function read_on(queue, wanted)
  local rows = queue.rows
  local from = #rows / 2
  local more = redis.call('ZRANGE', queue.key, from, from + wanted, 'WITHSCORES')
  append_all(rows, more, 1, #more)
  queue.complete = #more / 2 <= wanted
end

-- Notes an entry that may be taken; false when the reply holds no more.
local function take(item, timer, beside, extras, queue, reply)
  local terms, home, raw = item.terms, queue.home, item.raw
  local payload = beside and redis.call('GET', string.sub(item.core, 1, -5) .. 'payload') or ''
  local bytes = (beside and #payload or INLINE_BYTES) + extras
  if terms.bytes_left < bytes and terms.any then
    return false
  end
  terms.any = true
  terms.bytes_left = terms.bytes_left - bytes
  queue.leased = queue.leased + 1
  append(home.items, item)
  append(home.leases, terms.expiry, raw)
  if timer then
    append(home.timers, timer, raw)
  end
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = raw, item, payload
  return true
end

-- Notes an entry that is set aside.
local function take_aside(item, due, score, now, home, reply)
  append(home.items, item)
  append(home.timers, math.min(due, now + SET_ASIDE_MS), item.raw)
  append(reply, item.raw, item)
  append(reply, score)
end

-- An entry is left in its queue; the claim goes on behind it without it.
local function leave(raw, why, queue, reply)
  append(reply, raw, why)
  queue.left = queue.left or { row = queue.row, expired = why == 'expired' }
  queue.passed = queue.passed + 1
  return true, false
end

-- An entry goes out of its queue, and nobody gets it; the claim goes on without it.
local function drop(raw, why, queue, reply)
  append(reply, raw, why)
  append(queue.gone, raw)
  queue.passed = queue.passed + 1
  return true, false
end

-- Looks at the entry in the next row of a queue: whether the claim goes on behind it, and whether it
-- took it.
local function meet(call, queue, raw, taking, terms, reply)
  local home = queue.home
  if #raw ~= ID_BYTES then
    return drop(raw, 'broken', queue, reply)
  end
  local core = home.stem .. uuid_text(raw) .. ':core'
  local record = redis.call('GET', core)
  if not record then
    return drop(raw, 'missing', queue, reply)
  elseif not is_sound(record) then
    return drop(raw, 'broken', queue, reply)
  end
  local claimable, timer, beside, extras, flow, due = look_at(record, call.now)
  local counts = flow and counts_of(call, home.name, flow)
  if counts and counts.stopped then
    return drop(raw, 'stopped', queue, reply)
  elseif not claimable then
    return leave(raw, 'expired', queue, reply)
  end
  local item = { core = core, record = record, raw = raw, terms = terms, counts = counts, lease_id = false }
  if not is_limited(record, counts, terms) then
    item.lease_id = string.sub(taking.lease_ids, taking.count * 16 + 1, taking.count * 16 + 16)
    if not take(item, timer, beside, extras, queue, reply) then
      return false, false
    end
  elseif terms.limits == 'pass' then
    return leave(raw, 'passed', queue, reply)
  else
    take_aside(item, due, queue.rows[queue.row + 1], call.now, home, reply)
  end
  append(queue.gone, raw)
  return true, true
end

-- Takes what a claim may have of a queue. Writes nothing: what is taken is noted with its home.
local function choose(call, taking, terms, reply)
  local queue, wanted = taking.queue, #taking.lease_ids / 16
  while taking.count < wanted and queue.passed < call.passed_most and not terms.full do
    if not queue.rows[queue.row] and not queue.complete then
      read_on(queue, wanted)
    end
    local raw = queue.rows[queue.row]
    if not raw or not within(tonumber(queue.rows[queue.row + 1]), raw, taking.score, taking.raw, call.slack) then
      break
    end
    local goes_on, took = meet(call, queue, raw, taking, terms, reply)
    if not goes_on then
      terms.full = true
      break
    end
    taking.count = taking.count + (took and 1 or 0)
    queue.row = queue.row + 2
  end
  local is_short = taking.count < wanted and queue.passed >= call.passed_most
  reply[1] = terms.full and 1 or is_short and 2 or 0
end

-- Writes all that was taken of one home.
local function lease(call, home)
  local events, now = {}, call.now
  for _, item in ipairs(home.items) do
    if item.lease_id then
      events[#events + 1] = event_of(item, now)
      if item.counts then
        count_claim(call.members, item.counts.key, item.record)
      end
    end
  end
  local number = #events > 0 and append_events(call.prefix, home.name, table.concat(events), #events)
  for _, item in ipairs(home.items) do
    if item.lease_id then
      item.record = noted(item, now, number)
      number = number + 1
    else
      item.record = noted_aside(item, now)
    end
    redis.call('SET', item.core, item.record)
  end
  if #home.leases > 0 then
    redis.call('ZADD', home.index .. ':leases', unpack(home.leases))
  end
  if #home.timers > 0 then
    redis.call('ZADD', home.index .. ':timers', unpack(home.timers))
  end
end

-- So many of a lane run now. What is resumed counts as waiting before.
local function count_lane(queue)
  add_to_lane(queue.lanes, lane_field(WAITING, queue.lane), -queue.leased)
  add_to_lane(queue.lanes, lane_field(ACTIVE, queue.lane), queue.leased)
end

-- Takes out of a queue what is not in it any more, and notes what stands first.
local function settle(queue)
  if queue.leased > 0 then
    count_lane(queue)
  end
  if not queue.rows[queue.row] and not queue.complete then
    read_on(queue, 0)
  end
  if #queue.gone > 0 then
    redis.call('ZREM', queue.key, unpack(queue.gone))
  end
  -- What was passed over stands before what was not looked at.
  local front = queue.left and queue.left.row or queue.row
  local ready, rows = ready_key(queue.home.index, queue.stem), queue.rows
  if not rows[front] then
    redis.call('ZREM', ready, queue.class)
    if requires_some(queue.name) then
      redis.call('HDEL', queue.home.index .. ':required', queue.name)
    end
    queue.front = { 0, '', '', 0, 0, '' }
    return
  end
  redis.call('ZADD', ready, rows[front + 1], queue.class)
  local standing = queue.complete and #rows / 2 - #queue.gone or redis.call('ZCARD', queue.key)
  local ahead, score = math.min(standing, AHEAD), rows[front + 1]
  if ahead > 1 then
    score = redis.call('ZRANGE', queue.key, ahead - 1, ahead - 1, 'WITHSCORES')[2]
  end
  queue.front = { standing, rows[front + 1], rows[front], queue.left and queue.left.expired and 1 or 0, ahead, score }
end

local function home_of(call, name)
  local home = call.homes[name]
  if not home then
    local index = index_key(call.prefix, name)
    home = { name = name, index = index, stem = call.prefix .. ':exec:' .. name .. ':', items = {}, leases = {},
      timers = {} }
    call.homes[name] = home
    append(call.homes, home)
    if call.in_cluster then
      redis.call('EXISTS', index .. ':timers')
    end
  end
  return home
end

local function queue_of(call, home_name, name, namespace, lane)
  local home = home_of(call, home_name)
  local key = queue_key(home.index, name)
  local queue = call.queues[key]
  if not queue then
    local stem = namespace .. '/' .. lane .. ':'
    queue = { home = home, name = name, stem = stem, class = string.sub(name, #stem + 1), key = key,
      lanes = lanes_key(home.index, namespace), lane = lane, wanted = 0, row = 1, passed = 0, leased = 0,
      gone = {}, rows = false, complete = false, left = false, front = false }
    call.queues[key] = queue
    append(call.queues, queue)
  end
  return queue
end

-- The claims of a call, without those of silent workers.
local function claims_of(call, args)
  local claims, at = {}, 5
  for number = 1, tonumber(args[4]) do
    local claim, count = { takings = {}, terms = false }, tonumber(args[at + 9])
    claims[number] = claim
    if call.now < tonumber(args[at + 8]) then
      local tail = args[at + 4]
      claim.terms = { expiry = call.now + tonumber(args[at + 2]), who = args[at + 3],
        event_head = struct.pack('>I3', EVENT_BYTES + #tail) .. CLAIMED, event_tail = tail,
        bytes_left = tonumber(args[at + 5]), any = args[at + 6] == '1', limits = args[at + 7], full = false }
      for taking = 1, count do
        local from = at + 5 + taking * 5
        local queue = queue_of(call, args[from], args[from + 1], args[at], args[at + 1])
        queue.wanted = queue.wanted + #args[from + 4] / 16
        claim.takings[taking] = { queue = queue, score = tonumber(args[from + 2]), raw = args[from + 3],
          lease_ids = args[from + 4], count = 0 }
      end
    end
    at = at + 10 + count * 5
  end
  return claims
end

-- Puts in place what was not known when the reply of a taking was begun.
local function finish(taking, reply)
  for i, part in ipairs(taking.queue.front) do
    reply[i + 1] = part
  end
  for i = 8, #reply do
    if type(reply[i]) == 'table' then
      reply[i] = reply[i].record
    end
  end
end

local function claim(keys, args)
  local prefix = args[2]
  local call = { prefix = prefix, now = clock(prefix), slack = tonumber(args[3]), in_cluster = #keys > 1,
    passed_most = 0, flows = {}, queues = {}, homes = {}, members = {} }
  local claims, reply = claims_of(call, args), { call.now }
  call.passed_most = math.min(PASSED_MOST, math.ceil(PASSED_OF_CALL / math.max(1, #call.queues)))
  for _, queue in ipairs(call.queues) do
    -- One more than can be taken: the new front.
    queue.rows = redis.call('ZRANGE', queue.key, 0, queue.wanted, 'WITHSCORES')
    queue.complete = #queue.rows / 2 <= queue.wanted
  end
  for number, each in ipairs(claims) do
    local answers = {}
    reply[number + 1] = answers
    for i, taking in ipairs(each.takings) do
      answers[i] = { 0, 0, '', '', 0, 0, '' }
      choose(call, taking, each.terms, answers[i])
    end
  end
  for _, home in ipairs(call.homes) do
    lease(call, home)
  end
  for _, queue in ipairs(call.queues) do
    settle(queue)
  end
  write_counts(call.members, add_to_flow)
  for number, each in ipairs(claims) do
    for i, taking in ipairs(each.takings) do
      finish(taking, reply[number + 1][i])
    end
  end
  return reply
end

-- Goes on when memory is short: what cannot be claimed never ends, and only what has ended is removed.
serve('ff_claim', { 'allow-oom' }, claim)

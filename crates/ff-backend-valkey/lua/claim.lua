-- ff_claim: leases the front of queues to one worker. It decides nothing but the order: what a
-- claim makes of an execution is noted in short before the record's body and worked out by whoever
-- reads it.
-- Keys: one of the partition, for routing. In a cluster there is one queue, and the keys are those
-- that are written, apart from records and timers, which are read before anything is written.
-- Arguments: call version; prefix; ttl; who (bytes that end the noted claim); middle and end of the
-- events (outcome, namespace, lane and instance); most bytes of payload; whether the claim has
-- tasks already (1), else the first is taken whatever its size; how much younger than the bound an
-- entry may be; number of queues. Each queue: partition; name; bound as score and 16 bytes
-- (an entry behind it is left); lease ids, 16 bytes each, as many as may be taken.
-- Reply: the store's time; then for each queue a list: 1 when it stopped because of the bytes,
-- score and id of what stands first now (empty: nothing) and 1 when that is past its deadline;
-- then for each entry met, in order, its id, and its record and payload (empty when it stands in
-- the record), or 'expired' when its deadline has passed and the machine must end it,
-- or 'missing' when there is no such execution (it was taken out of the queue).
-- Errors: FFCALLVERSION. Events: execution.claimed.

local CLAIMED = '@EVENT_CLAIMED@'

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

-- The record with the claim noted, and its event.
local function noted(record, raw, lease_id, now, terms)
  local last, revision, seq, epoch, attempt, kind, flags = struct.unpack(HEAD, record)
  local body_at, timed = HEAD_BYTES + 1, ''
  local deadline, left = 0, 0
  if has_flag(flags, TIMED) then
    timed = string.sub(record, body_at, body_at + 11)
    deadline, left = struct.unpack('>I6I6', timed) -- one more than is left; 0 for no limit
    body_at = body_at + 12
    if deadline > 0 and deadline <= now then
      return nil
    end
  end
  local claim = lease_id .. struct.pack('>I6', now) .. terms.who
  local event = CLAIMED .. raw .. struct.pack('>I6I4I6I4I4', now, seq + 1, last, attempt, epoch + 1)
    .. terms.event_tail .. string.char(kind)
  return {
    head = struct.pack('>I6I4I4I4BBI2', revision + 1, seq + 1, epoch + 1, attempt, kind, flags, #claim) .. timed .. claim,
    body = string.sub(record, body_at),
    event = event,
    timer = left > 0 and math.min(deadline > 0 and deadline or math.huge, now + left - 1) or nil,
    beside = has_flag(flags, PAYLOAD_BESIDE),
  }
end

-- Takes what may be taken of one queue. Writes records at once, and gathers the rest.
local function take(prefix, partition, rows, bound, lease_ids, now, terms, taken)
  local met, wanted = {}, #lease_ids / 16
  local row = 1
  while rows[row] and taken.count < wanted and not terms.full do
    local raw, score = rows[row], tonumber(rows[row + 1])
    if not within(score, raw, bound.score, bound.raw, terms.slack) then
      break
    end
    local execution = execution_key(prefix, partition, uuid_text(raw))
    local record = redis.call('GET', execution .. ':core')
    if not record then
      append(met, raw, 'missing')
      append(taken.gone, raw)
    else
      local lease_id = string.sub(lease_ids, taken.count * 16 + 1, taken.count * 16 + 16)
      local claim = noted(record, raw, lease_id, now, terms)
      if not claim then
        append(met, raw, 'expired')
        taken.left = taken.left or row
      else
        local payload = claim.beside and redis.call('GET', execution .. ':payload') or ''
        if terms.bytes_left < #payload and terms.any then
          terms.full = true
          break
        end
        terms.any = true
        terms.bytes_left = terms.bytes_left - #payload
        taken.count = taken.count + 1
        append(taken.claims, execution, claim)
        append(taken.gone, raw)
        append(taken.leases, string.format('%.0f', now + terms.ttl), raw)
        if claim.timer then
          append(taken.timers, string.format('%.0f', claim.timer), raw)
        end
        append(met, raw, claim)
        append(met, payload)
      end
    end
    row = row + 2
  end
  -- What was passed over stands before what was not looked at.
  local front = taken.left or row
  return met, rows[front], rows[front + 1], taken.left and 1 or 0
end

-- Gives events their numbers and writes all that was taken of one queue.
local function write(prefix, partition, index, taken)
  if #taken.claims == 0 then
    return
  end
  local number = take_numbers(prefix, partition, taken.count)
  local first, events = number, {}
  for i = 1, #taken.claims, 2 do
    local execution, claim = taken.claims[i], taken.claims[i + 1]
    claim.record = struct.pack('>I6', number) .. claim.head .. claim.body
    redis.call('SET', execution .. ':core', claim.record)
    append(events, framed(claim.event))
    number = number + 1
  end
  append_events(prefix, partition, first, events)
  redis.call('ZADD', index .. ':leases', unpack(taken.leases))
  if #taken.timers > 0 then
    redis.call('ZADD', index .. ':timers', unpack(taken.timers))
  end
end

local function claim_queue(prefix, partition, queue, bound, lease_ids, now, terms)
  local index = index_key(prefix, partition)
  local key = queue_key(index, queue)
  -- One more than can be taken: the new front.
  local rows = redis.call('ZRANGE', key, 0, #lease_ids / 16, 'WITHSCORES')
  if terms.in_cluster then
    redis.call('EXISTS', index .. ':timers')
  end
  local taken = { count = 0, claims = {}, gone = {}, leases = {}, timers = {} }
  local met, front, front_score, front_expired = take(prefix, partition, rows, bound, lease_ids, now, terms, taken)
  write(prefix, partition, index, taken)
  if #taken.gone > 0 then
    redis.call('ZREM', key, unpack(taken.gone))
  end
  if front then
    redis.call('ZADD', index .. ':ready', front_score, queue)
  else
    redis.call('ZREM', index .. ':ready', queue)
  end
  local reply = { terms.full and 1 or 0, front_score or '', front or '', front_expired }
  for i = 1, #met do
    local value = met[i]
    reply[i + 4] = type(value) == 'table' and value.record or value
  end
  return reply
end

local function claim(keys, args)
  local refused = not_served(args)
  if refused then
    return refused
  end
  local prefix, count = args[2], tonumber(args[9])
  local terms = {
    ttl = tonumber(args[3]), who = args[4], event_tail = args[5],
    bytes_left = tonumber(args[6]), any = args[7] == '1', slack = tonumber(args[8]), full = false,
    in_cluster = #keys > 1,
  }
  local now = clock(prefix, args[10])
  local reply = { now }
  for i = 1, count do
    local at = 10 + (i - 1) * 5
    local bound = { score = tonumber(args[at + 2]), raw = args[at + 3] }
    reply[i + 1] = claim_queue(prefix, args[at], args[at + 1], bound, args[at + 4], now, terms)
  end
  return reply
end

redis.register_function('ff_claim', claim)

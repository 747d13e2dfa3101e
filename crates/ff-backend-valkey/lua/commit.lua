-- ff_commit: performs changes that the machine decided, if what it read is unchanged.
-- Items stand in groups: what hinders one item of a group hinders all of it.
-- Keys: one of the home, for routing. In a cluster all items are of one home, and the keys are all
-- that they touch: where their slot moves to another node, the server refuses the whole call rather
-- than a part of it.
-- Arguments: call version; prefix; how far the time of a decision may lie behind and ahead of the
-- store's clock; sizes of the groups with blanks between. Each item: home; key of the record; its
-- member in sorted sets; revision that was read (6 bytes, empty: must be absent); instant from which
-- on it must not happen any more (0 for none); time that the machine was given; key of an idempotency
-- key and the record that was read there (both empty: not looked at); new record (empty: remove; `=`:
-- it was only read; with an event its first 6 bytes are left out and hold the last event's number);
-- framed events (empty: none); how many they are; number of index changes, each a letter and three
-- arguments (see `change`; letter A says what must not be there, and comes first).
-- Reply: the store's time, then for each item the number of its last event, 0 without one; -1 when
-- something that its group read has changed, -2 when its time is too far off: then nothing was
-- written.
-- Errors: FFCALLVERSION. Events: those given.
-- ff_commit_freeing is the same and may run at maxmemory: for what ends work or removes it.

local ITEM_ARGUMENTS = 12
local CHANGED, TIME_OFF = -1, -2

-- In place of a record that stays as it is.
local KEPT = '='

-- The letter of what must not be there: key of a hash, field. Such changes come first, and change
-- nothing.
local ABSENT = 'A'

-- Notes of grown output that are kept for listeners.
local TOLD_KEPT = 256

-- Why the item at `at` may not be written; nil when all that it read is still so.
local function hindrance(args, at, now, behind, ahead)
  local given, not_after, key = tonumber(args[at + 5]), args[at + 4], args[at + 6]
  if given < now - behind or given > now + ahead then
    return TIME_OFF
  end
  if not_after ~= '0' and now >= tonumber(not_after) then
    return CHANGED
  end
  if redis.call('GETRANGE', args[at + 1], 6, 11) ~= args[at + 3] then
    return CHANGED
  end
  if key ~= '' and (redis.call('GET', key) or '') ~= args[at + 7] then
    return CHANGED
  end
  local place = at + ITEM_ARGUMENTS
  while args[place] == ABSENT do
    if redis.call('HEXISTS', args[place + 1], args[place + 2]) == 1 then
      return CHANGED
    end
    place = place + 4
  end
  return nil
end

local function forget_if_empty(key, ready, queue)
  if redis.call('EXISTS', key) == 0 then
    redis.call('ZREM', ready, queue)
  end
end

-- One index change of an item. What several items of a call do to one sorted set or list is
-- gathered in `batch` and written once.
local function change(batch, raw, letter, key, a, b)
  if letter == 'Z' then -- enters a sorted set: score
    if batch then
      append(under(batch.entered, key), a, raw)
    else
      redis.call('ZADD', key, a, raw)
    end
  elseif letter == 'X' then -- leaves a sorted set
    if batch then
      append(under(batch.left, key), raw)
    else
      redis.call('ZREM', key, raw)
    end
  elseif letter == 'L' then -- enters a list: instant, member
    if batch then
      append(under(batch.entered, key), a, b)
    else
      redis.call('ZADD', key, a, b)
    end
  elseif letter == 'O' then -- leaves a list: member
    if batch then
      append(under(batch.left, key), a)
    else
      redis.call('ZREM', key, a)
    end
  elseif letter == 'V' then -- leaves a queue: list of queues that have entries, queue
    if batch then
      append(under(batch.left, key), raw)
      batch.emptied[key] = { a, b }
    else
      redis.call('ZREM', key, raw)
      forget_if_empty(key, a, b)
    end
  elseif letter == 'Y' then -- a queue has an entry: score, queue
    redis.call('ZADD', key, 'LT', a, b)
  elseif letter == 'W' then -- wakes who waits for a queue: partition
    if batch then
      append(under(batch.woken, key), a)
    else
      push_wakes(key, a, 1)
    end
  elseif letter == 'C' then -- was submitted: entry, list of hours
    if batch then
      append(under(batch.submitted, key), a)
      batch.hours[key] = b
    else
      append_submits(key, b, { a })
    end
  elseif letter == 'I' then -- a count of members changes: field, by how much
    if batch then
      recount(batch.flows, key, a, tonumber(b))
    else
      add_to_flow(key, a, b)
    end
  elseif letter == 'J' then -- a count of lanes changes: field, by how much
    if batch then
      recount(batch.lanes, key, a, tonumber(b))
    else
      add_to_lane(key, a, b)
    end
  elseif letter == 'P' then -- a value of its own
    redis.call('SET', key, a)
  elseif letter == 'H' then -- a field of a hash: name, value
    redis.call('HSET', key, a, b)
  elseif letter == 'E' then -- a field of a hash goes: name
    redis.call('HDEL', key, a)
  elseif letter == 'N' then -- the same, if it is not there
    redis.call('HSETNX', key, a, b)
  elseif letter == 'R' then -- the end of a list
    redis.call('RPUSH', key, a)
  elseif letter == 'F' then -- a frame: id, body
    redis.call('XADD', key, a, 'f', b)
  elseif letter == 'K' then -- only the newest frames stay: how many
    redis.call('XTRIM', key, 'MAXLEN', a)
  elseif letter == 'U' then -- all of it goes: when
    expire_at(key, a)
  elseif letter == 'T' then -- output has grown: whoever tails it is told
    redis.call('XADD', key, 'MAXLEN', '~', TOLD_KEPT, '0-*', 'x', raw)
  elseif letter == 'D' then -- an idempotency key: record that begins with its last instant
    redis.call('SET', key, a)
    expire_at(key, struct.unpack('>I6', a))
  end
end

local function write_batch(batch)
  for key, entries in pairs(batch.entered) do
    redis.call('ZADD', key, unpack(entries))
  end
  for key, members in pairs(batch.left) do
    redis.call('ZREM', key, unpack(members))
  end
  -- Only now: another item may have entered the queue.
  for key, listed in pairs(batch.emptied) do
    forget_if_empty(key, listed[1], listed[2])
  end
  for key, partitions in pairs(batch.woken) do
    push_wakes(key, partitions[1], #partitions)
  end
  for key, entries in pairs(batch.submitted) do
    append_submits(key, batch.hours[key], entries)
  end
  write_counts(batch.flows, add_to_flow)
  write_counts(batch.lanes, add_to_lane)
end

-- Removes the output of an execution's attempts; a document has none. Comes first of all that a removal does: while a slot
-- moves, it may fail for a key that is not named.
local function forget_frames(stem)
  local streams = stem .. 'streams'
  for _, attempt in ipairs(redis.call('LRANGE', streams, 0, -1)) do
    local frames = stem .. 'frames:' .. attempt .. ':'
    redis.call('UNLINK', frames .. '0', frames .. '1', frames .. '2')
  end
  redis.call('DEL', streams)
end

-- Writes one item.
local function perform(args, at, number, batch)
  local core, raw, record, event = args[at + 1], args[at + 2], args[at + 8], args[at + 9]
  if record == '' then
    local stem = string.sub(core, 1, -5)
    forget_frames(stem)
    redis.call('DEL', core, stem .. 'payload', stem .. 'results', stem .. 'attempts', stem .. 'beside',
      stem .. 'tally')
  elseif event ~= '' then
    redis.call('SET', core, struct.pack('>I6', number) .. record)
  elseif record ~= KEPT then
    redis.call('SET', core, record)
  end
  local first = at + ITEM_ARGUMENTS
  for c = first, first + 4 * tonumber(args[at + 11]) - 1, 4 do
    change(batch, raw, args[c], args[c + 1], args[c + 2], args[c + 3])
  end
end

local function commit_one(prefix, args, now, behind, ahead)
  local at = 6
  local why = hindrance(args, at, now, behind, ahead)
  if why then
    return { now, why }
  end
  local number, events = 0, args[at + 9]
  if events ~= '' then
    local count = tonumber(args[at + 10])
    number = append_events(prefix, args[at], events, count) + count - 1
  end
  perform(args, at, number)
  return { now, number }
end

-- Looks at the items of a group, which begin at `at`, and notes where those stand that may be
-- written, or why none may. Gives where the next group begins.
local function examine(call, at, size)
  local args, touched, starts, why = call.args, call.touched, {}, nil
  for i = 1, size do
    starts[i] = at
    why = why or hindrance(args, at, call.now, call.behind, call.ahead)
    -- All are looked at before one is written: what an earlier group changes is no longer as read.
    if not why and (touched[args[at + 1]] or touched[args[at + 6]]) then
      why = CHANGED
    end
    at = at + ITEM_ARGUMENTS + 4 * tonumber(args[at + 11])
  end
  for i = 1, size do
    local start = starts[i]
    call.count = call.count + 1
    call.places[call.count] = not why and start
    call.reply[call.count + 1] = why or 0
    if not why and args[start + 8] ~= KEPT then
      touched[args[start + 1]] = true
    end
    if not why and args[start + 6] ~= '' then
      touched[args[start + 6]] = true
    end
  end
  return at
end

-- Appends the events of some items to a log as one entry, and notes the last number of each item.
local function write_entry(prefix, home, entry, reply)
  local number = append_events(prefix, home, table.concat(entry.events), entry.count) - 1
  for k, item in ipairs(entry.items) do
    number = number + entry.counts[k]
    reply[item + 1] = number
  end
end

-- Appends the events of a call, home by home. The events of one item stand in one entry.
local function write_events(prefix, call)
  local args, open = call.args, {}
  for item = 1, call.count do
    local at = call.places[item]
    if at and args[at + 9] ~= '' then
      local home, count = args[at], tonumber(args[at + 10])
      local entry = open[home]
      if entry and entry.count + count > NUMBERS then
        write_entry(prefix, home, entry, call.reply)
        entry = nil
      end
      if not entry then
        entry = { events = {}, items = {}, counts = {}, count = 0 }
        open[home] = entry
      end
      append(entry.events, args[at + 9])
      append(entry.items, item)
      append(entry.counts, count)
      entry.count = entry.count + count
    end
  end
  for home, entry in pairs(open) do
    write_entry(prefix, home, entry, call.reply)
  end
end

local function commit(keys, args)
  local prefix, behind, ahead = args[2], tonumber(args[3]), tonumber(args[4])
  local now = clock(prefix)
  if args[5] == '1' then
    return commit_one(prefix, args, now, behind, ahead)
  end
  local call = { args = args, now = now, behind = behind, ahead = ahead, touched = {}, places = {},
    reply = { now }, count = 0 }
  local at = 6
  for size in string.gmatch(args[5], '%d+') do
    at = examine(call, at, tonumber(size))
  end
  write_events(prefix, call)
  local batch = { entered = {}, left = {}, emptied = {}, woken = {}, submitted = {}, hours = {}, flows = {},
    lanes = {} }
  for item = 1, call.count do
    if call.places[item] then
      perform(args, call.places[item], call.reply[item + 1], batch)
    end
  end
  write_batch(batch)
  return call.reply
end

serve('ff_commit', {}, commit)
serve('ff_commit_freeing', { 'allow-oom' }, commit)

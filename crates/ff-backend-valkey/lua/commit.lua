-- ff_commit: performs changes that the machine decided, if what it read is unchanged.
-- Items stand in groups: what hinders one item of a group hinders all of it. Index changes are those
-- of the whole group, since each argument costs the server time before the function sees it.
-- Keys: one of the home, for routing. In a cluster all groups are of one home, and the keys are all
-- that they touch: where their slot moves to another node, the server refuses the whole call rather
-- than a part of it.
-- Arguments: call version; prefix; how far the time of a decision may lie behind and ahead of the
-- store's clock; number of groups. Each group: home; time that the machine was given; instant from
-- which on it must not happen any more (0 for none); number of items; number of checks; number of
-- keys that must not be there; number of arguments of index changes. Each item: key of the record; the
-- first 12 bytes of what was read, which are its newest event and revision (empty: must be absent); new record (empty: remove; `=`: it was only read; with an event its first 6 bytes
-- are left out and hold the last event's number); framed events (empty: none); how many they are.
-- Each check: a letter, a key and an argument (see CHECKS). The keys. Each index change: a letter, a key and
-- as many arguments as CHANGES says; a small letter, a key, a number and so many arguments make the
-- same change several times.
-- Reply: the store's time, then for each item the number of its last event, 0 without one; -1 when
-- something that its group read has changed, -2 when its time is too far off: then nothing was
-- written.
-- Errors: FFCALLVERSION. Events: those given.
-- ff_commit_freeing is the same and may run at maxmemory: for what ends work, removes it or hands it out.

local GROUP_ARGUMENTS, ITEM_ARGUMENTS, CHECK_ARGUMENTS = 7, 5, 3
local CHANGED, TIME_OFF = -1, -2

-- In place of a record that stays as it is.
local KEPT = '='

-- Arguments that go with one command at most; even, since some come in pairs.
local PORTION = 2000

-- Notes of grown output that are kept for listeners.
local TOLD_KEPT = 256

-- What must be so, beside the records: whether it is.
local CHECKS = {
  A = function(key, field) -- a hash has no such field
    return redis.call('HEXISTS', key, field) == 0
  end,
  G = function(key, record) -- an idempotency key stands for what was read; empty: for nothing
    return (redis.call('GET', key) or '') == record
  end,
  S = function(key, count) -- so many rows were laid ready
    return redis.call('HLEN', key) == tonumber(count)
  end,
}

-- Takes a queue that has no entries out of what names those that have some.
local function forget_if_empty(key, command, naming, name)
  if redis.call('EXISTS', key) == 0 then
    redis.call(command, naming, name)
  end
end

-- A change that does so: what names queues, the name there.
local function left_queue(command)
  return {
    count = 2,
    write = function(key, args, from)
      forget_if_empty(key, command, args[from], args[from + 1])
    end,
    gather = function(batch, key, args, from)
      batch.emptied[args[from] .. key] = { key, command, args[from], args[from + 1] }
    end,
  }
end

-- A change that is one command with all its arguments behind the key.
local function command(name, count)
  return {
    count = count,
    write = function(key, args, from, to)
      for first = from, to, PORTION do
        redis.call(name, key, unpack(args, first, math.min(first + PORTION - 1, to)))
      end
    end,
  }
end

-- Index changes by letter: how many arguments one has, and what it writes. What several groups of a
-- call do to one sorted set, list or count is gathered and written once.
local CHANGES = {
  P = command('SET', 1), -- a value of its own
  H = command('HSET', 2), -- fields of a hash: name, value
  E = command('HDEL', 1), -- fields of a hash go: name
  R = command('RPUSH', 1), -- the end of a list
  Z = command('ZADD', 2), -- enters a sorted set: score, member
  X = command('ZREM', 1), -- leaves a sorted set: member
  Q = left_queue('ZREM'), -- left a queue, which may be empty now: classes of its lane that have entries, class
  O = left_queue('HDEL'), -- the same: what queues require, queue
  Y = { -- a class of a lane has an entry: score, class
    count = 2,
    write = function(key, args, from, to)
      redis.call('ZADD', key, 'LT', unpack(args, from, to))
    end,
  },
  W = { -- wakes who waits for a queue: partition
    count = 1,
    write = function(key, args, from, to)
      push_wakes(key, args[from], to - from + 1)
    end,
  },
  C = { -- was submitted: list of hours, entry
    count = 2,
    write = function(key, args, from, to)
      append_submits(key, args[from], { unpack(args, from + 1, to) })
    end,
    gather = function(batch, key, args, from, to)
      batch.hours[key] = args[from]
      append_all(under(batch.submitted, key), args, from + 1, to)
    end,
  },
  I = { -- a count of members changes: field, by how much
    count = 2,
    write = function(key, args, from, to)
      for i = from, to, 2 do
        add_to_flow(key, args[i], args[i + 1])
      end
    end,
    gather = function(batch, key, args, from, to)
      for i = from, to, 2 do
        recount(batch.flows, key, args[i], tonumber(args[i + 1]))
      end
    end,
  },
  J = { -- a count of lanes changes: field, by how much
    count = 2,
    write = function(key, args, from, to)
      for i = from, to, 2 do
        add_to_lane(key, args[i], args[i + 1])
      end
    end,
    gather = function(batch, key, args, from, to)
      for i = from, to, 2 do
        recount(batch.lanes, key, args[i], tonumber(args[i + 1]))
      end
    end,
  },
  N = { -- a field of a hash, if it is not there: name, value
    count = 2,
    write = function(key, args, from, to)
      for i = from, to, 2 do
        redis.call('HSETNX', key, args[i], args[i + 1])
      end
    end,
  },
  F = { -- frames: id, body
    count = 2,
    write = function(key, args, from, to)
      for i = from, to, 2 do
        redis.call('XADD', key, args[i], 'f', args[i + 1])
      end
    end,
  },
  K = { -- only the newest frames stay: how many
    count = 1,
    write = function(key, args, from)
      redis.call('XTRIM', key, 'MAXLEN', args[from])
    end,
  },
  U = { -- all of it goes: when
    count = 1,
    write = function(key, args, from)
      expire_at(key, args[from])
    end,
  },
  T = { -- output has grown: whoever tails it is told
    count = 1,
    write = function(key, args, from, to)
      for i = from, to do
        redis.call('XADD', key, 'MAXLEN', '~', TOLD_KEPT, '0-*', 'x', args[i])
      end
    end,
  },
  D = { -- an idempotency key: record that begins with its last instant
    count = 1,
    write = function(key, args, from)
      redis.call('SET', key, args[from])
      expire_at(key, struct.unpack('>I6', args[from]))
    end,
  },
  M = { -- rows that were laid ready take their place: where they are
    count = 1,
    write = function(key, args, from)
      redis.call('RENAME', args[from], key)
      redis.call('PERSIST', key)
    end,
  },
}

local function gather_into(list)
  return function(batch, key, args, from, to)
    append_all(under(batch[list], key), args, from, to)
  end
end

CHANGES.Z.gather = gather_into('entered')
CHANGES.X.gather = gather_into('left')
CHANGES.W.gather = gather_into('woken')

-- Makes the index changes that stand from `at` on, or gathers them.
local function change_indexes(args, at, behind, batch)
  while at < behind do
    local letter, key = args[at], args[at + 1]
    local kind, from, to = CHANGES[letter], at + 2, nil
    if kind then
      to = at + 1 + kind.count
    else
      kind, from = CHANGES[string.upper(letter)], at + 3
      to = at + 2 + tonumber(args[at + 2])
    end
    if batch and kind.gather then
      kind.gather(batch, key, args, from, to)
    else
      kind.write(key, args, from, to)
    end
    at = to + 1
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
  for _, queue in pairs(batch.emptied) do
    forget_if_empty(unpack(queue))
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

-- Where the parts of the group at `at` stand: items, checks, keys that must not be there, index
-- changes, and what follows it.
local function parts_of(args, at)
  local items = at + GROUP_ARGUMENTS
  local checks = items + ITEM_ARGUMENTS * tonumber(args[at + 3])
  local absent = checks + CHECK_ARGUMENTS * tonumber(args[at + 4])
  local changes = absent + tonumber(args[at + 5])
  return items, checks, absent, changes, changes + tonumber(args[at + 6])
end

-- Whether none of the keys from one argument to another is there, or was made by the same call.
local function are_absent(args, from, to, touched)
  for first = from, to, PORTION do
    if redis.call('EXISTS', unpack(args, first, math.min(first + PORTION - 1, to))) > 0 then
      return false
    end
  end
  if touched then
    for i = from, to do
      if touched[args[i]] then
        return false
      end
    end
  end
  return true
end

-- Why the group at `at` may not be written; nil when all that it read is still so. `touched`: what
-- earlier groups of the call change.
local function hindrance(args, at, now, behind, ahead, touched)
  local given, not_after = tonumber(args[at + 1]), args[at + 2]
  if given < now - behind or given > now + ahead then
    return TIME_OFF
  end
  if not_after ~= '0' and now >= tonumber(not_after) then
    return CHANGED
  end
  local items, checks, absent, changes = parts_of(args, at)
  for item = items, checks - 1, ITEM_ARGUMENTS do
    local key = args[item]
    if (touched and touched[key]) or redis.call('GETRANGE', key, 0, 11) ~= args[item + 1] then
      return CHANGED
    end
  end
  for check = checks, absent - 1, CHECK_ARGUMENTS do
    local key = args[check + 1]
    if (touched and touched[key]) or not CHECKS[args[check]](key, args[check + 2]) then
      return CHANGED
    end
  end
  if absent < changes and not are_absent(args, absent, changes - 1, touched) then
    return CHANGED
  end
  return nil
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

-- Writes the record of one item, whose last event has this number.
local function write_record(args, item, number)
  local core, record = args[item], args[item + 2]
  if record == '' then
    local stem = string.sub(core, 1, -5)
    forget_frames(stem)
    redis.call('DEL', core, stem .. 'payload', stem .. 'results', stem .. 'attempts', stem .. 'beside',
      stem .. 'tally')
  elseif args[item + 3] ~= '' then
    redis.call('SET', core, struct.pack('>I6', number) .. record)
  elseif record ~= KEPT then
    redis.call('SET', core, record)
  end
end

-- A group of one item, the most frequent call.
local function commit_one(call)
  local args, at = call.args, call.at
  local item, _, _, changes, behind = parts_of(args, at)
  local number, events = 0, args[item + 3]
  if events ~= '' then
    local count = tonumber(args[item + 4])
    number = append_events(call.prefix, args[at], events, count) + count - 1
  end
  write_record(args, item, number)
  change_indexes(args, changes, behind)
  return { call.now, number }
end

-- Notes where the items of a group stand that may be written, or why none may. Gives what follows it.
local function examine(call, at)
  local args, touched = call.args, call.touched
  local why = hindrance(args, at, call.now, call.behind, call.ahead, touched)
  local items, checks, absent, changes, behind = parts_of(args, at)
  for item = items, checks - 1, ITEM_ARGUMENTS do
    call.count = call.count + 1
    call.reply[call.count + 1] = why or 0
    if not why then
      call.places[call.count], call.homes[call.count] = item, args[at]
      -- All are looked at before one is written: what an earlier group changes is no longer as read.
      if args[item + 2] ~= KEPT then
        touched[args[item]] = true
      end
    end
  end
  if not why then
    append(call.changes, changes, behind)
    for check = checks, absent - 1, CHECK_ARGUMENTS do
      if args[check] == 'G' then
        touched[args[check + 1]] = true
      end
    end
  end
  return behind
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
local function write_events(call)
  local args, prefix, open = call.args, call.prefix, {}
  for number = 1, call.count do
    local item, home = call.places[number], call.homes[number]
    if item and args[item + 3] ~= '' then
      local count = tonumber(args[item + 4])
      local entry = open[home]
      if entry and entry.count + count > NUMBERS then
        write_entry(prefix, home, entry, call.reply)
        entry = nil
      end
      if not entry then
        entry = { events = {}, items = {}, counts = {}, count = 0 }
        open[home] = entry
      end
      append(entry.events, args[item + 3])
      append(entry.items, number)
      append(entry.counts, count)
      entry.count = entry.count + count
    end
  end
  for home, entry in pairs(open) do
    write_entry(prefix, home, entry, call.reply)
  end
end

-- Groups of any size.
local function commit_all(call, groups)
  local args, at = call.args, call.at
  call.touched, call.places, call.homes, call.changes, call.count = {}, {}, {}, {}, 0
  call.reply = { call.now }
  for _ = 1, groups do
    at = examine(call, at)
  end
  write_events(call)
  for number = 1, call.count do
    if call.places[number] then
      write_record(args, call.places[number], call.reply[number + 1])
    end
  end
  local batch = groups > 1 and { entered = {}, left = {}, emptied = {}, woken = {}, submitted = {}, hours = {},
    flows = {}, lanes = {} }
  for i = 1, #call.changes, 2 do
    change_indexes(args, call.changes[i], call.changes[i + 1], batch)
  end
  if batch then
    write_batch(batch)
  end
  return call.reply
end

local function commit(keys, args)
  local prefix = args[2]
  local call = { args = args, prefix = prefix, now = clock(prefix), behind = tonumber(args[3]),
    ahead = tonumber(args[4]), at = 6 }
  if args[5] ~= '1' or args[9] ~= '1' then
    return commit_all(call, tonumber(args[5]))
  end
  local why = hindrance(args, call.at, call.now, call.behind, call.ahead)
  return why and { call.now, why } or commit_one(call)
end

serve('ff_commit', {}, commit)
serve('ff_commit_freeing', { 'allow-oom' }, commit)

-- ff_commit: performs changes that the machine decided, each only if what it read is unchanged.
-- Keys: one of the partition, for routing. In a cluster all items are of one partition, and the
-- keys are all that they touch: where their slot moves to another node, the server refuses the
-- whole call rather than a part of it.
-- Arguments: call version; prefix; how far the time of a decision may lie behind and ahead of the
-- store's clock; whether to push wakes here (1) or leave that to the caller (0); number of items. Each item: partition; uuid as text and as 16 bytes; revision that was read (6 bytes, empty: must be
-- absent); instant from which on it must not happen any more (0 for none); the time
-- that the machine was given; idempotency key and the
-- record that was read under it (both empty: not looked at); new record (empty: remove; with an
-- event its first 6 bytes are left out and hold the event's number); event (empty: none); number
-- of index changes, each a letter and two arguments (see `change`).
-- Reply: the store's time, then for each item the number of its event, 0 without one; -1 when
-- something it read has changed, -2 when its time is too far off: then nothing was written.
-- Errors: FFCALLVERSION. Events: those given.
-- ff_commit_freeing is the same and may run at maxmemory: for what ends work or removes it.

local ITEM_ARGUMENTS = 11

-- Changes of one partition, gathered so that each index is written once.
local function new_gathering(prefix, partition)
  return {
    index = index_key(prefix, partition),
    events = {}, count = 0,
    leases = {}, leases_gone = {}, timers = {}, timers_gone = {},
    entered = {}, left = {}, created = {},
  }
end

local function append(list, a, b)
  local n = #list
  list[n + 1] = a
  if b then
    list[n + 2] = b
  end
end

local function under(map, key)
  local list = map[key]
  if not list then
    list = {}
    map[key] = list
  end
  return list
end

-- One index change of an execution.
local function change(gathering, execution, raw, prefix, partition, letter, x, y)
  if letter == 'Q' then -- enters a queue: name, score
    append(under(gathering.entered, x), y, raw)
  elseif letter == 'U' then -- leaves a queue: name
    append(under(gathering.left, x), raw)
  elseif letter == 'L' then -- lease runs out: instant
    append(gathering.leases, x, raw)
  elseif letter == 'M' then -- lease is over
    append(gathering.leases_gone, raw)
  elseif letter == 'T' then -- timer: instant
    append(gathering.timers, x, raw)
  elseif letter == 'S' then -- no timer
    append(gathering.timers_gone, raw)
  elseif letter == 'C' then -- created: hour, entry
    append(under(gathering.created, x), y)
  elseif letter == 'P' then -- payload beside the record
    redis.call('SET', execution .. ':payload', x)
  elseif letter == 'R' then -- result beside the record: attempt index, content
    redis.call('HSET', execution .. ':results', x, y)
  elseif letter == 'A' then -- an attempt that another has replaced
    redis.call('RPUSH', execution .. ':attempts', x)
  elseif letter == 'K' then -- the capabilities of a class
    redis.call('HSETNX', gathering.index .. ':classes', x, y)
  elseif letter == 'D' then -- idempotency key: key, record that begins with its last instant
    local key = prefix .. ':idem:{fp:' .. partition .. '}:' .. x
    redis.call('SET', key, y)
    expire_at(key, struct.unpack('>I6', y))
  end
end

local function flush(prefix, partition, gathering, wakes)
  local index = gathering.index
  if #gathering.leases > 0 then
    redis.call('ZADD', index .. ':leases', unpack(gathering.leases))
  end
  if #gathering.leases_gone > 0 then
    redis.call('ZREM', index .. ':leases', unpack(gathering.leases_gone))
  end
  if #gathering.timers > 0 then
    redis.call('ZADD', index .. ':timers', unpack(gathering.timers))
  end
  if #gathering.timers_gone > 0 then
    redis.call('ZREM', index .. ':timers', unpack(gathering.timers_gone))
  end
  for queue, members in pairs(gathering.left) do
    redis.call('ZREM', queue_key(index, queue), unpack(members))
  end
  for queue, entries in pairs(gathering.entered) do
    redis.call('ZADD', queue_key(index, queue), unpack(entries))
    local best = entries[1]
    for i = 3, #entries, 2 do
      if tonumber(entries[i]) < tonumber(best) then
        best = entries[i]
      end
    end
    redis.call('ZADD', index .. ':ready', 'LT', best, queue)
    if wakes then
      push_wakes(prefix, partition, queue, #entries / 2)
    end
  end
  for hour, entries in pairs(gathering.created) do
    local bucket = index .. ':created:' .. hour
    if redis.call('RPUSH', bucket, unpack(entries)) == #entries then
      redis.call('ZADD', index .. ':created', hour, hour)
    end
  end
end

local CHANGED, TIME_OFF = -1, -2

-- Why the item at `at` may not be written; nil when all that it read is still so.
local function hindrance(prefix, args, at, now, behind, ahead)
  local partition, uuid, revision, not_after = args[at], args[at + 1], args[at + 3], args[at + 4]
  local given, key, record = tonumber(args[at + 5]), args[at + 6], args[at + 7]
  if given < now - behind or given > now + ahead then
    return TIME_OFF
  end
  if not_after ~= '0' and now >= tonumber(not_after) then
    return CHANGED
  end
  local core = execution_key(prefix, partition, uuid) .. ':core'
  if redis.call('GETRANGE', core, 6, 11) ~= revision then
    return CHANGED
  end
  if key ~= '' and (redis.call('GET', prefix .. ':idem:{fp:' .. partition .. '}:' .. key) or '') ~= record then
    return CHANGED
  end
  return nil
end

local function remove(execution)
  redis.call('DEL', execution .. ':core', execution .. ':payload', execution .. ':results',
    execution .. ':attempts')
end

-- Writes one item and gathers its index changes.
local function perform(prefix, args, item, number, gathering)
  local partition, uuid, raw = args[item], args[item + 1], args[item + 2]
  local record, event = args[item + 8], args[item + 9]
  local execution = execution_key(prefix, partition, uuid)
  if event ~= '' then
    append(gathering.events, framed(event))
  end
  if record == '' then
    remove(execution)
  elseif event ~= '' then
    redis.call('SET', execution .. ':core', struct.pack('>I6', number) .. record)
  else
    redis.call('SET', execution .. ':core', record)
  end
  local first = item + ITEM_ARGUMENTS
  for c = first, first + 3 * tonumber(args[item + 10]) - 1, 3 do
    change(gathering, execution, raw, prefix, partition, args[c], args[c + 1], args[c + 2])
  end
end

local function commit(keys, args)
  local refused = not_served(args)
  if refused then
    return refused
  end
  local prefix, behind, ahead = args[2], tonumber(args[3]), tonumber(args[4])
  local wakes, count = args[5] == '1', tonumber(args[6])
  local now = clock(prefix, args[7])
  local reply, places, gatherings = { now }, {}, {}
  local at = 7
  for i = 1, count do
    local partition = args[at]
    local why = hindrance(prefix, args, at, now, behind, ahead)
    reply[i + 1] = why
    if not why then
      places[i] = at
      local gathering = gatherings[partition]
      if not gathering then
        gathering = new_gathering(prefix, partition)
        gatherings[partition] = gathering
      end
      if args[at + 9] ~= '' then
        gathering.count = gathering.count + 1
      end
    end
    at = at + ITEM_ARGUMENTS + 3 * tonumber(args[at + 10])
  end
  for partition, gathering in pairs(gatherings) do
    if gathering.count > 0 then
      gathering.first = take_numbers(prefix, partition, gathering.count)
      gathering.number = gathering.first
    end
  end
  for i = 1, count do
    local item = places[i]
    if item then
      local gathering, number = gatherings[args[item]], 0
      if args[item + 9] ~= '' then
        number = gathering.number
        gathering.number = number + 1
      end
      perform(prefix, args, item, number, gathering)
      reply[i + 1] = number
    end
  end
  for partition, gathering in pairs(gatherings) do
    if gathering.first then
      append_events(prefix, partition, gathering.first, gathering.events)
    end
    flush(prefix, partition, gathering, wakes)
  end
  return reply
end

redis.register_function('ff_commit', commit)
redis.register_function{ function_name = 'ff_commit_freeing', callback = commit, flags = { 'allow-oom' } }

-- ff_events: the logs of some homes of one node, each after a number.
-- Keys: one of the node, for routing. Arguments: call version; prefix; most entries of all homes
-- together, though one of each; 0 to learn only where the logs end; then home, number and the mark of the
-- entry that holds the number, or '' where it is not known, in turn. Once enough bytes have been read, the
-- homes that are left are not looked at.
-- Reply: for each home that has something to tell: its tag, the newest event number if only that was
-- asked for, else 1 when the log goes on, or may, behind the entries that follow, if any, 2 when it ends before the
-- number that was given or holds another entry there, so that it must have been lost; the entries with
-- the number of their last event and their bytes; of an end, the number again and the mark of its entry,
-- if that is kept.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

-- The number of the newest event, kept or not, and its entry if that is kept.
local function newest(stream)
  if redis.call('EXISTS', stream) == 0 then
    return 0
  end
  local id, entry
  local about = redis.call('XINFO', 'STREAM', stream)
  for i = 1, #about, 2 do
    if about[i] == 'last-generated-id' then
      id = about[i + 1]
    elseif about[i] == 'last-entry' then
      entry = about[i + 1]
    end
  end
  return entry_number(id) * NUMBERS, entry and entry[1] == id and entry[2][2]
end

-- Bytes of entries after which a call that has found something reads no further log, and entries that it
-- reads of one before it knows how large they are: to copy so much takes a fraction of a millisecond.
local BYTES_MOST, ENTRIES_FIRST = 65536, 8

-- Up to `most` entries after a number, added to an answer; gives how many were added and how many bytes
-- were read, and notes in the answer whether the log goes on behind them.
local function add_entries(answer, stream, after, mark, most)
  local from, next = entry_of(after), entry_of(after + 1)
  -- The entry that holds the number is read along: while it is kept, the log is the one that was seen.
  local entries = redis.call('XRANGE', stream, entry_id(from), '+', 'COUNT', most + 2)
  local bytes = 0
  for _, entry in ipairs(entries) do
    bytes = bytes + #entry[2][2]
  end
  if #entries == 0 and after > 0 and after > newest(stream) then
    answer[2] = 2
    return 0, bytes
  end
  if mark ~= '' and #entries > 0 and entry_number(entries[1][1]) == from
    and mark_of(entries[1][2][2]) ~= mark then
    answer[2] = 2
    return 0, bytes
  end
  -- It may hold later numbers too.
  local passed = #entries > 0 and entry_number(entries[1][1]) < next and 1 or 0
  local count = math.min(#entries - passed, most)
  answer[2] = #entries - passed > most and 1 or 0
  for i = passed + 1, passed + count do
    append(answer, entry_number(entries[i][1]) * NUMBERS, entries[i][2][2])
  end
  return count, bytes
end

-- What all logs have after the given numbers: each gets an equal share of the entries, and what some
-- leave of theirs goes to those that have more.
local function read_logs(prefix, args, most)
  local first = math.min(ENTRIES_FIRST, math.floor(most / ((#args - 3) / 3)))
  local reply, longer, left, bytes = {}, {}, most, 0
  local function read(answer, after, mark, share)
    local added, copied = add_entries(answer, log_key(prefix, answer[1]), after, mark, share)
    left, bytes = left - added, bytes + copied
  end
  -- A call that found nothing looks at all its logs, or whoever goes on would never come to an end.
  local function goes_on()
    return bytes < BYTES_MOST or left == most
  end
  for h = 4, #args, 3 do
    local answer = { args[h], 1 }
    if goes_on() then
      read(answer, tonumber(args[h + 1]), args[h + 2], math.max(1, first))
    end
    if #answer > 2 or answer[2] > 0 then
      append(reply, answer)
    end
    if #answer > 2 and answer[2] == 1 then
      append(longer, answer)
    end
  end
  for i, answer in ipairs(longer) do
    local share = math.floor(left / (#longer - i + 1))
    if share > 0 and goes_on() then
      read(answer, answer[#answer - 1], '', share)
    end
  end
  return reply
end

local function read_ends(prefix, args)
  local reply = {}
  for h = 4, #args, 3 do
    local number, entry = newest(log_key(prefix, args[h]))
    if entry then
      append(reply, { args[h], number, number, mark_of(entry) })
    elseif number > 0 then
      append(reply, { args[h], number })
    end
  end
  return reply
end

local function events(keys, args)
  local prefix, most = args[2], tonumber(args[3])
  if most == 0 then
    return read_ends(prefix, args)
  end
  return read_logs(prefix, args, most)
end

serve('ff_events', { 'no-writes', 'allow-cross-slot-keys' }, events)

-- The event log of a home: one stream entry for each call that writes events, each event
-- preceded by its length in 3 bytes. The stream counts its entries itself, `0-1`, `0-2` and so on;
-- the last event of entry n has the number n * NUMBERS, the one before it one less.

local NUMBERS = @EVENTS_OF_A_CALL@

-- What a mark is made of.
local MARKED_BYTES = @MARKED_BYTES@

-- In place of a number of the event before: it is the one before in the same entry.
local THE_ONE_BEFORE = @THE_ONE_BEFORE@

local function log_key(prefix, home)
  return prefix .. ':ev:' .. home
end

-- The entry that holds the event with a number.
local function entry_of(number)
  return math.ceil(number / NUMBERS)
end

local function entry_id(entry)
  return string.format('0-%.0f', entry)
end

local function entry_number(id)
  return tonumber(string.sub(id, 3))
end

-- Tells entries of one number apart: how a log that has lost its last entries, and has got others in
-- their place, is known from the one that was seen. The first event begins with what it is about and when.
local function mark_of(entry)
  return string.sub(redis.sha1hex(#entry .. ':' .. string.sub(entry, 1, MARKED_BYTES)), 1, 4)
end

-- Appends `count` framed events: the number of the first. More than an entry numbers would run into
-- the numbers of the entry before.
local function append_events(prefix, home, events, count)
  if count > NUMBERS then
    error('an entry of the log has numbers for ' .. NUMBERS .. ' events, not for ' .. count)
  end
  local id = redis.call('XADD', log_key(prefix, home), '0-*', 'e', events)
  return entry_number(id) * NUMBERS - count + 1
end

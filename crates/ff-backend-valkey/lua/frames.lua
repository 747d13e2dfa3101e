-- ff_frames: output of one attempt, and the records that it belongs to, all of one moment.
-- Keys: record; list of attempts; then one stream for each mode. Arguments: call version; prefix;
-- index of the attempt; most frames of a mode; bytes after which none is added; then for
-- each mode the milliseconds and the number of the first frame wanted, the id of the last, and how
-- long a frame lasts in milliseconds (0: as long as it is stored).
-- Reply: the store's time; record; attempt and the one after it, as far as the list has them; then
-- for each mode the id of the oldest frame that lasts, 1 when older ones are stored, 1 when none in
-- range is left out, and the frames, each with id and body.
-- Errors: FFCALLVERSION. Events: none.

-- Frames that one step reads.
local FRAMES_STEP = 100

-- Adds frames of a stream to `found`; 1 when none in range is left out, else 0.
local function read_frames(found, stream, first, last, most, most_bytes)
  local count, bytes = 0, 0
  while true do
    local entries = redis.call('XRANGE', stream, first, last, 'COUNT', FRAMES_STEP)
    for _, entry in ipairs(entries) do
      if count == most or bytes >= most_bytes then
        return 0
      end
      local body = entry[2][2]
      append(found, entry[1], body)
      count, bytes = count + 1, bytes + #body
    end
    if #entries < FRAMES_STEP then
      return 1
    end
    first = '(' .. entries[#entries][1]
  end
end

local function frames(keys, args)
  local now, index = clock(args[2]), tonumber(args[3])
  local reply = { now, redis.call('GET', keys[1]), redis.call('LINDEX', keys[2], index),
    redis.call('LINDEX', keys[2], index + 1) }
  for mode = 3, #keys do
    local at = 6 + 4 * (mode - 3)
    local ms, seq, last, lasts = tonumber(args[at]), args[at + 1], args[at + 2], tonumber(args[at + 3])
    local stored = redis.call('XRANGE', keys[mode], '-', '+', 'COUNT', 1)[1]
    local oldest = stored
    if stored and lasts > 0 then
      local from = math.max(now - lasts + 1, 0)
      oldest = redis.call('XRANGE', keys[mode], string.format('%.0f-0', from), '+', 'COUNT', 1)[1]
      if ms < from then
        ms, seq = from, '0'
      end
    end
    local faded = stored and not (oldest and oldest[1] == stored[1])
    local found = { oldest and oldest[1] or false, faded and 1 or 0, 1 }
    if oldest then
      local first = string.format('%.0f-%s', ms, seq)
      found[3] = read_frames(found, keys[mode], first, last, tonumber(args[4]), tonumber(args[5]))
    end
    reply[mode + 2] = found
  end
  return reply
end

serve('ff_frames', { 'no-writes' }, frames)

-- ff_due: when time has something to do in the homes of one node.
-- Keys: one of the node, for routing. Arguments: call version; prefix; most entries of an index; how
-- many homes without executions are asked together first, since most have no timers (0 in a cluster,
-- where a command must not name keys of several slots); then the homes.
-- Reply: the time, then for each home that has entries a list: its tag, then instant and member of
-- the earliest entries of leases and timers. With `most` 0 only the earliest of each.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

local function earliest(list, key, most)
  local rows = redis.call('ZRANGE', key, 0, most, 'WITHSCORES')
  for i = 1, #rows, 2 do
    append(list, rows[i + 1], rows[i])
  end
end

-- Adds what a home has to the reply.
local function look(reply, prefix, home, most)
  local index, entry = index_key(prefix, home), { home }
  if has_executions(home) then
    earliest(entry, index .. ':leases', most)
  end
  earliest(entry, index .. ':timers', most)
  if #entry > 1 then
    append(reply, entry)
  end
end

local function look_if_any(reply, prefix, homes, most)
  local timers = {}
  for i, home in ipairs(homes) do
    timers[i] = index_key(prefix, home) .. ':timers'
  end
  if #homes > 0 and redis.call('EXISTS', unpack(timers)) > 0 then
    for _, home in ipairs(homes) do
      look(reply, prefix, home, most)
    end
  end
end

local function due(keys, args)
  local prefix, most, together = args[2], tonumber(args[3]), tonumber(args[4])
  local reply, others = { clock(prefix) }, {}
  for h = 5, #args do
    local home = args[h]
    if together == 0 or has_executions(home) then
      look(reply, prefix, home, most)
    else
      append(others, home)
      if #others == together then
        look_if_any(reply, prefix, others, most)
        others = {}
      end
    end
  end
  look_if_any(reply, prefix, others, most)
  return reply
end

serve('ff_due', { 'no-writes', 'allow-cross-slot-keys' }, due)

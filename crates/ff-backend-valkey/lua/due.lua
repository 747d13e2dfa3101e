-- ff_due: when time has something to do in each partition of one node.
-- Keys: one of the node, for routing. Arguments: call version; prefix; most entries of a partition;
-- then the partitions.
-- Reply: for each partition its time, then instant and member of the earliest entries of leases
-- and timers. With `most` 0 only the earliest of each.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

local function earliest(list, key, most)
  local rows = redis.call('ZRANGE', key, 0, most, 'WITHSCORES')
  for i = 1, #rows, 2 do
    append(list, rows[i + 1], rows[i])
  end
end

local function due(keys, args)
  local prefix, most = args[2], tonumber(args[3])
  local reply = {}
  for p = 4, #args do
    local home = partition_home(args[p])
    local index = index_key(prefix, home)
    local entry = { args[p], clock(prefix, home) }
    earliest(entry, index .. ':leases', most)
    earliest(entry, index .. ':timers', most)
    reply[#reply + 1] = entry
  end
  return reply
end

serve('ff_due', { 'no-writes', 'allow-cross-slot-keys' }, due)

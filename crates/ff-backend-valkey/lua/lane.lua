-- ff_lane: what the partitions of one node hold of a lane.
-- Keys: one of the node, for routing. Arguments: call version; prefix; namespace; lane; most entries
-- of a queue; number of states; the states; then the partitions by their tags.
-- Reply: the store's time, then for each partition that holds any a list: its tag; how many are in
-- each of the states; the ids that stand first in each queue.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

-- Adds the front of each queue of the lane to the entry of a partition.
local function fronts_of(index, queues, most, entry)
  for _, class in ipairs(redis.call('ZRANGE', ready_key(index, queues), 0, -1)) do
    for _, raw in ipairs(redis.call('ZRANGE', queue_key(index, queues .. class), 0, most - 1)) do
      append(entry, raw)
    end
  end
end

local function lane(keys, args)
  local prefix, namespace, name, most, states = args[2], args[3], args[4], tonumber(args[5]), tonumber(args[6])
  local fields, queues = {}, namespace .. '/' .. name .. ':'
  for s = 1, states do
    fields[s] = lane_field(args[6 + s], name)
  end
  local reply = { clock(prefix) }
  for p = 7 + states, #args do
    local index, entry, any = index_key(prefix, args[p]), { args[p] }, false
    local counts = redis.call('HMGET', lanes_key(index, namespace), unpack(fields))
    for s = 1, states do
      any = any or counts[s]
      append(entry, counts[s] or 0)
    end
    if any then
      fronts_of(index, queues, most, entry)
      append(reply, entry)
    end
  end
  return reply
end

serve('ff_lane', { 'no-writes', 'allow-cross-slot-keys' }, lane)

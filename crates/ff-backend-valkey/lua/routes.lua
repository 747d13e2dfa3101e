-- ff_routes: queues of some partitions of one node in which something stands that requires
-- capabilities, each name once, in the order of a digest of the names.
-- Keys: one of the node, for routing. Arguments: call version; prefix; digest behind which to begin;
-- most queues; then the partitions by their tags.
-- Reply: digest, name and required capabilities of each.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

-- 48 bits of a name: numbers are compared the same way everywhere, strings are not.
local function digest_of(queue)
  return tonumber(string.sub(redis.sha1hex(queue), 1, 12), 16)
end

-- Notes the queues of one partition.
local function note_queues(index, behind, known, found)
  for _, queue in ipairs(redis.call('HKEYS', index .. ':required')) do
    if not known[queue] then
      local digest = digest_of(queue)
      if digest <= behind then
        known[queue] = true
      elseif redis.call('EXISTS', queue_key(index, queue)) == 1 then
        known[queue] = true
        found[#found + 1] = { digest = digest, name = queue, index = index }
      end
    end
  end
end

local function routes(keys, args)
  local prefix, behind, most = args[2], tonumber(args[3]), tonumber(args[4])
  local known, found, reply = {}, {}, {}
  for p = 5, #args do
    note_queues(index_key(prefix, args[p]), behind, known, found)
  end
  table.sort(found, function(a, b) return a.digest < b.digest end)
  for i = 1, math.min(most, #found) do
    append(reply, found[i].digest, found[i].name)
    append(reply, redis.call('HGET', found[i].index .. ':required', found[i].name) or '')
  end
  return reply
end

serve('ff_routes', { 'no-writes', 'allow-cross-slot-keys' }, routes)

-- ff_sweep: shortens the lists of submits. Entries of executions that are gone are dropped; those of
-- executions that outlive the lists go to the index of old ones, by their time.
-- Keys: lists of hours, list of the hour in question, index of old ones. Arguments: call version;
-- prefix; partition; the hour; most entries of one call.
-- Reply: how many entries were looked at.
-- Errors: FFCALLVERSION. Events: none.

local function sweep(keys, args)
  local hours, bucket, old = keys[1], keys[2], keys[3]
  local prefix, partition, hour, most = args[2], args[3], args[4], tonumber(args[5])
  local entries = redis.call('LRANGE', bucket, 0, most - 1)
  local kept = {}
  for _, entry in ipairs(entries) do
    local raw = string.sub(entry, 7)
    if redis.call('EXISTS', execution_key(prefix, partition_home(partition), uuid_text(raw)) .. ':core') == 1 then
      append(kept, string.format('%.0f', struct.unpack('>I6', entry)), raw)
    end
  end
  if #kept > 0 then
    redis.call('ZADD', old, unpack(kept))
  end
  redis.call('LTRIM', bucket, #entries, -1)
  if redis.call('EXISTS', bucket) == 0 then
    redis.call('ZREM', hours, hour)
  end
  return #entries
end

serve('ff_sweep', { 'allow-oom' }, sweep)

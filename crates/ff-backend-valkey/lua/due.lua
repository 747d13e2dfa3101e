-- ff_due: when time has something to do in the homes of one node.
-- Keys: one of the node, for routing. Arguments: call version; prefix; how many entries of an index are
-- left out, the earliest first; most of those behind them, of which one more comes; how
-- many homes without executions are asked together first, since most have no timers (0 in a cluster,
-- where a command must not name keys of several slots); then the homes.
-- Reply: the time; how many namespaces have homes, if the home of all is among those asked for, else -1;
-- then for each home that has entries a list: its tag, then two lists, of its leases and of its timers:
-- instant and member of each.
-- Errors: FFCALLVERSION. Events: none. Reads every slot of its node, and only reads.

local function earliest(key, skipped, most)
  local list, rows = {}, redis.call('ZRANGE', key, skipped, skipped + most, 'WITHSCORES')
  for i = 1, #rows, 2 do
    append(list, rows[i + 1], rows[i])
  end
  return list
end

-- Adds what a home has to the reply.
local function look(reply, asked, home)
  local index, leases = index_key(asked.prefix, home), {}
  if has_executions(home) then
    leases = earliest(index .. ':leases', asked.skipped, asked.most)
  end
  local timers = earliest(index .. ':timers', asked.skipped, asked.most)
  if #leases + #timers > 0 then
    append(reply, { home, leases, timers })
  end
end

local function look_if_any(reply, asked, homes)
  local timers = {}
  for i, home in ipairs(homes) do
    timers[i] = index_key(asked.prefix, home) .. ':timers'
  end
  if #homes > 0 and redis.call('EXISTS', unpack(timers)) > 0 then
    for _, home in ipairs(homes) do
      look(reply, asked, home)
    end
  end
end

-- Of all calls of a look one learns whether there are homes that its caller does not know, so that an idle
-- engine has no other question.
local EVERYBODYS = '{g}'

local function due(keys, args)
  local asked = { prefix = args[2], skipped = tonumber(args[3]), most = tonumber(args[4]) }
  local together = tonumber(args[5])
  local reply, others = { clock(asked.prefix), -1 }, {}
  for h = 6, #args do
    local home = args[h]
    if home == EVERYBODYS then
      reply[2] = redis.call('SCARD', asked.prefix .. ':homes:' .. home)
    end
    if together == 0 or has_executions(home) then
      look(reply, asked, home)
    else
      append(others, home)
      if #others == together then
        look_if_any(reply, asked, others)
        others = {}
      end
    end
  end
  look_if_any(reply, asked, others)
  return reply
end

serve('ff_due', { 'no-writes', 'allow-cross-slot-keys' }, due)

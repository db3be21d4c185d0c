-- All of this meeting's log goes. If it has subscribers, a new one takes its place, and they are told. Returns whether there
-- was one.

local m = find(meeting)
if not m then
  return 0
end
local read = redis.call('HGETALL', m.langs)
charge(m, 0 - m.bytes, m.first - m.last - 1)
redis.call('ZREM', order_of(m.account), m.name)
finish(m)
if #read > 0 then
  local fresh = begin(m.account, m.unrecorded)
  redis.call('HSET', fresh.langs, unpack(read))
  redis.call('PUBLISH', fresh.channel, table.concat({fresh.epoch, '0', whole(now), '-'}, ' ') .. '\n')
end
return 1

-- The caller is there. Let go of what has expired. own arguments: for how long it counts as being there in ms, how
-- many meetings to look at.

if has_heard_of_nobody() then
  redis.call('SET', prefix .. 'grace', '1', 'PX', ARGV[OWN])
end
redis.call('SET', prefix .. 'heard_of_one', '1', 'PX', ARGV[OWN])
redis.call('SET', prefix .. 'gateway:' .. gateway, '1', 'PX', ARGV[OWN])
redis.call('SADD', prefix .. 'gateways', gateway)
local names = redis.call('ZRANGEBYSCORE', prefix .. 'due', '-inf', whole(now), 'LIMIT', 0, ARGV[OWN + 1])
for _, name in ipairs(names) do
  local m = find(name)
  if m then
    local from = m.first <= m.last and m.oldest or now
    redis.call('ZADD', prefix .. 'due', whole(from + m.keep_ms + 1), name)
    for _, key in ipairs({m.log, m.said, m.kept, m.texts}) do
      let_expire(m, key)
    end
  else
    redis.call('ZREM', prefix .. 'due', name)
  end
end
return #names

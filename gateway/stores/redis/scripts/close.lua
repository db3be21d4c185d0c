-- The caller leaves. own arguments: the meetings in which it has subscribers.

redis.call('DEL', prefix .. 'gateway:' .. gateway)
if redis.call('SISMEMBER', prefix .. 'gateways', gateway) == 1 then
  redis.call('SET', prefix .. 'gateway:' .. gateway .. ':left', '1')
end
for i = OWN, #ARGV do
  redis.call('HDEL', keys_of(ARGV[i]).langs, gateway)
  local m = find(ARGV[i])
  if m then
    rank(m)
  end
end
return 1

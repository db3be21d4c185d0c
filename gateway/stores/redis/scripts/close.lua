-- The caller leaves. own arguments: the meetings in which it has subscribers.

redis.call('DEL', prefix .. 'gateway:' .. gateway)
for i = OWN, #ARGV do
  redis.call('HDEL', keys_of(ARGV[i]).langs, gateway)
  find(ARGV[i])
end
return 1

-- The caller leaves: its sessions are away from now on.

local at = clock()
if redis.call('EXISTS', sessions_of(gateway)) == 1 then
  redis.call('ZADD', prefix .. 'heard', whole(0 - at), gateway)
else
  redis.call('ZREM', prefix .. 'heard', gateway)
  redis.call('DEL', prefix .. 'gateway:' .. gateway .. ':moved')
end
return 1

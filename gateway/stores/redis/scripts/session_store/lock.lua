-- Only hosts may begin a session in a meeting, or all may again. own arguments: meeting, "1" if it is locked.

local keys = keys_of(ARGV[OWN])
if ARGV[OWN + 1] ~= '1' then
  redis.call('HDEL', keys.people, 'k')
elseif redis.call('HEXISTS', keys.people, 'n') == 1 then
  redis.call('HSET', keys.people, 'k', '1')
end
return 1

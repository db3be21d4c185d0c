-- Only hosts may begin a session in a meeting, or all may again. own arguments: meeting, "1" if it is locked.

local keys = keys_of(ARGV[OWN])
local is_there, was = redis.call('HEXISTS', keys.people, 'n') == 1, redis.call('HEXISTS', keys.people, 'k') == 1
if is_there and was ~= (ARGV[OWN + 1] == '1') then
  if was then
    redis.call('HDEL', keys.people, 'k')
  else
    redis.call('HSET', keys.people, 'k', '1')
  end
  tell_hosted(keys)
end
return 1

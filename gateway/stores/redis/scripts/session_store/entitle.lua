-- A meeting is called so. own arguments: meeting; title, line feed, who holds it.

local keys = keys_of(ARGV[OWN])
if redis.call('HEXISTS', keys.people, 'n') == 1 and redis.call('HGET', keys.people, 'w') ~= ARGV[OWN + 1] then
  redis.call('HSET', keys.people, 'w', ARGV[OWN + 1])
  tell_hosted(keys)
end
return 1

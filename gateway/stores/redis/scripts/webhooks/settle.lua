-- A try has ended. own arguments: id, which try, in how many ms there is another one (-1: none), what is said of it, "1" if
-- the webhook wants nothing more, digest of the address that was tried.

local id, tries, again_ms, said, gone = ARGV[OWN], ARGV[OWN + 1], tonumber(ARGV[OWN + 2]), ARGV[OWN + 3], ARGV[OWN + 4]
local tried = ARGV[OWN + 5]

local address = redis.call('HGET', base, 'u')
if not address then
  return 0
end
redis.call('HSET', base, 'l', whole(now) .. ' ' .. said)
if gone == '1' and tried ~= address then -- the one that it has by now is tried at once
  again_ms = 0
elseif gone == '1' then
  redis.call('HSET', base, 'g', address)
  redis.call('DEL', events, waiting, due)
  return 1
end
local entry = redis.call('HGET', events, id)
if not entry then
  return 0
end
if again_ms < 0 then
  redis.call('HDEL', events, id)
  redis.call('ZREM', waiting, id)
  redis.call('ZREM', due, id)
elseif string.match(entry, '^%d+') == tries then -- nobody has claimed it since
  redis.call('ZADD', due, whole(now + again_ms), id)
end
return 1

-- Tokens are not valid any more. own arguments: what is revoked, the revocation, "1" if it means no tokens and
-- is forgotten soon.

local newest = redis.call('ZRANGE', prefix .. 'revoked', 0, 0, 'REV', 'WITHSCORES')
local version = whole(math.max(now, tonumber(newest[2] or 0) + 1))
redis.call('HSET', prefix .. 'revocations', ARGV[OWN], gateway .. ' ' .. ARGV[OWN + 1])
redis.call('ZADD', prefix .. 'revoked', version, ARGV[OWN])
if ARGV[OWN + 2] == '1' then
  redis.call('ZADD', prefix .. 'revoked:brief', whole(now), ARGV[OWN])
end
redis.call('PUBLISH', prefix .. 'revocations', version)
return 1

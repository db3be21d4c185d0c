-- Tokens are not valid any more. own arguments: what is revoked, the revocation.

local newest = redis.call('ZRANGE', prefix .. 'revoked', 0, 0, 'REV', 'WITHSCORES')
local version = whole(math.max(now, tonumber(newest[2] or 0) + 1))
redis.call('HSET', prefix .. 'revocations', ARGV[OWN], gateway .. ' ' .. ARGV[OWN + 1])
redis.call('ZADD', prefix .. 'revoked', version, ARGV[OWN])
redis.call('PUBLISH', prefix .. 'revocations', version)
return 1

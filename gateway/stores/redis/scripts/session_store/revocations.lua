-- What was revoked since a version. own arguments: the version. Returns the newest version, and for each revocation
-- "<gateway that knows> <revocation>", oldest first.

local found = redis.call('ZRANGE', prefix .. 'revoked', '(' .. ARGV[OWN], '+inf', 'BYSCORE', 'WITHSCORES')
local version, values = ARGV[OWN], {}
for i = 1, #found, 2 do
  version = found[i + 1]
  values[#values + 1] = redis.call('HGET', prefix .. 'revocations', found[i])
end
return {version, values}

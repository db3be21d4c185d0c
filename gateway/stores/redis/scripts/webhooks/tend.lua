-- A webhook is there; claim what is due. own arguments: events, tenants, digest of its address, how many may wait, for
-- how long the caller has what it claims in ms, how many at most, for how long all of this is kept in ms. Returns how
-- many wait, how old the oldest is in ms, how many were dropped that nobody was told of; and of each claimed: id, age in ms, and its entry.

local wants, tenants, address, room = ARGV[OWN], ARGV[OWN + 1], ARGV[OWN + 2], ARGV[OWN + 3]
local lease_ms, most, keep_ms = tonumber(ARGV[OWN + 4]), tonumber(ARGV[OWN + 5]), tonumber(ARGV[OWN + 6])

local known = redis.call('HMGET', base, 'e', 't', 'u', 'm', 'g', 'd')
if known[1] ~= wants or known[2] ~= tenants or known[3] ~= address or known[4] ~= room then
  redis.call('HSET', base, 'e', wants, 't', tenants, 'u', address, 'm', room)
end
if known[5] and known[5] ~= address then -- another address is another try
  redis.call('HDEL', base, 'g')
end
-- Not at each call, as each writes to the disk.
if redis.call('SISMEMBER', prefix .. 'webhooks', name) == 0 or redis.call('PTTL', base) < keep_ms / 2 then
  redis.call('SADD', prefix .. 'webhooks', name)
  for _, key in ipairs({prefix .. 'webhooks', base, events, waiting, due}) do
    redis.call('PEXPIRE', key, keep_ms)
  end
end

local claimed = {}
for _, id in ipairs(redis.call('ZRANGE', due, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, most)) do
  local tries, rest = string.match(redis.call('HGET', events, id), '^(%d+)( .*)$')
  local entry, age_ms = whole(tonumber(tries) + 1) .. rest, now - tonumber(redis.call('ZSCORE', waiting, id))
  redis.call('HSET', events, id, entry)
  redis.call('ZADD', due, whole(now + lease_ms), id)
  claimed[#claimed + 1] = {id, whole(age_ms), entry}
end
if known[6] then
  redis.call('HDEL', base, 'd')
end
local oldest = redis.call('ZRANGE', waiting, 0, 0, 'WITHSCORES')
return {redis.call('ZCARD', waiting), whole(oldest[2] and now - tonumber(oldest[2]) or 0), known[6] or '0', claimed}

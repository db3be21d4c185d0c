-- Add what the caller has had translated in a day. own arguments: the day, a number that is new unless this was told
-- before, the version up to which the caller knows the day's totals, what waits there ("" for nothing), how many arguments
-- follow for characters, tenant, characters …, and for minutes tenant, minute, "<meeting> <language>" … Returns the newest
-- version, what waits at each other gateway, and of all that has changed: tenant, characters, minutes …

local day, number, version = prefix .. 'day:' .. ARGV[OWN], tonumber(ARGV[OWN + 1]), ARGV[OWN + 2]
local waits, first_minute = ARGV[OWN + 3], OWN + 5 + tonumber(ARGV[OWN + 4])
local changed, told = day .. ':changed', prefix .. 'gateway:' .. gateway .. ':told'

local function add(field, tenant, more, at)
  redis.call('HINCRBY', day, field .. tenant, more)
  redis.call('ZADD', changed, at, tenant)
end

if #ARGV >= OWN + 5 and number > tonumber(redis.call('GET', told) or 0) then
  local newest = redis.call('ZRANGE', changed, 0, 0, 'REV', 'WITHSCORES')
  local at = whole(math.max(now, tonumber(newest[2] or 0) + 1))
  for i = OWN + 5, first_minute - 1, 2 do
    add('c:', ARGV[i], ARGV[i + 1], at)
  end
  local minutes_of, previous = {}, nil
  for i = first_minute, #ARGV, 3 do
    local tenant, minute = ARGV[i], prefix .. 'minute:' .. ARGV[i + 1]
    if redis.call('SADD', minute, ARGV[i + 2]) == 1 then
      minutes_of[tenant] = (minutes_of[tenant] or 0) + 1
    end
    if minute ~= previous then
      redis.call('PEXPIRE', minute, MINUTE_MS)
      previous = minute
    end
  end
  for tenant, minutes in pairs(minutes_of) do
    add('m:', tenant, minutes, at)
  end
  redis.call('SET', told, whole(number), 'PX', DAY_MS)
  redis.call('PEXPIRE', day, DAY_MS)
  redis.call('PEXPIRE', changed, DAY_MS)
end

if waits ~= '' then
  redis.call('HSET', prefix .. 'waiting', gateway, whole(now) .. ' ' .. waits)
else
  redis.call('HDEL', prefix .. 'waiting', gateway)
end
local elsewhere, all = {}, redis.call('HGETALL', prefix .. 'waiting')
for i = 1, #all, 2 do
  local at, what = string.match(all[i + 1], '^(%d+) (.*)$')
  if tonumber(at) + lease_ms <= now then
    redis.call('HDEL', prefix .. 'waiting', all[i])
  elseif all[i] ~= gateway then
    elsewhere[#elsewhere + 1] = what
  end
end

local totals = {}
local tenants = redis.call('ZRANGE', changed, '(' .. version, '+inf', 'BYSCORE', 'WITHSCORES')
for i = 1, #tenants, 2 do
  local counts = redis.call('HMGET', day, 'c:' .. tenants[i], 'm:' .. tenants[i])
  version = tenants[i + 1]
  totals[#totals + 1] = tenants[i]
  totals[#totals + 1] = counts[1] or '0'
  totals[#totals + 1] = counts[2] or '0'
end
return {version, elsewhere, totals}

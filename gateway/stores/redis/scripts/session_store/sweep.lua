-- The caller is there. Sessions of gateways that are gone are nobody's; what was away for too long ends. own arguments:
-- for how long a session is kept in ms, how many to look at, for how long revocations are remembered in ms. Returns
-- the count of its sessions that moved, and the newest version of revocations.

-- Long enough for every gateway to hear of what means no tokens.
local BRIEF_MS = 600000

local keep_ms, left, remembered_ms = tonumber(ARGV[OWN]), tonumber(ARGV[OWN + 1]), tonumber(ARGV[OWN + 2])

-- Time in which no gateway was there does not count.
local times = redis.call('HMGET', prefix .. 'clock', 't', 'lost')
local heard, lost = tonumber(times[1] or now), tonumber(times[2] or 0)
if now - heard > lease_ms then
  lost = lost + now - heard
end
redis.call('HSET', prefix .. 'clock', 't', whole(now), 'lost', whole(lost))
local at = now - lost

local moved = prefix .. 'gateway:' .. gateway .. ':moved'
redis.call('SET', moved, whole(now), 'NX')
redis.call('ZADD', prefix .. 'heard', whole(at), gateway)

local function let_go(owner, gone_at)
  local ids = redis.call('SPOP', sessions_of(owner), left)
  for _, id in ipairs(ids) do
    local session = find(id)
    if session and session.owner == owner then
      local away = session.away ~= '' and session.away or whole(gone_at)
      redis.call('ZADD', prefix .. 'ownerless', away, id)
    end
  end
  left = left - #ids
  if redis.call('EXISTS', sessions_of(owner)) == 0 then
    redis.call('ZREM', prefix .. 'heard', owner)
    redis.call('DEL', prefix .. 'gateway:' .. owner .. ':moved')
  elseif #ids > 0 then
    count_moved(owner)
  end
end

local gateways = redis.call('ZRANGE', prefix .. 'heard', 0, -1, 'WITHSCORES')
for i = 1, #gateways, 2 do
  local score = tonumber(gateways[i + 1])
  if left > 0 and score < at - lease_ms then -- also those that left
    let_go(gateways[i], math.abs(score))
  end
end

local over = redis.call('ZRANGE', prefix .. 'ownerless', '-inf', whole(at - keep_ms), 'BYSCORE', 'LIMIT', 0, ARGV[OWN + 1])
for _, id in ipairs(over) do
  local session = find(id)
  if session then
    finish(session)
    tell_owner(session, '0')
  else
    redis.call('ZREM', prefix .. 'ownerless', id)
  end
end

look_for_transcripts(tonumber(ARGV[OWN + 1]))

local function forget_revocations(key, until_ms)
  for _, meant in ipairs(redis.call('ZRANGE', key, '-inf', whole(until_ms), 'BYSCORE', 'LIMIT', 0, 100)) do
    redis.call('HDEL', prefix .. 'revocations', meant)
    redis.call('ZREM', prefix .. 'revoked', meant)
    redis.call('ZREM', prefix .. 'revoked:brief', meant)
  end
end
forget_revocations(prefix .. 'revoked', now - remembered_ms)
forget_revocations(prefix .. 'revoked:brief', now - BRIEF_MS)

local newest = redis.call('ZRANGE', prefix .. 'revoked', 0, 0, 'REV', 'WITHSCORES')
return {redis.call('GET', moved), newest[2] or '0'}

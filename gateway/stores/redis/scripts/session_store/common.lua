-- What every script of the session store begins with: the arguments that all share, one session's state, who is present.
--
-- KEYS are not used: a script touches the keys of several sessions and gateways, so this is not for Redis Cluster.
-- Keys of a meeting, all with the same hash tag:
--   people    hash: n sessions, v version of `present`, s when the meeting started, unless it is private, k while it
--             is locked, q who is muted, each with a blank before, w what it is called; gone when nobody is in the meeting
--   reads     hash: language → how many sessions read it
--   present   hash: participant → "<version when they came> <as the others see them>"
-- Keys of the store:
--   session:<id>            hash: r record, f fence, o owner, or nobody; a away since, or nothing; m meeting, t tenant,
--                           p participant, l languages "de,ja", s 1 if the others see them; n newest attempt to take
--   ended:<id>              exists for a while if a session was to end before it had begun
--   gateway:<id>:sessions   set: sessions that the gateway has
--   gateway:<id>:moved      counts when others take or end sessions of the gateway
--   gateway:<id>            channel: what was moved
--   heard                   sorted set: gateway → when it was last heard of; when it left, negative
--   ownerless               sorted set: session that no gateway has → since when it is away
--   tenants                 hash: s:<tenant> sessions, m:<tenant> meetings
--   sessions:<tenant>       set: sessions of the tenant
--   joins:<tenant>          when it may join as often as it may at once, in µs
--   token:<digest>          who has used up a token
--   revocations             hash: what is revoked → "<gateway that knows> <revocation>"
--   revoked                 sorted set: what is revoked → version
--   revoked:brief           sorted set: what of it means no tokens → when it was revoked
--   transcripts             sorted set: meeting that has ended, and has a transcript that is not ready → when to look
--   transcripts:times       hash: meeting of those → "<started> <ended> <tenant>"
--   webhooks, webhook:<name>…   see the folder `webhooks`
--   clock                   hash: t when a gateway was last heard of, lost: time in which none was
-- Times are in ms; all but versions count only while some gateway is there.

local prefix, gateway, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
-- Where a script's own arguments begin.
local OWN = 4
-- In which a tenant may join as often as it may at once.
local MINUTE_US = 60000000
-- For what was said last to be accepted, and between two looks whether a transcript is ready.
local ACCEPTED_MS, LOOK_MS = 1000, 1000

-- The time by which sessions are away.
local function clock()
  local values = redis.call('HMGET', prefix .. 'clock', 't', 'lost')
  local heard, lost = tonumber(values[1] or now), tonumber(values[2] or 0)
  if now - heard > lease_ms then
    return heard - lost
  end
  return now - lost
end

local function session_key(id)
  return prefix .. 'session:' .. id
end

local function sessions_of(owner)
  return prefix .. 'gateway:' .. owner .. ':sessions'
end

local function sessions_of_tenant(tenant)
  return prefix .. 'sessions:' .. tenant
end

local function keys_of(meeting)
  local base = prefix .. '{' .. meeting .. '}:'
  return {
    name = meeting, people = base .. 'people', reads = base .. 'reads', present = base .. 'present',
    channel = base .. 'presence', log = base .. 'log', meta = base .. 'meta', unfinished = base .. 'unfinished',
  }
end

local function find(id)
  local values = redis.call('HMGET', session_key(id), 'f', 'o', 'a', 'm', 't', 'p', 'l', 's', 'n', 'r')
  if not values[1] then
    return nil
  end
  return {
    id = id, fence = tonumber(values[1]), owner = values[2], away = values[3], meeting = values[4],
    tenant = values[5], participant = values[6], reads = values[7], shown = values[8] == '1', attempt = values[9],
    record = values[10], keys = keys_of(values[4]),
  }
end

-- The next version of who is present and what hosts have set, and the one before.
local function next_version(keys)
  local previous = redis.call('HGET', keys.people, 'v') or '0'
  local version = whole(previous == '0' and time[1] * 1000000 + time[2] or tonumber(previous) + 1)
  redis.call('HSET', keys.people, 'v', version)
  return version, previous
end

-- Somebody came, changed (present) or left (nil); everybody who listens is told.
local function tell(keys, participant, present)
  local version, previous = next_version(keys)
  local value = ''
  if present then
    local before = redis.call('HGET', keys.present, participant)
    local came = before and string.match(before, '^%d+') or version
    value = came .. ' ' .. present
    redis.call('HSET', keys.present, participant, value)
  else
    redis.call('HDEL', keys.present, participant)
  end
  redis.call('PUBLISH', keys.channel, version .. ' ' .. previous .. ' ' .. participant .. '\n' .. value)
end

-- What hosts have set: who is muted; "1" if it is locked; and what it is called, if that was set.
local function hosted(keys)
  local values = redis.call('HMGET', keys.people, 'q', 'k', 'w')
  return cmsgpack.pack({values[1] or '', values[2] or '', values[3] or nil})
end

-- Everybody who listens is told what hosts have set. No participant is named ''.
local function tell_hosted(keys)
  local version, previous = next_version(keys)
  redis.call('PUBLISH', keys.channel, version .. ' ' .. previous .. ' \n' .. hosted(keys))
end

local function is_in(list, part)
  return string.find(',' .. list .. ',', ',' .. part .. ',', 1, true) ~= nil
end

-- Let it wait for every webhook that is to be told.
local function add_event(kind, keys, tenant, started, ended)
  local id = 'evt_' .. string.sub(redis.sha1hex(table.concat({kind, keys.name, time[1], time[2]}, ' ')), 1, 24)
  local entry = table.concat({'0', kind, whole(now), started, ended, keys.name}, ' ')
  for _, name in ipairs(redis.call('SMEMBERS', prefix .. 'webhooks')) do
    local base = prefix .. 'webhook:' .. name
    local events, waiting, due = base .. ':events', base .. ':waiting', base .. ':due'
    local about = redis.call('HMGET', base, 'e', 't', 'g', 'm')
    if not about[1] then -- it has expired
      redis.call('SREM', prefix .. 'webhooks', name)
    elseif about[3] or not is_in(about[1], kind) or (about[2] ~= '' and not is_in(about[2], tenant)) then
      -- not for this one
    elseif redis.call('ZCARD', waiting) >= tonumber(about[4]) then
      redis.call('HINCRBY', base, 'd', 1)
    else
      redis.call('HSET', events, id, entry)
      redis.call('ZADD', waiting, whole(now), id)
      redis.call('ZADD', due, whole(now), id)
      for _, key in ipairs({events, waiting, due}) do
        redis.call('PEXPIRE', key, redis.call('PTTL', base))
      end
    end
  end
end

-- Its transcript is not waited for any more.
local function forget_transcript(meeting)
  redis.call('ZREM', prefix .. 'transcripts', meeting)
  redis.call('HDEL', prefix .. 'transcripts:times', meeting)
end

local function meeting_started(keys, tenant)
  redis.call('HSET', keys.people, 's', whole(now))
  forget_transcript(keys.name)
  add_event('meeting.started', keys, tenant, whole(now), '0')
end

-- There is no transcript of a meeting that is not.
local function is_recorded(keys)
  return redis.call('HGET', keys.meta, 'u') ~= '1'
end

local function meeting_ended(keys, tenant)
  local started = redis.call('HGET', keys.people, 's')
  if not started then
    return
  end
  add_event('meeting.ended', keys, tenant, started, whole(now))
  if is_recorded(keys) and redis.call('EXISTS', prefix .. 'webhooks') == 1 then
    redis.call('ZADD', prefix .. 'transcripts', whole(now + ACCEPTED_MS), keys.name)
    redis.call('HSET', prefix .. 'transcripts:times', keys.name, started .. ' ' .. whole(now) .. ' ' .. tenant)
  end
end

-- Of meetings that have ended. most: how many to look at.
local function look_for_transcripts(most)
  local key = prefix .. 'transcripts'
  for _, meeting in ipairs(redis.call('ZRANGE', key, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, most)) do
    local keys = keys_of(meeting)
    if redis.call('EXISTS', keys.unfinished) == 1 then
      redis.call('ZADD', key, whole(now + LOOK_MS), meeting)
    else
      local times = redis.call('HGET', prefix .. 'transcripts:times', meeting)
      local started, ended, tenant = string.match(times, '^(%d+) (%d+) (.*)$')
      if is_recorded(keys) and redis.call('XLEN', keys.log) > 0 then -- one that was trimmed may be empty
        add_event('transcript.ready', keys, tenant, started, ended)
      end
      forget_transcript(meeting)
    end
  end
end

local function count(key, field, more)
  if redis.call('HINCRBY', key, field, more) <= 0 then
    redis.call('HDEL', key, field)
  end
end

local function count_languages(keys, reads, more)
  for _, lang in ipairs(split(reads)) do
    count(keys.reads, lang, more)
  end
end

-- Whether one session that reads these instead of those before would be too much, and what is refused then.
local function too_many_languages(keys, before, reads, most)
  local all, others, own = redis.call('HLEN', keys.reads), 0, {}
  others = all
  for _, lang in ipairs(split(before)) do
    own[lang] = true
    if redis.call('HGET', keys.reads, lang) == '1' then
      others = others - 1
    end
  end
  local total = others
  for _, lang in ipairs(split(reads)) do
    local readers = tonumber(redis.call('HGET', keys.reads, lang) or 0)
    if readers == (own[lang] and 1 or 0) then
      total = total + 1
    end
  end
  if most >= 0 and total > all and total > most then
    return {'languages', whole(others), whole(total), whole(all)}
  end
  return nil
end

-- Count a join of a tenant that may join so often within a minute (-1: as often as it likes). Returns what is refused,
-- and for how many ms, if it is one too many.
local function too_many_joins(tenant, most)
  if most < 0 then
    return nil
  end
  local key, now_us = prefix .. 'joins:' .. tenant, time[1] * 1000000 + time[2]
  local busy_us = math.max(0, tonumber(redis.call('GET', key) or 0) - now_us) + math.floor(MINUTE_US / most)
  if busy_us > MINUTE_US then
    return {'joins', whole(math.ceil((busy_us - MINUTE_US) / 1000))}
  end
  redis.call('SET', key, whole(now_us + busy_us), 'PX', whole(math.ceil(busy_us / 1000) + 1))
  return nil
end

-- Use up a token for a user. token: "" for none. Returns whether it is somebody else's.
local function use(token, user, until_ms)
  if token == '' then
    return false
  end
  local key = prefix .. 'token:' .. token
  local known = redis.call('GET', key)
  if not known then
    redis.call('SET', key, user, 'PX', whole(math.max(60000, tonumber(until_ms) - now)))
  end
  return known and known ~= user
end

-- Let others use a token that this user has used up. token: "" for none.
local function give_back(token, user)
  if token ~= '' and redis.call('GET', prefix .. 'token:' .. token) == user then
    redis.call('DEL', prefix .. 'token:' .. token)
  end
end

-- The caller has it. Should the caller be gone before its next sweep, it is found all the same.
local function give(id)
  redis.call('ZADD', prefix .. 'heard', 'NX', whole(clock()), gateway)
  redis.call('ZREM', prefix .. 'ownerless', id)
  redis.call('SADD', sessions_of(gateway), id)
end

-- Sessions of this gateway are not its own any more. A new count begins with the time: the gateway has not seen it.
local function count_moved(owner)
  local key = prefix .. 'gateway:' .. owner .. ':moved'
  if redis.call('SET', key, whole(now), 'NX') then
    return now
  end
  return redis.call('INCR', key)
end

-- A gateway has this session no more: another has it, or it has ended (fence 0).
local function tell_owner(session, fence)
  if session.owner ~= '' and redis.call('ZSCORE', prefix .. 'heard', session.owner) then
    local moved = count_moved(session.owner)
    redis.call('PUBLISH', prefix .. 'gateway:' .. session.owner, whole(moved) .. ' ' .. fence .. ' ' .. session.id)
  end
end

-- It goes on as this record.
local function change(session, record, reads, present)
  if session.reads ~= reads then
    count_languages(session.keys, session.reads, -1)
    count_languages(session.keys, reads, 1)
  end
  redis.call('HSET', session_key(session.id), 'r', record, 'l', reads)
  if session.shown then
    local before = redis.call('HGET', session.keys.present, session.participant)
    if not before or string.gsub(before, '^%d+ ', '', 1) ~= present then
      tell(session.keys, session.participant, present)
    end
  end
end

local function finish(session)
  redis.call('DEL', session_key(session.id))
  redis.call('ZREM', prefix .. 'ownerless', session.id)
  if session.owner ~= '' then
    redis.call('SREM', sessions_of(session.owner), session.id)
  end
  count_languages(session.keys, session.reads, -1)
  if session.shown then
    tell(session.keys, session.participant, nil)
  end
  count(prefix .. 'tenants', 's:' .. session.tenant, -1)
  redis.call('SREM', sessions_of_tenant(session.tenant), session.id)
  if redis.call('HINCRBY', session.keys.people, 'n', -1) <= 0 then
    count(prefix .. 'tenants', 'm:' .. session.tenant, -1)
    meeting_ended(session.keys, session.tenant)
    -- A gateway that has the room open still must not take the next who comes for muted, or the room for locked.
    if redis.call('HDEL', session.keys.people, 'q', 'k', 'w') > 0 then
      tell_hosted(session.keys)
    end
    redis.call('DEL', session.keys.people, session.keys.reads, session.keys.present)
  end
end


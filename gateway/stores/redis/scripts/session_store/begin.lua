-- A session begins at the caller. own arguments: session, record, meeting, tenant, participant, languages "de,ja", as
-- the others see them, bounds (sessions, meetings, languages, participants shown; -1 for none), token, its user, until
-- when it is remembered, joins of the tenant within a minute, "1" if the meeting is private, "1" if it is a host's.
-- Returns its fence; or what is refused, and the counts.

local id, record, meeting, tenant = ARGV[OWN], ARGV[OWN + 1], ARGV[OWN + 2], ARGV[OWN + 3]
local participant, reads, present = ARGV[OWN + 4], ARGV[OWN + 5], ARGV[OWN + 6]
local most_sessions, most_meetings = tonumber(ARGV[OWN + 7]), tonumber(ARGV[OWN + 8])
local most_languages, most_shown = tonumber(ARGV[OWN + 9]), tonumber(ARGV[OWN + 10])
local token, user, until_ms = ARGV[OWN + 11], ARGV[OWN + 12], ARGV[OWN + 13]

local known = find(id)
if known then
  return {'fence', whole(known.fence)}
end
if redis.call('EXISTS', prefix .. 'ended:' .. id) == 1 then
  return {'ended'}
end
local keys = keys_of(meeting)
if ARGV[OWN + 16] ~= '1' and redis.call('HEXISTS', keys.people, 'k') == 1 then
  return {'locked'}
end
local refused = too_many_languages(keys, '', reads, most_languages)
if refused then
  return refused
end
local sessions = tonumber(redis.call('HGET', prefix .. 'tenants', 's:' .. tenant) or 0)
if most_sessions >= 0 and sessions >= most_sessions then
  return {'sessions', whole(sessions)}
end
local others = tonumber(redis.call('HGET', prefix .. 'tenants', 'm:' .. tenant) or 0)
others = others - redis.call('HEXISTS', keys.people, 'n')
if most_meetings >= 0 and others >= most_meetings then
  return {'meetings', whole(others)}
end
refused = too_many_joins(tenant, tonumber(ARGV[OWN + 14]))
if refused then
  return refused
end
if use(token, user, until_ms) then
  return {'token'}
end
local shown = redis.call('HLEN', keys.present) < most_shown
redis.call(
  'HSET', session_key(id), 'r', record, 'f', '1', 'o', gateway, 'a', '', 'm', meeting, 't', tenant,
  'p', participant, 'l', reads, 's', shown and '1' or '0', 'n', ''
)
give(id)
count_languages(keys, reads, 1)
count(prefix .. 'tenants', 's:' .. tenant, 1)
redis.call('SADD', sessions_of_tenant(tenant), id)
if redis.call('HINCRBY', keys.people, 'n', 1) == 1 then
  count(prefix .. 'tenants', 'm:' .. tenant, 1)
  if ARGV[OWN + 15] ~= '1' then
    meeting_started(keys, tenant)
  end
end
if shown then
  tell(keys, participant, present)
end
return {'fence', '1'}

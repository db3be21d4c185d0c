-- The caller has this session from now on. own arguments: session, fence, attempt, record, languages "de,ja", as the
-- others see it, most languages, token, its user, until when it is remembered, joins of the tenant within a minute. Returns
-- the new fence; {} if the fence is another; or what is refused, and the counts. The same attempt gets the same answer again.

local id, fence, attempt, record = ARGV[OWN], tonumber(ARGV[OWN + 1]), ARGV[OWN + 2], ARGV[OWN + 3]
local reads, present, most_languages = ARGV[OWN + 4], ARGV[OWN + 5], tonumber(ARGV[OWN + 6])
local token, user, until_ms = ARGV[OWN + 7], ARGV[OWN + 8], ARGV[OWN + 9]

local session = find(id)
if not session then
  return {}
end
if session.attempt == attempt then
  return {'fence', whole(session.fence)}
end
if session.fence ~= fence then
  return {}
end
local refused = too_many_languages(session.keys, session.reads, reads, most_languages)
if refused then
  return refused
end
refused = too_many_joins(session.tenant, tonumber(ARGV[OWN + 10]))
if refused then
  return refused
end
if use(token, user, until_ms) then
  return {'token'}
end
if session.owner ~= '' then
  redis.call('SREM', sessions_of(session.owner), id)
end
give(id)
redis.call('HSET', session_key(id), 'f', whole(fence + 1), 'o', gateway, 'a', '', 'n', attempt)
change(session, record, reads, present)
if session.owner ~= gateway then
  tell_owner(session, whole(fence + 1))
end
return {'fence', whole(fence + 1)}

-- A session of the caller is like this now. own arguments: session, fence, record, languages "de,ja", as the others see
-- it, for how long it is away in ms (-1: it is there), most languages. Returns 'saved'; {} if the fence is another; or
-- what is refused, and the counts.

local id, fence, record, reads = ARGV[OWN], tonumber(ARGV[OWN + 1]), ARGV[OWN + 2], ARGV[OWN + 3]
local present, away_ms, most_languages = ARGV[OWN + 4], tonumber(ARGV[OWN + 5]), tonumber(ARGV[OWN + 6])

local session = find(id)
if not session or session.fence ~= fence then
  return {}
end
local refused = too_many_languages(session.keys, session.reads, reads, most_languages)
if refused then
  return refused
end
give(id)
local away = away_ms < 0 and '' or whole(clock() - away_ms)
redis.call('HSET', session_key(id), 'o', gateway, 'a', away)
change(session, record, reads, present)
return {'saved'}

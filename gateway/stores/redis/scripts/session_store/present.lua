-- Who is present in a meeting. own arguments: meeting. Returns the version; participant, value, participant, value …; and
-- what hosts have set.

local keys = keys_of(ARGV[OWN])
return {redis.call('HGET', keys.people, 'v') or '0', redis.call('HGETALL', keys.present), hosted(keys)}

-- The caller lets go of a session, which is away. own arguments: session, fence.

local session = find(ARGV[OWN])
if session and session.owner == gateway and session.fence == tonumber(ARGV[OWN + 1]) then
  local away = session.away ~= '' and session.away or whole(clock())
  redis.call('SREM', sessions_of(session.owner), session.id)
  redis.call('HSET', session_key(session.id), 'o', '', 'a', away)
  redis.call('ZADD', prefix .. 'ownerless', away, session.id)
end
return 1

-- A session. own arguments: session. Returns its record and fence; {} if it is not registered.

local session = find(ARGV[OWN])
return session and {session.record, whole(session.fence)} or {}

-- A session of the caller ends. own arguments: session, fence, for how many ms it must not begin if it has not, a token
-- that it used up for nothing, its user.

give_back(ARGV[OWN + 3], ARGV[OWN + 4])
local session = find(ARGV[OWN])
if not session then
  redis.call('SET', prefix .. 'ended:' .. ARGV[OWN], '1', 'PX', ARGV[OWN + 2])
elseif session.fence == tonumber(ARGV[OWN + 1]) then
  if session.owner ~= gateway then
    tell_owner(session, '0')
  end
  finish(session)
end
return 1

-- Use up a token for a user. own arguments: token, user, until when it is remembered, the session that is to begin with
-- it, or "". Returns 2 if nobody had used it, 1 if it is theirs already, 0 if it is somebody else's or the session was to
-- end before it had begun.

if ARGV[OWN + 3] ~= '' and redis.call('EXISTS', prefix .. 'ended:' .. ARGV[OWN + 3]) == 1 then
  return 0
end
local is_new = redis.call('EXISTS', prefix .. 'token:' .. ARGV[OWN]) == 0
if use(ARGV[OWN], ARGV[OWN + 1], ARGV[OWN + 2]) then
  return 0
end
return is_new and 2 or 1

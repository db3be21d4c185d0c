-- Which sessions the caller has no more. own arguments: session, fence, session, fence … Returns for each of those: the
-- session, and whether another gateway has taken it. What others took for gone, and nobody has taken, is the caller's again.

local gone = {}
for i = OWN, #ARGV, 2 do
  local session = find(ARGV[i])
  if not session or session.fence ~= tonumber(ARGV[i + 1]) then
    gone[#gone + 1] = ARGV[i]
    gone[#gone + 1] = session and session.fence > tonumber(ARGV[i + 1]) and '1' or '0'
  elseif redis.call('ZSCORE', prefix .. 'ownerless', session.id) then
    give(session.id)
    redis.call('HSET', session_key(session.id), 'o', gateway)
  end
end
return gone

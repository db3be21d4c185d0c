-- The caller has subscribers in this meeting, who read these languages. own arguments: account, languages "de,ja".
-- A meeting without a log gets one. Returns its position: epoch, offset before its first, first held, last, '1' if it is not
-- recorded.

local m = find(meeting) or begin(ARGV[OWN], begins_unrecorded)
if redis.call('HGET', m.langs, gateway) ~= ARGV[OWN + 1] then
  redis.call('HSET', m.langs, gateway, ARGV[OWN + 1])
  rank(m)
end
return position(m)

-- The caller has no subscribers in this meeting any more. A log that has nothing left in it ends.

redis.call('HDEL', keys_of(meeting).langs, gateway)
local m = find(meeting)
if m then
  rank(m)
end
return 1

-- The meeting is called so. own arguments: title, line feed, who holds it; or "". One without a log is not.

local m = find(meeting)
if m then
  redis.call('HSET', m.meta, 'w', ARGV[OWN])
end
return 1

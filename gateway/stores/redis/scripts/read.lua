-- A page of the log. own arguments: after which offset, how many at most.
-- Returns {} if there is no log; else its position, and the entries.

local m = find(meeting)
if not m then
  return {}
end
local after, limit = tonumber(ARGV[OWN]), tonumber(ARGV[OWN + 1])
local entries = {}
if limit > 0 and after < m.last then
  local from = whole(math.max(after + 1, m.first)) .. '-0'
  entries = redis.call('XRANGE', m.log, from, '+', 'COUNT', limit)
end
return {position(m), entries}

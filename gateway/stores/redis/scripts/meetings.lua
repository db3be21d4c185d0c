-- Meetings that have a log. own arguments: a cursor that is 0 at first, about how many. Returns the next cursor, 0 at the
-- end; and of each its name, entries, bytes, at_ms of the newest entry, 0 if none is held. Some may come twice.

local page = redis.call('ZSCAN', prefix .. 'due', ARGV[OWN], 'COUNT', ARGV[OWN + 1])
local found = {}
for i = 1, #page[2], 2 do
  local m = find(page[2][i])
  if m then
    local held = m.last - m.first + 1
    found[#found + 1] = {m.name, whole(held), whole(m.bytes), whole(held > 0 and m.newest or 0)}
  end
end
return {page[1], found}

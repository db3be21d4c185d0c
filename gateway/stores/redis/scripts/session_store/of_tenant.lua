-- Sessions of a tenant, wherever they are. own arguments: the tenant, a cursor that is 0 at first, about how many.
-- Returns the next cursor, 0 at the end; and session, record, away ("1" or "0"), fence, session … Some may come twice.

local page = redis.call('SSCAN', sessions_of_tenant(ARGV[OWN]), ARGV[OWN + 1], 'COUNT', ARGV[OWN + 2])
local found = {}
for _, id in ipairs(page[2]) do
  local session = find(id)
  if session then
    found[#found + 1] = id
    found[#found + 1] = session.record
    local nobodys = redis.call('ZSCORE', prefix .. 'ownerless', id)
    found[#found + 1] = (session.away ~= '' or nobodys) and '1' or '0'
    found[#found + 1] = whole(session.fence)
  end
end
return {page[1], found}

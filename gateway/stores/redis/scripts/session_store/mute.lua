-- Somebody in a meeting is muted, or is not any more. own arguments: meeting, who, "1" if they are, how many may be.
-- Returns 0 if too many are already.

local keys, who = keys_of(ARGV[OWN]), ARGV[OWN + 1]
if redis.call('HEXISTS', keys.people, 'n') == 0 then
  return 1
end
local before = redis.call('HGET', keys.people, 'q') or ''
local others = {}
for each in string.gmatch(before, '%S+') do
  if each ~= who then
    others[#others + 1] = ' ' .. each
  end
end
if ARGV[OWN + 2] == '1' then
  if #others >= tonumber(ARGV[OWN + 3]) then
    return 0
  end
  others[#others + 1] = ' ' .. who
end
local muted = table.concat(others)
if #muted ~= #before then
  redis.call('HSET', keys.people, 'q', muted)
  tell_hosted(keys)
end
return 1

-- What the caller knows of meetings. own arguments: for each its name, epoch, newest offset, languages "de,ja" that the
-- store should know as read at the caller. Returns the names of those that are otherwise.

local other = {}
for i = OWN, #ARGV, 4 do
  local m = keys_of(ARGV[i])
  local log = redis.call('HMGET', m.meta, 'e', 'o')
  local languages = redis.call('HGET', m.langs, gateway)
  if log[1] ~= ARGV[i + 1] or log[2] ~= ARGV[i + 2] or languages ~= ARGV[i + 3] then
    other[#other + 1] = ARGV[i]
  end
end
return other

-- Keep a glossary. Arguments: its tenant's key, its id, its version, what is kept, the most glossaries and bytes that a
-- tenant may keep. Returns 1 if it is kept now, 0 if there is another version than the one before, -1 if there are
-- too many, -2 if they have too many bytes.

local key, id, version, value = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[3] .. ' ' .. ARGV[4]
local before = redis.call('HGET', key, id)
if before == value then
  return 1
end
if version ~= (before and tonumber(string.match(before, '^%d+')) or 0) + 1 then
  return 0
end
if not before and redis.call('HLEN', key) >= tonumber(ARGV[5]) then
  return -1
end
local bytes = #value
for _, other in ipairs(redis.call('HKEYS', key)) do
  if other ~= id then
    bytes = bytes + redis.call('HSTRLEN', key, other)
  end
end
if bytes > tonumber(ARGV[6]) then
  return -2
end
redis.call('HSET', key, id, value)
return 1

-- The same glossary, sealed in another way. Arguments: its tenant's key, its id, what is kept, what is to be kept instead.
-- Returns whether that was kept.

if redis.call('HGET', ARGV[1], ARGV[2]) ~= ARGV[3] then
  return 0
end
redis.call('HSET', ARGV[1], ARGV[2], ARGV[4])
return 1

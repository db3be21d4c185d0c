-- own arguments: meetings. Returns the version of who is present in each.

local versions = {}
for i = OWN, #ARGV do
  versions[#versions + 1] = redis.call('HGET', keys_of(ARGV[i]).people, 'v') or '0'
end
return versions

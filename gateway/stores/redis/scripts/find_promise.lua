-- What the caller owns of one utterance. own arguments: the utterance's key, or "" and its offset.
-- Returns as one element of what `take_over` returns; {} for nothing.

local m = find(meeting)
if not m then
  return {}
end
local known = ARGV[OWN] ~= '' and known_as(m, ARGV[OWN])
local offset = known and known.offset or tonumber(ARGV[OWN + 1])
local said = offset and spoken(m, offset)
if not said then
  return {}
end
local promises, owned, tries = promises_of(m, offset), {}, 0
for _, lang in ipairs(sorted_keys(promises)) do
  if promises[lang].owner == gateway then
    owned[#owned + 1] = lang
    tries = math.max(tries, promises[lang].tries)
  end
end
if #owned == 0 then
  return {}
end
return {m.name, whole(offset), table.concat(owned, ','), tries, m.account, said.payload, epoch_of(m, offset)}

-- The newest utterances, and what is owed of older ones. own arguments: how many utterances, how many entries at most.
-- Returns {} if there is no log; else its position, the entries, and of each older utterance with a promise: offset,
-- languages "de,ja" that are unfinished, other languages with an outcome "fr:1,it:0", payload.

local m = find(meeting)
if not m then
  return {}
end
local utterances, limit = tonumber(ARGV[OWN]), tonumber(ARGV[OWN + 1])

-- Entries from the newest back to the oldest of the newest utterances, or further; how many they are up to that one.
local function newest_first()
  local newest, found, before = {}, 0, '+'
  while utterances > 0 do
    local batch = redis.call('XREVRANGE', m.log, before, whole(m.first) .. '-0', 'COUNT', 100)
    for _, entry in ipairs(batch) do
      newest[#newest + 1] = entry
      if utterances > 0 and #entry[2] > 4 then -- a `Said`: an outcome has payload and time alone
        found, utterances = #newest, utterances - 1
      end
    end
    if #batch < 100 then
      break
    end
    before = '(' .. newest[#newest][1]
  end
  return newest, found
end

local function owed(offset)
  local said = spoken(m, offset)
  if not said then -- its text has expired
    return nil
  end
  local promises, ended = promises_of(m, offset), {}
  local known = known_as(m, said.key)
  local outcomes = known and known.outcomes or {}
  for _, lang in ipairs(sorted_keys(outcomes)) do
    if not promises[lang] then
      ended[#ended + 1] = lang .. (outcomes[lang] and ':1' or ':0')
    end
  end
  return {whole(offset), table.concat(sorted_keys(promises), ','), table.concat(ended, ','), said.payload}
end

local newest, found = newest_first()
local first = found > 0 and tonumber(string.match(newest[found][1], '^%d+')) or m.last + 1
local entries, unfinished = {}, {}
for i = found, math.max(1, found - limit + 1), -1 do
  entries[#entries + 1] = newest[i]
end
for _, offset in ipairs(sorted_offsets(redis.call('HKEYS', m.unfinished))) do
  if offset < first then
    unfinished[#unfinished + 1] = owed(offset)
  end
end
return {position(m), entries, unfinished}

-- Promise utterances in more languages, and begin on them. own arguments: offset, languages "de,ja", offset, languages …
-- Returns offset, languages that the caller owns now, offset, languages …

local m = find(meeting)
local claimed = {}
if not m then
  return claimed
end

local function claim(said, offset, languages)
  local promises, known = promises_of(m, offset), known_as(m, said.key)
  local outcomes = known and known.outcomes or {}
  local owned, changed = {}, false
  for _, lang in ipairs(languages) do
    if not promises[lang] and outcomes[lang] == nil and lang ~= said.source then
      promises[lang], changed = {owner = gateway, tries = 1}, true
    end
    if promises[lang] and promises[lang].owner == gateway then
      owned[#owned + 1] = lang
      changed = changed or promises[lang].waits
      promises[lang].waits = false
    end
  end
  if changed then
    save_promises(m, offset, promises)
    note_work(m)
  end
  return owned
end

for i = OWN, #ARGV, 2 do
  local said = spoken(m, tonumber(ARGV[i]))
  local owned = said and claim(said, tonumber(ARGV[i]), split(ARGV[i + 1])) or {}
  if #owned > 0 then
    claimed[#claimed + 1] = ARGV[i]
    claimed[#claimed + 1] = table.concat(owned, ',')
  end
end
return claimed

-- The newest utterances, and what is owed of older ones. own arguments: how many utterances, how many entries at most.
-- Returns {} if there is no log; else its position, the entries, and of each older utterance with a promise: offset,
-- languages "de,ja" that are unfinished, other languages with an outcome "fr:1,it:0", payload.

local m = find(meeting)
if not m then
  return {}
end
local utterances, limit = tonumber(ARGV[OWN]), tonumber(ARGV[OWN + 1])

-- Offset of the oldest of the newest utterances; behind the end if there is none. It reads no further back than that.
local function oldest_of_newest()
  local found, until_id = m.last + 1, '+'
  while utterances > 0 do
    local entries = redis.call('XREVRANGE', m.log, until_id, whole(m.first) .. '-0', 'COUNT', 100)
    for _, entry in ipairs(entries) do
      until_id = '(' .. entry[1]
      if named(entry[2]).k and utterances > 0 then
        found, utterances = tonumber(string.match(entry[1], '^%d+')), utterances - 1
      end
    end
    if #entries < 100 then
      break
    end
  end
  return found
end

local function owed(offset)
  local said = spoken(m, offset)
  if not said then -- its text has expired
    return nil
  end
  local promises, ended = promises_of(m, offset), {}
  local outcomes = outcomes_of(m, offset)
  for _, lang in ipairs(sorted_keys(outcomes)) do
    if not promises[lang] then
      ended[#ended + 1] = lang .. (outcomes[lang] and ':1' or ':0')
    end
  end
  return {whole(offset), table.concat(sorted_keys(promises), ','), table.concat(ended, ','), said.payload}
end

local first, entries, unfinished = oldest_of_newest(), {}, {}
if first <= m.last then
  entries = redis.call('XRANGE', m.log, whole(first) .. '-0', '+', 'COUNT', limit)
end
for _, offset in ipairs(sorted_offsets(redis.call('HKEYS', m.unfinished))) do
  if offset < first then
    unfinished[#unfinished + 1] = owed(offset)
  end
end
return {position(m), entries, unfinished}

-- Append a final utterance once, and promise it in what is read. own arguments: the epoch that the payload is sealed for,
-- payload, key, digest of the text, attempt, source language or "" for what is not translated, the session that says it or
-- "", its fence, "1" if another segment follows. Returns {} if it is known with another text; {moved} if it is not known and
-- the session has another fence; {epoch} and the log's epoch, "" for none, if it is not known and that is another one; else
-- whether it was known, its offset, the languages that are unfinished, those of them that the caller owns, the epoch, the
-- newest offset, and if it was appended now the account and the bytes that it holds.

local sealed_for, payload, key, digest = ARGV[OWN], ARGV[OWN + 1], ARGV[OWN + 2], ARGV[OWN + 3]
local attempt, source, session, fence = ARGV[OWN + 4], ARGV[OWN + 5], ARGV[OWN + 6], ARGV[OWN + 7]
local continues = ARGV[OWN + 8] == '1'

local function has_moved()
  local newest = session ~= '' and redis.call('HGET', prefix .. 'session:' .. session, 'f')
  return newest and newest ~= fence
end

local function targets(m)
  local languages = {}
  if source == '' then
    return languages
  end
  local read = redis.call('HGETALL', m.langs)
  for i = 1, #read, 2 do
    if is_there(read[i]) then
      for _, lang in ipairs(split(read[i + 1])) do
        languages[lang] = true
      end
    else
      redis.call('HDEL', m.langs, read[i])
    end
  end
  for _, lang in ipairs(redis.call('HKEYS', m.reads)) do -- also of sessions whose gateway is gone
    languages[lang] = true
  end
  languages[source] = nil
  return sorted_keys(languages)
end

local m = find(meeting)
if not m and has_moved() then -- no log is begun for what is refused
  return {'moved'}
end
if not m and sealed_for ~= new_epoch then
  return {'epoch', ''}
end
m = m or begin('', begins_unrecorded)
local seen = known_as(m, key)
local known = '0'
local offset, promises
if seen then
  if seen.digest ~= digest then
    return {}
  end
  if seen.attempt ~= attempt then
    known = '1'
  end
  offset = seen.offset
  promises = promises_of(m, offset)
  -- A session at another gateway was told there of what failed, and may have cancelled it: it is not promised again.
  local is_late, added = has_moved(), false
  for _, lang in ipairs(spoken(m, offset) and targets(m) or {}) do -- nothing, if its words are gone
    local failed = seen.outcomes[lang] == false and not is_late
    if not promises[lang] and (seen.outcomes[lang] == nil or failed) then
      promises[lang] = {owner = gateway, tries = 1}
      added = true
    end
  end
  if added then
    save_promises(m, offset, promises)
    note_work(m)
  end
elseif has_moved() then
  return {'moved'}
elseif m.epoch ~= sealed_for then
  return {'epoch', m.epoch}
else
  local languages = targets(m)
  offset, promises = m.last + 1, {}
  for _, lang in ipairs(languages) do
    promises[lang] = {owner = gateway, tries = 1}
  end
  if #languages > 0 then
    save_promises(m, offset, promises)
    note_work(m)
  end
  save_known(m, key, {offset = offset, outcomes = {}, digest = digest, attempt = attempt})
  append(m, payload, {languages = table.concat(languages, ','), key = key, source = source, continues = continues})
end

local unfinished, owned = sorted_keys(promises), {}
for _, lang in ipairs(unfinished) do
  if promises[lang].owner == gateway then
    owned[#owned + 1] = lang
  end
end
return {
  known, whole(offset), table.concat(unfinished, ','), table.concat(owned, ','), m.epoch, whole(m.last), m.account,
  whole(m.account_bytes or 0)
}

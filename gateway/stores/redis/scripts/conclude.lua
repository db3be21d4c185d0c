-- Append the outcome of a promise once. own arguments: the epoch that the payload is sealed for, payload, offset of the
-- `Said`, the utterance's key, language, "1" for a translation. Returns {} if nothing is promised, or a failure comes from
-- a gateway that does not own it; {epoch} and the log's epoch if that is another one; else the epoch, the offset, at_ms, the
-- account and the bytes that it holds.

local sealed_for, payload = ARGV[OWN], ARGV[OWN + 1]
local offset, key, lang = tonumber(ARGV[OWN + 2]), ARGV[OWN + 3], ARGV[OWN + 4]
local translated = ARGV[OWN + 5] == '1'

local m = find(meeting)
if not m then
  return {}
end
local promises = promises_of(m, offset)
local promise = promises[lang]
if not promise or (not translated and promise.owner ~= gateway) then
  return {}
end
local known = known_as(m, key)
if not known or known.offset ~= offset then -- of another log, before this one was begun
  return {}
end
if m.epoch ~= sealed_for then
  return {'epoch', m.epoch}
end
promises[lang] = nil
save_promises(m, offset, promises)
known.outcomes[lang] = translated
save_known(m, key, known)
if next(promises) == nil and offset < m.first then -- it was trimmed before it was finished
  local said = spoken(m, offset)
  let_go(m, offset, key, said and said.continues)
  redis.call('HDEL', m.texts, whole(offset))
end
local at = append(m, payload)
return {m.epoch, whole(m.last), whole(at), m.account, whole(m.account_bytes)}

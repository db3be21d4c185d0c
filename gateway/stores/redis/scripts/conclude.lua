-- Append the outcome of a promise once. own arguments: offset of the `Said`, the utterance's key, language, "1" for a
-- translation, payload. Returns {} if nothing is promised, or a failure comes from a gateway that does not own it;
-- else the epoch, the offset, at_ms, the account and the bytes that it holds.

local offset, key, lang = tonumber(ARGV[OWN]), ARGV[OWN + 1], ARGV[OWN + 2]
local translated, payload = ARGV[OWN + 3] == '1', ARGV[OWN + 4]

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
promises[lang] = nil
save_promises(m, offset, promises)
if next(promises) == nil and offset < m.first then -- it was trimmed before it was finished
  redis.call('HDEL', m.said, key)
  redis.call('HDEL', m.texts, whole(offset))
else
  known.outcomes[lang] = translated
  save_known(m, key, known)
end
local at = append(m, payload)
return {m.epoch, whole(m.last), whole(at), m.account, whole(m.account_bytes)}

-- Own what gateways that are gone have left. own arguments: how many utterances at most, attempt.
-- Returns for each: meeting, offset, languages, tries, account, payload of the utterance, its epoch ("" for
-- an earlier one). The same attempt gets the
-- same answer again.

local left, attempt = tonumber(ARGV[OWN]), ARGV[OWN + 1]
local answer = prefix .. 'gateway:' .. gateway .. ':taken'
local taken, answer_ms = {}, keep_ms

-- died: it did not leave by itself.
local function take(m, offset, gone, died)
  local promises, languages, tries = promises_of(m, offset), {}, 0
  for _, lang in ipairs(sorted_keys(promises)) do
    local promise = promises[lang]
    if promise.owner == gone then
      if died and not promise.waits then
        promise.tries = promise.tries + 1
      end
      promise.owner, promise.waits = gateway, true
      languages[#languages + 1] = lang
      tries = math.max(tries, promise.tries)
    end
  end
  if #languages == 0 then
    return
  end
  local said = spoken(m, offset)
  if not said then -- its text has expired
    redis.call('HDEL', m.unfinished, whole(offset))
  else
    save_promises(m, offset, promises)
    note_work(m)
    taken[#taken + 1] = {
      m.name, whole(offset), table.concat(languages, ','), tries, m.account, said.payload, epoch_of(m, offset)
    }
    left, answer_ms = left - 1, math.min(answer_ms, KEEPS * m.keep_ms)
  end
end

local function take_over()
  for _, id in ipairs(redis.call('SMEMBERS', prefix .. 'gateways')) do
    if not is_there(id) then
      local work, left_key = prefix .. 'gateway:' .. id .. ':unfinished', prefix .. 'gateway:' .. id .. ':left'
      local died = redis.call('EXISTS', left_key) == 0
      for _, name in ipairs(redis.call('SMEMBERS', work)) do
        local m = find(name)
        local offsets = m and redis.call('HKEYS', m.unfinished) or {}
        for _, offset in ipairs(sorted_offsets(offsets)) do
          if left <= 0 then
            return
          end
          take(m, offset, id, died)
        end
        redis.call('SREM', work, name)
      end
      redis.call('SREM', prefix .. 'gateways', id)
      redis.call('DEL', left_key)
    end
  end
end

local before = redis.call('HMGET', answer, 'attempt', 'taken')
if before[1] == attempt then
  return cmsgpack.unpack(before[2])
end
take_over()
if #taken > 0 then
  redis.call('HSET', answer, 'attempt', attempt, 'taken', cmsgpack.pack(taken))
  redis.call('PEXPIRE', answer, whole(answer_ms))
elseif before[1] then
  redis.call('DEL', answer)
end
return taken

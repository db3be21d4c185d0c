-- Let go of what an account holds beyond its bytes: the oldest entries of its meeting that has been quiet longest, and
-- so on; meetings with subscribers come last. Only some of it, if it is much: the next append goes on. The meeting that
-- was appended to keeps its newest entry. own arguments: account, its bytes, how many meetings and entries at most.

local account, bytes = ARGV[OWN], tonumber(ARGV[OWN + 1])
local meetings, left = tonumber(ARGV[OWN + 2]), tonumber(ARGV[OWN + 3])

local function held()
  return tonumber(redis.call('HGET', prefix .. 'usage', 'of:' .. account) or '0')
end

-- The meeting that comes next after so many others; nil if there is none, or too many places were out of date.
local looks = 10 * meetings
local function next_after(others)
  while looks > 0 do
    looks = looks - 1
    local found = redis.call('ZRANGE', order_of(account), others, others, 'WITHSCORES')
    local m = found[1] and find(found[1])
    if not found[1] then
      return nil
    elseif not m or m.account ~= account then
      redis.call('ZREM', order_of(account), found[1])
    elseif tonumber(found[2]) ~= place_of(m) then
      put(m, place_of(m))
    else
      return m
    end
  end
end

local kept = 0
for _ = 1, meetings do
  local m = next_after(kept)
  local over = held() - bytes -- what had expired is gone
  if not m or over <= 0 or left <= 0 then
    break
  end
  local target, keeps = m.bytes - over, m.name == meeting and 1 or 0
  drop_while(m, function(count)
    left = left - 1
    return left >= 0 and m.bytes > target and count > keeps
  end)
  save(m)
  if m.first <= m.last then
    kept = kept + 1
  end
  finish_if_over(m)
end
return 1

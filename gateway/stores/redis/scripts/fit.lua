-- Let go of what an account holds beyond its bytes: the oldest entries of its meeting that has been quiet longest, and
-- so on; meetings with subscribers come last. Only some of it, if it is much: the next append goes on. The meeting that
-- was appended to keeps its newest entry. own arguments: account, its bytes, how many meetings and entries at most.

local account, bytes = ARGV[OWN], tonumber(ARGV[OWN + 1])
local meetings, left = tonumber(ARGV[OWN + 2]), tonumber(ARGV[OWN + 3])

local function held()
  return tonumber(redis.call('HGET', prefix .. 'usage', 'of:' .. account) or '0')
end

for _, name in ipairs(redis.call('ZRANGE', order_of(account), 0, meetings - 1)) do
  local over = held() - bytes
  if over <= 0 or left <= 0 then
    break
  end
  local m = find(name)
  if m and m.account == account then
    over = held() - bytes -- what had expired is gone
    local target, keeps = m.bytes - over, name == meeting and 1 or 0
    drop_while(m, function(count)
      left = left - 1
      return left >= 0 and m.bytes > target and count > keeps
    end)
    save(m)
    finish_if_over(m)
  else
    redis.call('ZREM', order_of(account), name)
  end
end
return 1

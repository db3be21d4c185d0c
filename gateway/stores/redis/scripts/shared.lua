-- What every script begins with, before the `common.lua` of its folder: the time, in ms, and how texts are read.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function whole(number)
  return string.format('%.0f', number)
end

-- "de,ja" -> its parts.
local function split(text)
  local parts = {}
  for part in string.gmatch(text, '[^,]+') do
    parts[#parts + 1] = part
  end
  return parts
end

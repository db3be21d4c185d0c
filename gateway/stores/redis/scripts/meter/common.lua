-- The arguments of the meter's script.
--
-- Keys of the store:
--   day:<day>            hash: c:<tenant> characters, m:<tenant> minutes
--   day:<day>:changed    sorted set: tenant → version of the newest change of these
--   minute:<minute>      set: "<meeting> <language>" that are counted
--   gateway:<id>:told    number of the newest that the gateway has told
--   waiting              hash: gateway → "<when it told, in ms> <what waits there>"
-- Days and minutes are counted since 1970, by the gateways' clocks.

local prefix, gateway, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
-- Where a script's own arguments begin.
local OWN = 4
-- A day's totals, and numbers, are kept a little longer than they are asked for.
local DAY_MS = 2 * 86400000
-- For how long minutes are known to be counted.
local MINUTE_MS = 600000

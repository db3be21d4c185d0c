-- What the scripts of webhooks begin with. What puts events in is in the folder `session_store`.
--
-- Keys of the store; of each webhook they expire when no gateway has had it in its settings for a while:
--   webhooks                   set: the names of all
--   webhook:<name>             hash: e events "meeting.started,meeting.ended", t tenants, "" for all; u digest of its
--                              address; m how many events may wait; g the digest at which it wanted nothing more; d how many events were dropped;
--                              l when it was tried last, and how that ended
--   webhook:<name>:events      hash: id → "<tries> <type> <at> <meeting started> <meeting ended, or 0> <meeting>"
--   webhook:<name>:waiting     sorted set: id → when it happened
--   webhook:<name>:due         sorted set: id → when to try, or until when a gateway has it
-- Times are in ms.

local prefix, name = ARGV[1], ARGV[2]
-- Where a script's own arguments begin.
local OWN = 3
local base = prefix .. 'webhook:' .. name
local events, waiting, due = base .. ':events', base .. ':waiting', base .. ':due'

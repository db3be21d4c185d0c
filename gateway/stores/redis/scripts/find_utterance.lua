-- Where an utterance is in the log. own arguments: its key. Returns {} if it is not known; else its offset.

local m = find(meeting)
local known = m and known_as(m, ARGV[OWN])
return known and {whole(known.offset)} or {}

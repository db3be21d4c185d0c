-- Use up a token for a user. own arguments: token, user, until when it is remembered. Returns 1 if it is theirs, or 0.

return use(ARGV[OWN], ARGV[OWN + 1], ARGV[OWN + 2]) and 0 or 1

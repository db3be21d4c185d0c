-- Whether a meeting is locked. own arguments: the meeting.

return redis.call('HEXISTS', keys_of(ARGV[OWN]).people, 'k')

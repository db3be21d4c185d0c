-- The caller has no subscribers in this meeting any more. A log that has nothing left in it ends.

redis.call('HDEL', keys_of(meeting).langs, gateway)
find(meeting)
return 1

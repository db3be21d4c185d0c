-- What every script begins with: the arguments that all share, one meeting's state, how its log grows and shrinks.
--
-- KEYS are not used: a script also touches the keys of gateways, so this is not for Redis Cluster.
-- Keys of a meeting, all with the same hash tag:
--   log         stream: id <offset>-0; d payload, t at_ms; of a `Said` also l languages, k key, s source language,
--               c '1' if another segment follows
--   meta        hash: e epoch, s offset before the epoch's first, o newest offset, f oldest offset that is held,
--               t at_ms of the newest, h at_ms of the oldest that is held, b bytes, a account, u '1' if it is not recorded,
--               w what the meeting is called: title, line feed, who holds it
--   langs       hash: gateway with subscribers → languages that are read there, "de,ja"
--   said        hash: key of an utterance → digest of language and text, 16 bytes; attempt, 8 bytes; offset; its
--               outcomes, ",de:1,ja:0": translated or failed. The field "" is always there, so that the hash
--               and the time when it expires stay
--   unfinished  hash: offset of a `Said` → "de:1:<gateway>,ja:2w:<gateway>": tries, w if it only waits there, and owner
--   kept        sorted set: key of a segment that was trimmed after which another follows, and is in `said` still →
--               offset
--   texts       hash: offset of a `Said` that was trimmed and is not finished → its key, source language, payload,
--               '1' if another segment follows
--   people, reads   of the session store: exists while a session is in the meeting; language → how many sessions read it
--   session:<id>    of the session store, and of the store: f fence
-- Keys of the store:
--   share                      its id, and the ids of all stores that share meetings: see `checks.ids_of`
--   format                     of all of this: see `checks.FORMAT`
--   gateways                   set: all that may have left something unfinished
--   heard_of_one               exists while any gateway is there
--   grace                      exists while every gateway counts as being there, after a time without any
--   gateway:<id>               exists while the gateway is there
--   gateway:<id>:unfinished    set: meetings in which it has owned something
--   gateway:<id>:left          exists once it has left by itself, until what it left is taken over
--   due                        sorted set: meeting → when to look whether it has expired, in ms
--   gateway:<id>:taken         hash: its last attempt to take over, and the answer
--   usage                      hash: publications; of:<account> → bytes
--   account:<account>          sorted set: meeting that holds entries → its place, perhaps out of date: see `place_of`

local prefix, meeting, gateway, new_epoch = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local keep_ms, max_publications, max_bytes = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
-- How far the caller has seen the meeting's log.
local seen_epoch, seen_offset = ARGV[8], tonumber(ARGV[9])
-- For how long a meeting that is not recorded keeps what was said, and whether a log that begins now is of one ('1').
local unrecorded_ms, begins_unrecorded = tonumber(ARGV[10]), ARGV[11]
-- Where a script's own arguments begin.
local OWN = 12
-- Estimated bytes of an entry besides its payload.
local ENTRY_BYTES = 256
-- Later than any time in ms.
local LISTENED = 4e12
-- Without any gateway on the store, what was said is gone after this many times as long as it is kept.
local KEEPS = 3
-- How many trimmed segments of a meeting are still known.
local MOST_KEPT = 1000

-- After a time in which the store heard of no gateway at all, each may show that it is there before it counts as gone.
local function has_heard_of_nobody()
  return redis.call('EXISTS', prefix .. 'heard_of_one') == 0 and redis.call('SCARD', prefix .. 'gateways') > 0
end

local function is_there(id)
  return id == gateway or redis.call('EXISTS', prefix .. 'gateway:' .. id) == 1
    or redis.call('EXISTS', prefix .. 'grace') == 1 or has_heard_of_nobody()
end

local function sorted_keys(set)
  local names = {}
  for name in pairs(set) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

-- As numbers, the lowest first.
local function sorted_offsets(texts)
  local offsets = {}
  for i, text in ipairs(texts) do
    offsets[i] = tonumber(text)
  end
  table.sort(offsets)
  return offsets
end

local function named(fields)
  local values = {}
  for i = 1, #fields, 2 do
    values[fields[i]] = fields[i + 1]
  end
  return values
end

-- Should no gateway come back, what was said goes all the same; `sweep` renews this. Only for a key that was just made: at
-- each write it would double what that costs. `unfinished` and `meta`, which hold no words, stay.
local function let_expire(m, key)
  redis.call('PEXPIRE', key, whole(KEEPS * m.keep_ms))
end

local function keys_of(name)
  local base = prefix .. '{' .. name .. '}:'
  return {
    name = name,
    channel = base .. 'push',
    log = base .. 'log',
    meta = base .. 'meta',
    langs = base .. 'langs',
    said = base .. 'said',
    kept = base .. 'kept',
    unfinished = base .. 'unfinished',
    texts = base .. 'texts',
    people = base .. 'people',
    reads = base .. 'reads',
  }
end

local function charge(m, bytes, publications)
  m.bytes = m.bytes + bytes
  m.account_bytes = redis.call('HINCRBY', prefix .. 'usage', 'of:' .. m.account, bytes)
  if m.account_bytes <= 0 then
    redis.call('HDEL', prefix .. 'usage', 'of:' .. m.account)
  end
  redis.call('HINCRBY', prefix .. 'usage', 'publications', publications)
end

local function save(m)
  redis.call(
    'HSET', m.meta, 'o', whole(m.last), 'f', whole(m.first), 't', whole(m.newest), 'h', whole(m.oldest),
    'b', whole(m.bytes)
  )
end

-- Language → what is promised: its owner, whether it only waits there, and one more than gateways have died with it.
local function promises_of(m, offset)
  local promises = {}
  local text = redis.call('HGET', m.unfinished, whole(offset))
  if text then
    for lang, tries, waits, owner in string.gmatch(text, '([^:,]+):(%d+)(w?):([^,]+)') do
      promises[lang] = {owner = owner, tries = tonumber(tries), waits = waits == 'w'}
    end
  end
  return promises
end

local function save_promises(m, offset, promises)
  local parts = {}
  for _, lang in ipairs(sorted_keys(promises)) do
    local promise = promises[lang]
    parts[#parts + 1] = lang .. ':' .. promise.tries .. (promise.waits and 'w:' or ':') .. promise.owner
  end
  if #parts == 0 then
    redis.call('HDEL', m.unfinished, whole(offset))
  else
    redis.call('HSET', m.unfinished, whole(offset), table.concat(parts, ','))
  end
end

-- The caller owns something in this meeting. It stays noted until somebody takes the caller's work over.
local function note_work(m)
  redis.call('SADD', prefix .. 'gateway:' .. gateway .. ':unfinished', m.name)
end

-- What the log has under an utterance's key: offset, outcomes (language → whether that is a translation), digest, attempt;
-- nil if it has not.
local function known_as(m, key)
  local value = redis.call('HGET', m.said, key)
  if not value then
    return nil
  end
  local offset, ended = string.match(value, '^(%d+)(.*)$', 25)
  local outcomes = {}
  for lang, translated in string.gmatch(ended, '([^:,]+):(%d)') do
    outcomes[lang] = translated == '1'
  end
  return {
    offset = tonumber(offset), outcomes = outcomes, digest = string.sub(value, 1, 16), attempt = string.sub(value, 17, 24)
  }
end

local function save_known(m, key, known)
  local parts = {known.digest .. known.attempt .. whole(known.offset)}
  for _, lang in ipairs(sorted_keys(known.outcomes)) do
    parts[#parts + 1] = lang .. (known.outcomes[lang] and ':1' or ':0')
  end
  redis.call('HSET', m.said, key, table.concat(parts, ','))
end

local function forget(m, offset, key)
  local known = known_as(m, key)
  if known and known.offset == offset then
    redis.call('HDEL', m.said, key)
  end
end

-- An utterance that is neither held nor unfinished. continues: another segment follows. Where its talk goes on at another
-- gateway, that one asks for it from the first segment on.
local function let_go(m, offset, key, continues)
  if not continues then
    forget(m, offset, key)
    return
  end
  redis.call('ZADD', m.kept, whole(offset), key)
  local count = redis.call('ZCARD', m.kept)
  if count == 1 then
    let_expire(m, m.kept)
  elseif count > MOST_KEPT then
    local oldest = redis.call('ZPOPMIN', m.kept)
    forget(m, tonumber(oldest[2]), oldest[1])
  end
end

-- The oldest entry is not held any more.
local function drop(m, entry)
  if entry.k then
    if redis.call('HEXISTS', m.unfinished, whole(m.first)) == 1 then
      redis.call('HSET', m.texts, whole(m.first), cmsgpack.pack({entry.k, entry.s, entry.d, entry.c}))
      let_expire(m, m.texts)
      let_expire(m, m.said) -- not before the text
    else
      let_go(m, m.first, entry.k, entry.c)
    end
  end
  charge(m, -(#entry.d + ENTRY_BYTES), -1)
  m.first = m.first + 1
end

local function has_expired(m)
  return m.oldest < now - m.keep_ms
end

-- The account's meetings in the order in which they lose entries.
local function order_of(account)
  return prefix .. 'account:' .. account
end

-- Those that were appended to long ago come first, and after all of these those that have subscribers.
local function place_of(m)
  return m.newest + (redis.call('EXISTS', m.langs) == 1 and LISTENED or 0)
end

local function put(m, place)
  redis.call('ZADD', order_of(m.account), whole(place), m.name)
end

-- Its subscribers have come or gone. What holds nothing has no place in the order.
local function rank(m)
  if redis.call('ZSCORE', order_of(m.account), m.name) then
    put(m, place_of(m))
  end
end

-- Drop the oldest entries. goes: whether another one does, of so many that are held.
local function drop_while(m, goes)
  local before, batch, fits = m.first, 2, false
  while m.first <= m.last and not fits do
    local entries = redis.call('XRANGE', m.log, whole(m.first) .. '-0', '+', 'COUNT', batch)
    batch = 100
    if #entries == 0 then -- the stream was left to expire
      charge(m, 0 - m.bytes, m.first - m.last - 1)
      m.first = m.last + 1
    end
    for _, each in ipairs(entries) do
      local entry = named(each[2])
      m.oldest = tonumber(entry.t)
      fits = not goes(m.last - m.first + 1)
      if fits then
        break
      end
      drop(m, entry)
    end
  end
  if m.first > before then
    redis.call('XTRIM', m.log, 'MINID', '=', whole(m.first) .. '-0')
  end
  if m.first > m.last then
    redis.call('ZREM', order_of(m.account), m.name)
  end
end

-- Drop what is too old or too much, but not the newest entry because of its size.
local function trim(m)
  drop_while(m, function(count)
    return has_expired(m) or count > max_publications or (m.bytes > max_bytes and count > 1)
  end)
end

-- Also a session that no gateway has at the moment: it may be resumed.
local function has_subscribers(m)
  if redis.call('EXISTS', m.people) == 1 then
    return true
  end
  for _, id in ipairs(redis.call('HKEYS', m.langs)) do
    if is_there(id) then
      return true
    end
  end
  return false
end

local function finish(m)
  charge(m, 0 - m.bytes, 0)
  redis.call('DEL', m.log, m.meta, m.langs, m.said, m.kept, m.unfinished, m.texts)
  redis.call('ZREM', prefix .. 'due', m.name)
  for _, id in ipairs(redis.call('SMEMBERS', prefix .. 'gateways')) do
    redis.call('SREM', prefix .. 'gateway:' .. id .. ':unfinished', m.name)
  end
end

-- A log that nobody needs any more ends. Returns whether it has.
local function finish_if_over(m)
  local is_over = m.first > m.last and redis.call('EXISTS', m.unfinished) == 0 and not has_subscribers(m)
  if is_over then
    finish(m)
  end
  return is_over
end

-- unrecorded: '1' if it is not recorded.
local function keeps(m, unrecorded)
  m.unrecorded = unrecorded
  m.keep_ms = unrecorded == '1' and unrecorded_ms or keep_ms
end

-- The meeting's log without what has expired; nil if it has none.
local function find(name)
  local m = keys_of(name)
  local values = redis.call('HMGET', m.meta, 'e', 's', 'o', 'f', 't', 'h', 'b', 'a', 'u', 'w')
  if not values[1] then
    return nil
  end
  keeps(m, values[9] or '0')
  m.title = values[10] or ''
  m.epoch, m.start, m.last, m.first = values[1], tonumber(values[2]), tonumber(values[3]), tonumber(values[4])
  m.newest, m.oldest, m.bytes, m.account = tonumber(values[5]), tonumber(values[6]), tonumber(values[7]), values[8]
  if name == meeting and m.epoch == seen_epoch and m.last < seen_offset then
    -- This is an older copy: the offsets after it are used, for something else.
    m.epoch, m.start = new_epoch, m.last
    redis.call('HSET', m.meta, 'e', m.epoch, 's', whole(m.start))
  end
  if m.first <= m.last and has_expired(m) then
    trim(m)
    save(m)
  end
  if finish_if_over(m) then
    return nil
  end
  return m
end

local function begin(account, unrecorded)
  local m = keys_of(meeting)
  keeps(m, unrecorded)
  m.epoch, m.start, m.last, m.first, m.newest, m.oldest, m.bytes = new_epoch, 0, 0, 1, 0, 0, 0
  m.account, m.title = account, ''
  redis.call('DEL', m.log, m.said, m.kept, m.unfinished, m.texts)
  redis.call('HSET', m.meta, 'e', m.epoch, 's', '0', 'a', m.account, 'u', unrecorded)
  redis.call('HSET', m.said, '', '')
  let_expire(m, m.said)
  save(m)
  redis.call('ZADD', prefix .. 'due', whole(now + m.keep_ms), m.name)
  return m
end

-- The next publication. said: of a `Said` its languages, key and source language, and whether another segment follows.
local function append(m, payload, said)
  local at = math.max(now, m.newest)
  m.last, m.newest = m.last + 1, at
  if m.first == m.last then
    m.oldest = at
  end
  local fields = {'d', payload, 't', whole(at)}
  if said then
    fields = {'d', payload, 't', whole(at), 'l', said.languages, 'k', said.key, 's', said.source}
    if said.continues then
      fields[#fields + 1], fields[#fields + 2] = 'c', '1'
    end
  end
  redis.call('XADD', m.log, whole(m.last) .. '-0', unpack(fields))
  charge(m, #payload + ENTRY_BYTES, 1)
  if has_expired(m) or m.last - m.first >= max_publications or m.bytes > max_bytes then
    trim(m)
  end
  save(m)
  if m.first == m.last then
    put(m, place_of(m)) -- it is out of date after the next one, which `fit` finds out
    let_expire(m, m.log)
  end
  local header = {m.epoch, whole(m.last), whole(at), said and said.languages or '-'}
  redis.call('PUBLISH', m.channel, table.concat(header, ' ') .. '\n' .. payload)
  return at
end

-- The epoch in which this was appended; "" for an earlier one.
local function epoch_of(m, offset)
  return offset > m.start and m.epoch or ''
end

-- Key, source language and payload of the utterance with this offset, and whether another segment follows; nil if there is
-- none.
local function spoken(m, offset)
  local text = redis.call('HGET', m.texts, whole(offset))
  if text then
    local kept = cmsgpack.unpack(text)
    return {key = kept[1], source = kept[2], payload = kept[3], continues = kept[4]}
  end
  if offset < m.first or offset > m.last then
    return nil
  end
  local id = whole(offset) .. '-0'
  local entries = redis.call('XRANGE', m.log, id, id)
  local entry = entries[1] and named(entries[1][2])
  if not entry or not entry.k then
    return nil
  end
  return {key = entry.k, source = entry.s, payload = entry.d, continues = entry.c}
end

local function position(m)
  return {m.epoch, whole(m.start), whole(m.first), whole(m.last), m.unrecorded, m.title}
end


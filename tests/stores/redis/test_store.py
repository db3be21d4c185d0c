"""A gateway's access to a real Redis."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from gateway.domain.errors import LogUnavailable
from gateway.domain.log import Said, Translated
from gateway.stores.redis.connection import Connection
from gateway.stores.redis.log import RedisEventLog
from gateway.stores.redis.session_store import RedisSessionStore
from gateway.stores.redis.store import RedisStore, load_all, script_names, sha
from tests.redis_server import shared_server
from tests.usual import usual

# What tells that the gateway that wrote it is there: it is not.
LEASES_MS = 60_000

FOREVER_S = 1e9


@pytest.fixture
def earlier() -> Iterator[RedisStore]:
    """What revision 5d2b083 left in a store: before glossaries, and before languages were detected."""
    keys = json.loads((Path(__file__).parents[1] / "earlier" / "store.json").read_text())
    with Redis(unix_socket_path=str(shared_server().socket)) as redis:
        for key, (left_ms, dumped) in keys.items():
            if not 0 < left_ms < LEASES_MS:
                redis.restore(key, left_ms, base64.b64decode(dumped), replace=True)
        yield usual(RedisStore, shared_server().url, prefix="earlier:")
        redis.delete(*redis.keys("earlier:*"))


async def test_scripts_run_only_between_start_and_close() -> None:
    store = usual(RedisStore, shared_server().url)
    arguments = ("nobody:", "meeting", store.id, "epoch", 1_000, 100, 1_000, "", 0, 0, 10)
    with pytest.raises(LogUnavailable):
        await store.run_script("read", *arguments)
    await store.start()
    assert await store.run_script("read", *arguments) == []
    await store.close()
    with pytest.raises(LogUnavailable):
        await store.run_script("read", *arguments)


def test_gateways_and_meetings_are_told_apart() -> None:
    one, another = usual(RedisStore, "unix:///one", prefix="a:"), usual(RedisStore, "unix:///one", prefix="b:")
    assert one.id != another.id
    channels = {store.channel(meeting, "push") for store in (one, another) for meeting in ("standup", "demo")}
    assert len(channels) == 4


async def test_earlier_versions_data_is_read_and_finished(earlier: RedisStore) -> None:
    # What is added to an entry or a session needs a default. If that cannot be, another `FORMAT` says so.
    await earlier.start()
    log, session_store = (
        usual(RedisEventLog, earlier, keep_s=FOREVER_S),
        usual(RedisSessionStore, earlier, keep_s=FOREVER_S),
    )
    try:
        await log.start()
        await session_store.open(lambda *_: None, lambda _: None)
        await goes_on(log, session_store)
    finally:
        await session_store.close()
        await log.close()
        await earlier.close()


async def goes_on(log: RedisEventLog, session_store: RedisSessionStore) -> None:
    said, done = (each.event for each in (await log.read("acme/standup", after=0)).publications)
    assert isinstance(said, Said)
    assert (said.utterance.text, said.languages, said.utterance.detected) == ("Good morning.", ("de", "ja"), False)
    assert isinstance(done, Translated)
    assert (done.text, done.source) == ("Guten Morgen.", "")
    # Nobody was there, so it may still show that it is. After that, what it has not done is this one's.
    await log.store.commands.run("DEL", "earlier:grace")
    (owed,) = await log.take_over()
    assert (owed.utterance, owed.languages, owed.account) == (said.utterance, ("ja",), "acme")
    again = await log.accept("acme/standup", said.utterance)
    assert (again.known, again.offset) == (True, 1)
    held = await session_store.find(b"digest-of-the-secret")
    assert held is not None
    assert (held.fence, held.record.name, held.record.reads) == (1, "Ana", ("ja", "de"))
    assert await session_store.take(b"digest-of-the-secret", held.fence, held.record) == 2


async def test_the_server_calls_a_script_by_the_same_digest() -> None:
    connection = Connection(shared_server().url)
    await connection.connect()
    await connection.send(load_all())
    digests = [(await connection.receive()).decode() for _ in load_all()]
    await connection.close()
    assert digests == [sha(name) for name in script_names()]

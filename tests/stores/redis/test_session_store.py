"""The session store in a real Redis when answers and pushes are lost, and the store or all gateways are restarted.

What holds for every store is in `tests/contract/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.domain.errors import LogUnavailable, Unauthenticated
from gateway.domain.grants import Revocation
from gateway.domain.session_store import Bounds, Held, Present, TenantCounts
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.stores.redis.log import RedisEventLog
from gateway.stores.redis.session_store import MeetingPresence, RedisSessionStore, encode_present
from gateway.stores.redis.store import RedisStore
from tests.logs import nothing, utterance
from tests.patience import until
from tests.redis_server import RedisServer, impatient, shared_server
from tests.stores.redis.proxy import Proxy
from tests.usual import usual

ANA, BO = b"a" * 32, b"b" * 32
SHOWN = Bounds(shown=10)
TOKEN = UsedToken("acme", "t1", "ana", 2e9)


def record(participant: str = "ana", *reads: str) -> SessionRecord:
    return SessionRecord(participant, "acme/m", False, participant.title(), None, reads)


class Gateway:
    def __init__(self, session_store: RedisSessionStore) -> None:
        self.session_store = session_store
        self.moved: list[tuple[bytes, bool]] = []
        self.revoked: list[Revocation] = []
        self.present: dict[str, Present | None] = {}

    async def open(self) -> None:
        await self.session_store.open(lambda *moved: self.moved.append(moved), self.revoked.append)


@asynccontextmanager
async def opened(url: str, prefix: str, *, keep_s: float = 60.0, **options: Any) -> AsyncIterator[Gateway]:
    store = usual(RedisStore, url, prefix=prefix, **options)
    await store.start()
    gateway = Gateway(usual(RedisSessionStore, store, keep_s=keep_s))
    await gateway.open()
    try:
        yield gateway
    finally:
        await gateway.session_store.close()
        await store.close()


@pytest.fixture
async def ana(network: Proxy, prefix: str) -> AsyncIterator[Gateway]:
    async with opened(network.url, prefix) as gateway:
        yield gateway


@pytest.fixture
async def ben(prefix: str) -> AsyncIterator[Gateway]:
    """On the same store."""
    async with opened(shared_server().url, prefix) as gateway:
        yield gateway


def ask(command: str) -> str:
    return shared_server().ask(command)


# Answers and pushes that are lost


@pytest.mark.parametrize("what", ["begin", "take", "save", "end"])
async def test_repeated_command_after_a_lost_answer_counts_once(
    ana: Gateway, ben: Gateway, network: Proxy, what: str
) -> None:
    session_store = ana.session_store
    bounds = Bounds(sessions=1, shown=1)
    fence: int | None = 1
    if what != "begin":
        fence = await session_store.begin(ANA, record(), bounds)
    network.lose_the_answer_to(ANA)
    if what == "begin":
        assert await session_store.begin(ANA, record(), bounds, TOKEN) == 1
    elif what == "take":
        fence = await session_store.take(ANA, 1, record(), bounds)
        assert fence == 2
    elif what == "save":
        assert await session_store.save(ANA, 1, record("ana", "de"))
    else:
        await session_store.end(ANA, 1)
    assert network.has_lost
    held = await ben.session_store.find(ANA)
    assert (held and held.fence) == (None if what == "end" else fence)
    assert await ben.session_store.counts("acme") == (TenantCounts() if what == "end" else TenantCounts(1, 1))


async def test_sweep_makes_good_lost_pushes(ana: Gateway, ben: Gateway, network: Proxy) -> None:
    present: dict[str, Present | None] = {}
    async with ana.session_store.subscribe("acme/m", present.__setitem__):
        fence = await ana.session_store.begin(ANA, record(), SHOWN)
        await until(lambda: "ana" in present)
        network.loses_pushes = True
        revocation = Revocation(tenant="acme", before_s=1.0)
        await ben.session_store.revoke(revocation)
        await ben.session_store.begin(BO, record("bo"), SHOWN)
        assert await ben.session_store.take(ANA, fence, record()) == fence + 1
        for _ in range(3):
            await ana.session_store.sweep()
        await until(lambda: "bo" in present and ana.moved and ana.revoked)
        assert (ana.moved, ana.revoked) == ([(ANA, True)], [revocation])


async def test_missed_changes_are_read_with_the_next_push(ana: Gateway, ben: Gateway, network: Proxy) -> None:
    present: dict[str, Present | None] = {}
    async with ana.session_store.subscribe("acme/m", present.__setitem__):
        await ben.session_store.begin(ANA, record("ana"), SHOWN)
        await until(lambda: "ana" in present)
        network.loses_pushes = True
        await ben.session_store.begin(BO, record("bo"), SHOWN)
        await ben.session_store.end(ANA, 1)
        # A push that comes after this one is not lost.
        await ben.session_store.store.commands.run("PING")
        await asyncio.sleep(0.05)
        network.loses_pushes = False
        await ben.session_store.begin(b"c" * 32, record("cy"), SHOWN)
        await until(lambda: set(present) == {"ana", "bo", "cy"})
        assert present["ana"] is None


async def test_after_a_lost_connection_everything_is_read_again(
    ana: Gateway, ben: Gateway, network: Proxy
) -> None:
    present: dict[str, Present | None] = {}
    async with ana.session_store.subscribe("acme/m", present.__setitem__):
        network.cut()
        await ben.session_store.begin(BO, record("bo"), SHOWN)
        await until(lambda: "bo" in present)


async def test_session_ended_before_its_begin_never_begins(ana: Gateway, ben: Gateway) -> None:
    """As when the answer to its begin did not come, and the command itself is still on its way."""
    await ana.session_store.end(ANA, 1)
    with pytest.raises(LogUnavailable):
        await ana.session_store.begin(ANA, record())
    assert await ben.session_store.counts("acme") == TenantCounts()


# The store, or every gateway, is away


async def test_while_the_store_is_away_everything_says_so(server: RedisServer, prefix: str) -> None:
    async with opened(server.url, prefix) as gateway:
        session_store = gateway.session_store
        fence = await session_store.begin(ANA, record())
        server.kill()
        for attempt in (
            session_store.begin(BO, record("bo")),
            session_store.find(ANA),
            session_store.take(ANA, fence, record()),
            session_store.save(ANA, fence, record()),
            session_store.release(ANA, fence),
            session_store.end(BO, 1),
            session_store.use(TOKEN),
            session_store.revoke(Revocation(tenant="acme", before_s=1.0)),
            session_store.counts("acme"),
        ):
            with impatient(session_store.store), pytest.raises(LogUnavailable) as error:
                await attempt
            assert error.value.retry_after_ms
        with impatient(session_store.store), pytest.raises(LogUnavailable):
            async with session_store.subscribe("acme/m", lambda _participant, _present: None):
                pass
        await session_store.sweep()


async def test_a_restart_of_the_store_keeps_all_of_it(server: RedisServer, prefix: str) -> None:
    revocation = Revocation(tenant="acme", before_s=1.0)
    async with opened(server.url, prefix) as gateway:
        present: dict[str, Present | None] = {}
        async with gateway.session_store.subscribe("acme/m", present.__setitem__):
            fence = await gateway.session_store.begin(ANA, record("ana", "de"), SHOWN, TOKEN)
            await gateway.session_store.revoke(revocation)
            server.kill()
            server.start()
            assert await gateway.session_store.find(ANA) == Held(record("ana", "de"), fence)
            await gateway.session_store.begin(BO, record("bo"), SHOWN)
            await until(lambda: set(present) == {"ana", "bo"})
            with pytest.raises(Unauthenticated):
                await gateway.session_store.use(UsedToken("acme", "t1", "bo", 2e9))
            async with opened(server.url, prefix) as another:
                assert another.revoked == [revocation]
                assert await another.session_store.counts("acme") == TenantCounts(2, 1)
            assert gateway.moved == []


async def test_time_without_gateways_does_not_count(prefix: str) -> None:
    async with opened(shared_server().url, prefix, keep_s=60.0) as before:
        await before.session_store.begin(ANA, record())
    # They are restarted, which takes an hour.
    now = int(ask(f"HGET {prefix}clock t").split("\r\n")[1])
    ask(f"HSET {prefix}clock t {now - 3_600_000}")
    ask(f"ZADD {prefix}heard {-(now - 3_600_000)} {before.session_store.store.id}")
    async with opened(shared_server().url, prefix, keep_s=60.0) as after:
        for _ in range(3):
            await after.session_store.sweep()
        held = await after.session_store.find(ANA)
        assert held is not None
        assert await after.session_store.take(ANA, held.fence, record()) is not None


async def test_live_gateways_survive_an_outage(ana: Gateway, ben: Gateway, prefix: str) -> None:
    await ana.session_store.begin(ANA, record())
    await ben.session_store.sweep()
    now = int(ask(f"HGET {prefix}clock t").split("\r\n")[1])
    ask(f"HSET {prefix}clock t {now - 3_600_000}")
    for gateway in (ana, ben):
        ask(f"ZADD {prefix}heard {now - 3_600_000} {gateway.session_store.store.id}")
    await ben.session_store.sweep()
    assert ask(f"ZCARD {prefix}ownerless") == ":0\r\n"
    assert ana.moved == []


async def test_emptied_store_ends_the_sessions_here(ana: Gateway, prefix: str) -> None:
    await ana.session_store.begin(ANA, record())
    script = f"\"for _,k in ipairs(redis.call('KEYS','{prefix}*')) do redis.call('DEL',k) end return 1\""
    assert ask(f"EVAL {script} 0") == ":1\r\n"
    await ana.session_store.sweep()
    await until(lambda: ana.moved)
    assert ana.moved == [(ANA, False)]


# What the log knows of sessions


async def test_lost_gateways_sessions_are_still_translated_for(ben: Gateway, prefix: str) -> None:
    log = usual(RedisEventLog, ben.session_store.store)
    await log.start()
    async with opened(shared_server().url, prefix) as ana:
        await ana.session_store.begin(ANA, record("ana", "de", "ja"))
    accepted = await log.accept("acme/m", utterance("One.", lang="en"))
    assert (accepted.unfinished, accepted.owned) == (("de", "ja"), ("de", "ja"))
    await ben.session_store.end(ANA, 1)
    assert (await log.accept("acme/m", utterance("Two.", lang="en"))).unfinished == ()
    await log.close()


async def test_empty_log_stays_while_a_session_is_resumable(ben: Gateway, prefix: str) -> None:
    log = usual(RedisEventLog, ben.session_store.store)
    await log.start()
    await ben.session_store.begin(ANA, record())
    async with log.subscribe("acme/m", nothing) as subscription:
        epoch = subscription.start.epoch
    assert (await log.read("acme/m", 0)).epoch == epoch
    await ben.session_store.end(ANA, 1)
    assert (await log.read("acme/m", 0)).epoch == ""
    await log.close()


# Housekeeping


async def test_nothing_is_left_of_sessions_that_have_ended(ana: Gateway, ben: Gateway, prefix: str) -> None:
    fence = await ana.session_store.begin(ANA, record("ana", "de", "fr"), SHOWN)
    taken = await ben.session_store.take(ANA, fence, record("ana", "ja"))
    assert taken is not None
    await ben.session_store.end(ANA, taken)
    keys = ask(f"EVAL \"return table.concat(redis.call('KEYS','{prefix}*'),' ')\" 0").split("\r\n")[1].split()
    counts = {f"gateway:{gateway.session_store.store.id}:moved" for gateway in (ana, ben)}
    assert {key.removeprefix(prefix) for key in keys} == {"heard", "clock", *counts}


async def test_lost_gateways_sessions_are_released_in_parts(ben: Gateway, prefix: str) -> None:
    async with opened(shared_server().url, prefix) as ana:
        for n in range(250):
            await ana.session_store.begin(n.to_bytes(32), record(f"{n}"))
    await ben.session_store.sweep()
    assert ask(f"ZCARD {prefix}ownerless") == ":200\r\n"
    await ben.session_store.sweep()
    assert ask(f"ZCARD {prefix}ownerless") == ":250\r\n"
    assert ask(f"ZCARD {prefix}heard") == ":1\r\n"


async def test_gateway_thought_gone_regains_its_sessions(ana: Gateway, ben: Gateway, prefix: str) -> None:
    for n in range(250):
        await ana.session_store.begin(n.to_bytes(32), record(f"{n}"))
    ask(f"ZINCRBY {prefix}heard -10000 {ana.session_store.store.id}")
    await ben.session_store.sweep()
    assert ask(f"ZCARD {prefix}ownerless") == ":200\r\n"
    await ana.session_store.sweep()
    while ask(f"ZCARD {prefix}ownerless") != ":0\r\n":
        await asyncio.sleep(0.001)
    assert ask(f"SCARD {prefix}gateway:{ana.session_store.store.id}:sessions") == ":250\r\n"
    assert ana.moved == []


async def test_stale_push_does_not_take_a_returned_session(ana: Gateway, ben: Gateway, prefix: str) -> None:
    fence = await ana.session_store.begin(ANA, record())
    taken = await ben.session_store.take(ANA, fence, record())
    assert taken is not None
    assert await ana.session_store.take(ANA, taken, record()) is not None
    ask(f"PUBLISH {prefix}gateway:{ana.session_store.store.id} '7 {taken} {ANA.decode()}'")
    # This push comes after that one.
    other = await ana.session_store.begin(BO, record("bo"))
    await ben.session_store.take(BO, other, record("bo"))
    await until(lambda: (BO, True) in ana.moved)
    assert ana.moved.count((ANA, True)) == 1


async def test_gateway_gone_before_its_next_sweep_is_found(ana: Gateway, ben: Gateway, prefix: str) -> None:
    ask(f"ZREM {prefix}heard {ana.session_store.store.id}")
    await ana.session_store.begin(ANA, record())
    ask(f"ZINCRBY {prefix}heard -10000 {ana.session_store.store.id}")
    await ben.session_store.sweep()
    assert ask(f"ZCARD {prefix}ownerless") == ":1\r\n"


async def test_revocations_are_forgotten_when_nothing_older_is_valid(ana: Gateway, prefix: str) -> None:
    await ana.session_store.revoke(Revocation(tenant="acme", before_s=1.0, subject="ana"))
    await ana.session_store.revoke(Revocation(tenant="acme", before_s=1.0, subject="bo"))
    key = f"{prefix}revoked"
    eight_days_ago = f"redis.call('ZINCRBY','{key}',-700000000,redis.call('ZRANGE','{key}',0,0)[1])"
    ask(f'EVAL "return {eight_days_ago}" 0')
    await ana.session_store.sweep()
    assert ask(f"ZCARD {prefix}revoked") == ":1\r\n"
    assert ask(f"HLEN {prefix}revocations") == ":1\r\n"


async def test_revocation_that_means_no_token_is_forgotten_soon(ana: Gateway, prefix: str) -> None:
    await ana.session_store.revoke(Revocation(tenant="acme", before_s=1.0, subject="ana"))
    await ana.session_store.revoke(
        Revocation(tenant="acme", before_s=0, meeting="m", by_operator=True, by_host=True)
    )
    await ana.session_store.sweep()
    assert ask(f"HLEN {prefix}revocations") == ":2\r\n"
    key = f"{prefix}revoked:brief"
    eleven_minutes_ago = f"redis.call('ZINCRBY','{key}',-660000,redis.call('ZRANGE','{key}',0,0)[1])"
    ask(f'EVAL "return {eleven_minutes_ago}" 0')
    await ana.session_store.sweep()
    for left, count in (("revocations", "HLEN"), ("revoked", "ZCARD")):
        assert ask(f"{count} {prefix}{left}") == ":1\r\n"
    assert ask(f"ZCARD {key}") == ":0\r\n"


async def test_what_a_newer_gateway_wrote_is_left_out(ana: Gateway, prefix: str) -> None:
    await ana.session_store.begin(ANA, record())
    ask(f"HSET {prefix}session:{ANA.decode()} r nonsense")
    assert await ana.session_store.find(ANA) is None


def present(name: str) -> Present:
    return Present(name, "en", ("de",))


def value(name: str, came: int = 1) -> bytes:
    return b"%d %s" % (came, encode_present(present(name)))


def push(version: int, previous: int, participant: str, name: str | None = None) -> bytes:
    return b"%d %d %s\n%s" % (version, previous, participant.encode(), b"" if name is None else value(name))


class Audience:
    def __init__(self, meeting: MeetingPresence) -> None:
        self.told: list[tuple[str, Present | None]] = []
        meeting.add(self, lambda *change: self.told.append(change), lambda _: None)

    def new(self) -> list[tuple[str, Present | None]]:
        told, self.told = self.told, []
        return told


def meeting(version: int | None = 5) -> tuple[MeetingPresence, Audience]:
    made = MeetingPresence("m")
    if version is not None:
        made.read(version, [b"ana", value("Ana")], 0)
    return made, Audience(made)


def test_each_change_is_delivered_once() -> None:
    m, audience = meeting()
    assert audience.new() == [("ana", present("Ana"))]
    assert not m.push(push(6, 5, "bo", "Bo"))
    assert not m.push(push(7, 6, "bo", "Bob"))
    assert not m.push(push(7, 6, "bo", "Bob"))
    assert not m.push(push(8, 7, "bo"))
    assert audience.new() == [("bo", present("Bo")), ("bo", present("Bob")), ("bo", None)]


def test_presence_is_read_first_and_after_gaps() -> None:
    m, audience = meeting(None)
    assert m.push(push(1, 0, "ana", "Ana"))
    assert audience.new() == []
    m, audience = meeting()
    audience.new()
    assert m.push(push(7, 6, "bo", "Bo"))
    m.read(7, [b"bo", value("Bo")], m.pushed)
    assert audience.new() == [("ana", None), ("bo", present("Bo"))]


def test_first_member_after_all_left_needs_no_reading() -> None:
    m = MeetingPresence("m")
    m.read(0, [], 0)
    assert not m.push(push(900, 0, "ana", "Ana"))
    assert m.version == 900


def test_older_read_does_not_undo_a_push() -> None:
    m, audience = meeting()
    pushed = m.pushed
    m.push(push(6, 5, "ana"))
    audience.new()
    m.read(5, [b"ana", value("Ana")], pushed)
    assert (audience.new(), m.version) == ([], 6)


def test_older_copy_counts_without_newer_pushes() -> None:
    m, audience = meeting()
    audience.new()
    m.read(3, [], m.pushed)
    assert (audience.new(), m.version) == ([("ana", None)], 3)


def test_participants_are_delivered_in_order_of_arrival() -> None:
    m = MeetingPresence("m")
    m.read(9, [b"cy", value("Cy", 8), b"ana", value("Ana", 2), b"bo", value("Bo", 5)], 0)
    assert [participant for participant, _ in Audience(m).new()] == ["ana", "bo", "cy"]


def test_who_has_gone_is_told_nothing() -> None:
    m, audience = meeting()
    audience.new()
    m.remove(audience)
    m.remove(audience)
    m.push(push(6, 5, "ana"))
    assert audience.new() == []


def test_a_participant_that_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    m, audience = meeting()
    m.read(6, [b"ana", value("Ana"), b"bo", b"6 nonsense"], m.pushed)
    assert audience.new() == [("ana", present("Ana"))]
    assert "newer gateway" in caplog.text

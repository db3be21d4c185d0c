"""Several stores that share the meetings: what is where, and what holds over all of them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.domain.errors import LimitExceeded, LogUnavailable, QuotaExceeded, Unauthenticated
from gateway.domain.grants import Grant, Revocation
from gateway.domain.live import Asked, LiveEvent
from gateway.domain.log import Publication, Unfinished
from gateway.domain.session_store import Bounds, TenantCounts
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.domain.webhooks import Settled, Webhook
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from gateway.stores.memory_session_store import MemorySessions, MemorySessionStore
from gateway.stores.memory_webhooks import MemoryWebhookOutbox
from gateway.stores.sharded import (
    Placement,
    ShardedEventLog,
    ShardedLiveChannel,
    ShardedSessionStore,
    ShardedWebhookOutbox,
)
from tests.live_channel import MemoryLiveChannel, Switchboard
from tests.logs import nothing, texts, utterance
from tests.patience import until
from tests.usual import usual

GRANT = Grant(tenant="acme", subject="ana", token_id="t1", roles=frozenset({"read"}), meeting="m", expires_s=2e9)
TOKEN = UsedToken("acme", "t1", "ana", 2e9)
ANOTHER = replace(TOKEN, user="bo")

IDS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique=True)
KEYS = st.one_of(st.text(max_size=20), st.binary(max_size=40))


def placement(*ids: str) -> Placement:
    placed = Placement()
    placed.set_stores(ids)
    return placed


TWO = placement("one", "two")


def meeting_on(store: int) -> str:
    """A meeting of Acme's on this store."""
    return next(name for n in itertools.count() if TWO.store_of(name := f"acme/{n}") == store)


# One on each store.
MEETINGS = (meeting_on(0), meeting_on(1))


def sessions_on(store: int, count: int = 1) -> list[bytes]:
    digests = (hashlib.sha256(bytes([n])).digest() for n in range(256))
    return list(itertools.islice((digest for digest in digests if TWO.store_of(digest) == store), count))


def record(meeting: str, participant: str = "ana", **more: Any) -> SessionRecord:
    fields: dict[str, Any] = {"private": False, "name": "Ana", "speaks": "en", "reads": ("de",), "grant": GRANT}
    return SessionRecord(**{"participant": participant, "meeting": meeting, **fields, **more})


# Which store


@given(IDS, KEYS, st.randoms())
def test_order_of_stores_does_not_matter(ids: list[str], key: str | bytes, random: Any) -> None:
    shuffled = list(ids)
    random.shuffle(shuffled)
    one, other = placement(*ids), placement(*shuffled)
    assert ids[one.store_of(key)] == shuffled[other.store_of(key)]
    assert ids[one.common] == shuffled[other.common]


@given(IDS, KEYS)
def test_another_store_takes_only_what_is_on_it_then(ids: list[str], key: str | bytes) -> None:
    *before, _ = ids
    if before:
        assert placement(*ids).store_of(key) in (placement(*before).store_of(key), len(before))


def test_each_store_has_its_part() -> None:
    placed = placement("a", "b", "c")
    counts = [[placed.store_of(f"meeting {n}") for n in range(3_000)].count(store) for store in range(3)]
    assert all(900 < count < 1_100 for count in counts)


# The log


class _Down(MemoryEventLog):
    """A store that does not answer."""

    async def accept(self, *_: Any) -> Any:
        raise LogUnavailable("down", retry_after_ms=1)

    async def take_over(self) -> tuple[Unfinished, ...]:
        raise LogUnavailable("down", retry_after_ms=1)


def two_logs(stores: Sequence[MemoryStore], kind: type[MemoryEventLog] = MemoryEventLog) -> ShardedEventLog:
    return ShardedEventLog([MemoryEventLog(stores[0]), kind(stores[1])], TWO)


@pytest.fixture
def stores() -> tuple[MemoryStore, MemoryStore]:
    return usual(MemoryStore), usual(MemoryStore)


async def test_meetings_are_on_their_stores_and_counted(stores: tuple[MemoryStore, MemoryStore]) -> None:
    log = two_logs(stores)
    delivered: list[Publication] = []
    async with AsyncExitStack() as reading:
        for meeting in MEETINGS:
            await reading.enter_async_context(log.subscribe(meeting, delivered.append, account="acme"))
            await log.accept(meeting, utterance(meeting))
        assert texts(delivered) == list(MEETINGS)
        for store, meeting in zip(stores, MEETINGS, strict=True):
            usage = await MemoryEventLog(store).usage()
            assert usage.publications == 1
            assert texts((await log.read(meeting, 0)).publications) == [meeting]
        usage = await log.usage()
        assert (usage.publications, usage.bytes) == (2, usage.bytes_by_account["acme"])


async def test_work_left_on_any_store_is_taken_over(stores: tuple[MemoryStore, MemoryStore]) -> None:
    gone, other = two_logs(stores), two_logs(stores)
    async with AsyncExitStack() as reading:
        for meeting in MEETINGS:
            await (await reading.enter_async_context(other.subscribe(meeting, nothing))).reads({"de"})
            await gone.accept(meeting, utterance("hello"))
        await gone.close()
        assert {work.meeting for work in await other.take_over()} == set(MEETINGS)


async def test_silent_store_takes_only_its_meetings_with_it(
    stores: tuple[MemoryStore, MemoryStore],
) -> None:
    gone, other = two_logs(stores), two_logs(stores, _Down)
    async with other.subscribe(MEETINGS[0], nothing) as subscription:
        await subscription.reads({"de"})
        await gone.accept(MEETINGS[0], utterance("hello"))
        await gone.close()
        [work] = await other.take_over()
        assert work.meeting == MEETINGS[0]
        await other.accept(MEETINGS[0], utterance("goodbye"))
        with pytest.raises(LogUnavailable):
            await other.accept(MEETINGS[1], utterance("hello"))
        with pytest.raises(LogUnavailable):
            await other.take_over()  # there was nothing on the other one


# The session store


async def _unavailable(*_: Any) -> int:
    raise LogUnavailable("down", retry_after_ms=1)


class _SessionStore(ShardedSessionStore):
    """With what it was told."""

    def __init__(self, stores: Sequence[MemorySessions]) -> None:
        self.parts = [MemorySessionStore(store) for store in stores]
        super().__init__(self.parts, TWO)
        self.revoked: list[Revocation] = []
        self.moved: list[tuple[bytes, bool]] = []

    async def listen(self) -> _SessionStore:
        await self.open(lambda *moved: self.moved.append(moved), self.revoked.append)
        return self


@pytest.fixture
async def session_stores() -> tuple[_SessionStore, _SessionStore]:
    stores = (usual(MemorySessions), usual(MemorySessions))
    return await _SessionStore(stores).listen(), await _SessionStore(stores).listen()


async def test_a_session_is_where_its_meeting_is(session_stores: tuple[_SessionStore, _SessionStore]) -> None:
    here, there = session_stores
    for store, meeting in enumerate(MEETINGS):
        [session] = sessions_on(store)
        assert here.can_hold(session, meeting)
        assert not here.can_hold(session, MEETINGS[1 - store])
        fence = await here.begin(session, record(meeting))
        assert await here.parts[store].find(session) == await there.find(session)
        assert await there.take(session, fence, record(meeting)) == fence + 1
        assert here.moved.pop() == (session, True)


async def test_a_tenants_bounds_hold_over_all_stores(session_stores: tuple[_SessionStore, _SessionStore]) -> None:
    here, there = session_stores
    sessions = [*sessions_on(0, 2), *sessions_on(1, 2)]
    two = Bounds(sessions=2)
    await here.begin(sessions[0], record(MEETINGS[0]), two)
    await there.begin(sessions[2], record(MEETINGS[1]), two)
    with pytest.raises(QuotaExceeded, match="There are 2 already: this tenant's quota sessions is 2"):
        await here.begin(sessions[3], record(MEETINGS[1], "bo"), two)
    with pytest.raises(QuotaExceeded, match="quota sessions is 1"):
        await here.begin(sessions[1], record(MEETINGS[0], "bo"), Bounds(sessions=1))
    with pytest.raises(QuotaExceeded, match="There are 2 already: this tenant's quota meetings is 2"):
        await here.begin(sessions[3], record(f"{MEETINGS[1]}'"), Bounds(meetings=2))
    assert await there.counts("acme") == TenantCounts(2, 2)


@pytest.mark.parametrize("store", [0, 1])
async def test_a_token_opens_one_session_wherever_it_is(
    session_stores: tuple[_SessionStore, _SessionStore], store: int
) -> None:
    here, there = session_stores
    [session], meeting = sessions_on(store), MEETINGS[store]
    await here.begin(session, record(meeting), used=TOKEN)
    for elsewhere in (0, 1):
        with pytest.raises(Unauthenticated):
            await there.begin(sessions_on(elsewhere, 2)[1], record(MEETINGS[elsewhere], "bo"), used=ANOTHER)
    assert await there.take(session, 1, record(meeting), used=TOKEN) == 2
    await there.end(session, 2, TOKEN)
    await there.use(ANOTHER)


@pytest.mark.parametrize("store", [0, 1])
@pytest.mark.parametrize("what", ["begin", "take", "take what has ended"])
async def test_refused_sessions_token_can_be_used_again(
    session_stores: tuple[_SessionStore, _SessionStore], store: int, what: str
) -> None:
    here, there = session_stores
    [session], meeting = sessions_on(store), MEETINGS[store]
    nothing_more = Bounds(languages=(("x", 0),))
    if what == "take":
        fence = await here.begin(session, record(meeting, reads=()))
        with pytest.raises(LimitExceeded):
            await here.take(session, fence, record(meeting), nothing_more, TOKEN)
    elif what == "begin":
        with pytest.raises(LimitExceeded):
            await here.begin(session, record(meeting), nothing_more, TOKEN)
    else:
        assert await here.take(session, 1, record(meeting), used=TOKEN) is None
    await there.use(ANOTHER)


@pytest.mark.parametrize("store", [0, 1])
async def test_token_stays_used_by_a_later_resume(
    session_stores: tuple[_SessionStore, _SessionStore], store: int
) -> None:
    here, there = session_stores
    [session], meeting = sessions_on(store), MEETINGS[store]
    fence = await here.begin(session, record(meeting, reads=()), used=TOKEN)
    with pytest.raises(LimitExceeded):
        await there.take(session, fence, record(meeting), Bounds(languages=(("x", 0),)), TOKEN)
    with pytest.raises(Unauthenticated):
        await there.use(ANOTHER)
    assert await there.take(session, fence, record(meeting, reads=()), used=TOKEN) == fence + 1


async def test_revocation_is_told_once_and_counts_everywhere(
    session_stores: tuple[_SessionStore, _SessionStore],
) -> None:
    here, there = session_stores
    for store, meeting in enumerate(MEETINGS):
        await here.begin(sessions_on(store)[0], record(meeting))
    revocation = Revocation(tenant="acme", before_s=2e9)
    await there.revoke(revocation)
    assert here.revoked == [revocation]
    assert await there.count_revoked_by(revocation, set()) == 2
    there.parts[1].count_revoked_by = _unavailable  # type: ignore[method-assign, assignment]
    assert await there.count_revoked_by(revocation, set()) == 1


async def test_absent_store_is_asked_only_where_it_matters(
    session_stores: tuple[_SessionStore, _SessionStore],
) -> None:
    here, _ = session_stores
    here.parts[1].counts = _unavailable  # type: ignore[method-assign, assignment]
    one, another = sessions_on(0, 2)
    await here.begin(one, record(MEETINGS[0]))
    with pytest.raises(LogUnavailable):
        await here.begin(another, record(MEETINGS[0], "bo"), Bounds(sessions=2))


async def test_everybody_in_a_meeting_is_told_of(session_stores: tuple[_SessionStore, _SessionStore]) -> None:
    here, there = session_stores
    for store, meeting in enumerate(MEETINGS):
        present: dict[str, Any] = {}
        async with there.subscribe(meeting, present.__setitem__):
            await here.begin(sessions_on(store)[0], record(meeting), Bounds(shown=1))
            assert set(present) == {"ana"}


# The live channel


async def test_live_events_go_over_their_meetings_store() -> None:
    boards = [Switchboard(), Switchboard()]
    here, there = (ShardedLiveChannel([MemoryLiveChannel(board) for board in boards], TWO) for _ in range(2))
    heard: dict[str, list[LiveEvent]] = {meeting: [] for meeting in MEETINGS}
    for meeting in MEETINGS:
        assert not here.is_heard(meeting)
        async with (
            there.listen(meeting, partial(_add, heard[meeting]), lambda: None),
            here.listen(meeting, lambda *_: None, lambda: None),
        ):
            assert here.is_heard(meeting)
            here.send(meeting, Asked())
            await until(lambda meeting=meeting: heard[meeting] == [Asked()])  # type: ignore[misc]


def _add(heard: list[LiveEvent], _origin: str, event: LiveEvent) -> None:
    heard.append(event)


# ---------------------------------------------------------------- webhooks


HOOK = Webhook(name="backend", url="https://example.com", secret_file="secret")


async def test_events_wait_on_their_store_gone_on_all() -> None:
    stores = [MemoryWebhookOutbox() for _ in range(2)]
    outbox = ShardedWebhookOutbox(stores, TWO)
    await outbox.tend(HOOK, 0)
    for store, meeting in zip(stores, MEETINGS, strict=True):
        store.meeting_started(meeting)
    tended = await outbox.tend(HOOK, 1)
    assert ([each.event.meeting for each in tended.deliveries], tended.waiting) == ([*MEETINGS], 2)
    first, second = tended.deliveries
    await outbox.settle(HOOK, second, Settled("It answered with status 200."))
    assert [len(store.webhook("backend").waiting) for store in stores] == [1, 0]
    state = await outbox.state(HOOK)
    assert (state.waiting, state.oldest_ms, state.said) == (1, first.event.at_ms, "It answered with status 200.")
    await outbox.settle(HOOK, first, Settled("It answered with status 410.", gone=True))
    assert [store.webhook("backend").gone for store in stores] == [HOOK.url] * 2
    await outbox.resume(HOOK)
    assert not (await outbox.state(HOOK)).gone


async def test_events_do_not_wait_for_an_absent_store() -> None:
    class Away(MemoryWebhookOutbox):
        async def tend(self, webhook: Webhook, most: int) -> Any:
            raise LogUnavailable("away")

    there = MemoryWebhookOutbox()
    outbox = ShardedWebhookOutbox([Away(), there], TWO)
    await outbox.tend(HOOK, 0)
    there.meeting_started(MEETINGS[1])
    assert [each.event.meeting for each in (await outbox.tend(HOOK, 1)).deliveries] == [MEETINGS[1]]
    with pytest.raises(LogUnavailable):
        await ShardedWebhookOutbox([Away(), Away()], TWO).tend(HOOK, 1)


async def test_unexpected_failure_of_one_store_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(MemoryWebhookOutbox):
        async def tend(self, webhook: Webhook, most: int) -> Any:
            raise ValueError("broken")

    await ShardedWebhookOutbox([Broken(), MemoryWebhookOutbox()], TWO).tend(HOOK, 1)
    assert "broken" in caplog.text

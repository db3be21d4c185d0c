"""The duties of every adapter of the SessionStore port: one owner for each session, presence, bounds, tokens.

Each test has two gateways on one store, and what it is about holds over both.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.errors import LimitExceeded, MeetingLocked, QuotaExceeded, RateLimited, Unauthenticated
from gateway.domain.grants import Grant, Revocation
from gateway.domain.log import Title
from gateway.domain.ports import SessionStore
from gateway.domain.session_store import (
    MOST_MUTED,
    NOTHING_HOSTED,
    UNBOUNDED,
    Bounds,
    Held,
    Hosted,
    Present,
    StoredSession,
    TenantCounts,
)
from gateway.domain.sessions import SessionRecord, UsedToken
from tests.contract.stores import STORES, OpenStore, Store
from tests.patience import until

ANA, BO, CY = b"a" * 32, b"\x00 \n" + b"b" * 29, b"c" * 32
SHOWN = Bounds(shown=10)
GRANT = Grant(tenant="acme", subject="ana", token_id="t1", roles=frozenset({"read"}), meeting="m", expires_s=2e9)


def record(participant: str = "ana", *reads: str, meeting: str = "acme/m", **more: Any) -> SessionRecord:
    fields: dict[str, Any] = {"private": False, "name": participant.title(), "speaks": "en"}
    return SessionRecord(**{"participant": participant, "meeting": meeting, "reads": reads, **fields, **more})


def present(participant: str = "ana", *reads: str, **more: Any) -> Present:
    return Present.from_record(record(participant, *reads, **more))


class Gateway:
    """One gateway's session_store, and what it was told."""

    def __init__(self, session_store: SessionStore) -> None:
        self.session_store = session_store
        # Sessions that it has no more, and whether another gateway has them.
        self.moved: list[tuple[bytes, bool]] = []
        self.revoked: list[Revocation] = []

    async def open(self) -> None:
        await self.session_store.open(lambda *moved: self.moved.append(moved), self.revoked.append)


class Audience:
    """Who is present in a meeting, as one subscriber was told."""

    def __init__(self) -> None:
        self.present: dict[str, Present] = {}
        self.told: list[tuple[str, Present | None]] = []

    def deliver(self, participant: str, present: Present | None) -> None:
        self.told.append((participant, present))
        if present is None:
            del self.present[participant]
        else:
            self.present[participant] = present

    async def sees(self, expected: dict[str, Present]) -> None:
        await until(lambda: self.present == expected)


class Two:
    """A store and two gateways."""

    def __init__(self, store: Store, here: Gateway, there: Gateway) -> None:
        self.store, self.here, self.there = store, here, there

    async def another(self) -> Gateway:
        gateway = Gateway(await self.store.session_store())
        await gateway.open()
        return gateway


@pytest.fixture(params=list(STORES))
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return STORES[request.param]


@asynccontextmanager
async def opened(open_store: OpenStore, **bounds: Any) -> AsyncIterator[Two]:
    async with open_store(**bounds) as store:
        here, there = Gateway(await store.session_store()), Gateway(await store.session_store())
        await here.open()
        await there.open()
        yield Two(store, here, there)


@pytest.fixture
async def two(open_store: OpenStore) -> AsyncIterator[Two]:
    async with opened(open_store) as two:
        yield two


async def refused(attempt: Awaitable[Any]) -> str:
    """The message of the refusal."""
    with pytest.raises((LimitExceeded, QuotaExceeded)) as error:
        await attempt
    return str(error.value)


# A session and its owner


async def test_what_one_gateway_begins_the_other_finds(two: Two) -> None:
    ana = record(
        *("ana", "de", "ja"),
        meeting="acme/m",
        private=True,
        name="Ana 🎤",
        since=7,
        stopped={"fr": 4},
        stability="stable",
        originals=True,
        account="tenant:acme",
        grant=GRANT,
        until_s=1e9,
    )
    fence = await two.here.session_store.begin(ANA, ana)
    assert await two.there.session_store.find(ANA) == Held(ana, fence)
    assert await two.there.session_store.find(BO) is None


async def test_a_begin_that_is_repeated_begins_nothing_more(two: Two) -> None:
    bounds = Bounds(sessions=1, meetings=1, languages=(("most", 1),), shown=1)
    first = await two.here.session_store.begin(ANA, record("ana", "de"), bounds)
    assert await two.here.session_store.begin(ANA, record("ana", "de"), bounds) == first
    assert await two.there.session_store.counts("acme") == TenantCounts(1, 1)


async def test_taking_a_session_moves_and_tells_its_gateway(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record("ana", "de"))
    newer = record("ana", "fr", name="Ana Maria")
    taken = await two.there.session_store.take(ANA, fence, newer)
    assert taken is not None
    assert taken > fence
    assert await two.here.session_store.find(ANA) == Held(newer, taken)
    await until(lambda: two.here.moved)
    assert (two.here.moved, two.there.moved) == ([(ANA, True)], [])


async def test_one_of_several_takers_gets_a_session(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    gateways = [two.here, two.there, await two.another()]
    taken = await asyncio.gather(*(each.session_store.take(ANA, fence, record()) for each in gateways))
    assert sorted(taken, key=bool)[:2] == [None, None]
    [(winner, newest)] = [
        (gateway, fence) for gateway, fence in zip(gateways, taken, strict=True) if fence is not None
    ]
    assert await winner.session_store.save(ANA, newest, record())
    assert await two.here.session_store.find(ANA) == Held(record(), newest)


async def test_previous_holder_cannot_change_a_taken_session(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record("ana", "de"))
    taken = await two.there.session_store.take(ANA, fence, record("ana", "de"))
    assert taken is not None
    assert not await two.here.session_store.save(ANA, fence, record("ana", "fr"))
    await two.here.session_store.release(ANA, fence)
    await two.here.session_store.end(ANA, fence)
    assert await two.here.session_store.find(ANA) == Held(record("ana", "de"), taken)


async def test_a_session_moves_away_and_comes_back(two: Two) -> None:
    fence: int | None = await two.here.session_store.begin(ANA, record())
    for gateway in (two.there, two.here, two.there):
        assert fence is not None
        fence = await gateway.session_store.take(ANA, fence, record())
    await until(lambda: len(two.here.moved) == 2)
    await two.store.pass_time(0.0)
    assert (two.here.moved, two.there.moved) == ([(ANA, True), (ANA, True)], [(ANA, True)])


async def test_taking_ones_own_session_tells_nothing(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    taken = await two.here.session_store.take(ANA, fence, record())
    assert taken is not None
    await two.store.pass_time(0.0)
    assert two.here.moved == []
    assert await two.here.session_store.save(ANA, taken, record("ana", "de"))


async def test_an_ended_session_is_gone_and_ends_once(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    for _ in range(2):
        await two.here.session_store.end(ANA, fence)
    assert await two.there.session_store.find(ANA) is None
    assert await two.there.session_store.take(ANA, fence, record()) is None
    assert not await two.here.session_store.save(ANA, fence, record())
    assert await two.here.session_store.counts("acme") == TenantCounts()


# Who is present


@asynccontextmanager
async def listening(two: Two, meeting: str = "acme/m") -> AsyncIterator[tuple[Audience, Audience]]:
    here, there = Audience(), Audience()
    async with AsyncExitStack() as subscriptions:
        for gateway, audience in ((two.here, here), (two.there, there)):
            await subscriptions.enter_async_context(gateway.session_store.subscribe(meeting, audience.deliver))
        yield here, there


async def test_everybody_is_told_who_comes_changes_and_leaves(two: Two) -> None:
    async with listening(two) as audiences:
        fence = await two.here.session_store.begin(ANA, record("ana", "de"), SHOWN)
        await two.there.session_store.begin(BO, record("bo", meeting="acme/other"), SHOWN)
        changed = record("ana", "fr", name="Ana Maria", speaks=None)
        steps = [record("ana", "de"), changed, None]
        for step in steps:
            if step is changed:
                assert await two.here.session_store.save(ANA, fence, step)
            elif step is None:
                await two.here.session_store.end(ANA, fence)
            expected = {} if step is None else {"ana": Present.from_record(step)}
            for audience in audiences:
                await audience.sees(expected)
        for audience in audiences:
            assert audience.told == [
                ("ana", None if step is None else Present.from_record(step)) for step in steps
            ]


async def test_invisible_session_changes_are_not_told(two: Two) -> None:
    async with listening(two) as (here, _):
        fence = await two.here.session_store.begin(ANA, record("ana", "de"), SHOWN)
        await until(lambda: here.present)
        await two.here.session_store.save(ANA, fence, record("ana", "de", since=9, stability="final"), away_s=0.0)
        taken = await two.there.session_store.take(ANA, fence, record("ana", "de"))
        assert taken is not None
        await two.there.session_store.end(ANA, taken)
        await until(lambda: not here.present and here.told)
        assert here.told == [("ana", present("ana", "de")), ("ana", None)]


async def test_present_sessions_are_delivered_first_in_joining_order(two: Two) -> None:
    names = ["dot", "cy", "bo", "ana"]
    fences = [
        await (two.here, two.there)[n % 2].session_store.begin(bytes([n]) * 32, record(name), SHOWN)
        for n, name in enumerate(names)
    ]
    await two.here.session_store.save(bytes([0]) * 32, fences[0], record("dot", name="Dot Com"))
    for _ in range(2):
        async with listening(two) as audiences:
            for audience in audiences:
                assert list(audience.present) == names
                assert audience.present["dot"].name == "Dot Com"


async def test_so_many_are_shown_over_all_gateways(two: Two) -> None:
    async with listening(two) as (here, there):
        fences = {}
        for n, name in enumerate(["ana", "bo", "cy"]):
            gateway = (two.here, two.there)[n % 2]
            fences[name] = await gateway.session_store.begin(name.encode() * 16, record(name), Bounds(shown=2))
        await two.here.session_store.save(b"cy" * 16, fences["cy"], record("cy", "de"))
        await until(lambda: len(here.present) == len(there.present) == 2)
        await two.here.session_store.end(b"ana" * 16, fences["ana"])
        await two.there.session_store.begin(b"dot" * 16, record("dot"), Bounds(shown=2))
        for audience in (here, there):
            await audience.sees({"bo": present("bo"), "dot": present("dot")})
            assert "cy" not in {participant for participant, _ in audience.told}


async def test_a_subscription_ends(two: Two) -> None:
    async with listening(two) as (here, there):
        pass
    other, meanwhile = Audience(), Audience()
    async with two.here.session_store.subscribe("acme/m", other.deliver):
        async with two.here.session_store.subscribe("acme/m", meanwhile.deliver):
            pass
        await two.there.session_store.begin(ANA, record(), SHOWN)
        await until(lambda: other.present)
    assert here.told == there.told == meanwhile.told == []


async def test_who_comes_while_somebody_subscribes_is_not_missed(two: Two) -> None:
    for n in range(20):
        audience, meeting = Audience(), f"acme/{n}"

        async def listen(audience: Audience, meeting: str) -> None:
            async with two.here.session_store.subscribe(meeting, audience.deliver):
                await until(lambda: audience.present)

        async def come(meeting: str, n: int) -> None:
            for _ in range(n % 5):
                await asyncio.sleep(0)
            await two.there.session_store.begin(bytes([n]) * 32, record("ana", meeting=meeting), SHOWN)

        await asyncio.gather(listen(audience, meeting), come(meeting, n))
        assert audience.told == [("ana", present())]


# Bounds


async def test_sessions_are_bounded_over_all_gateways(two: Two) -> None:
    bounds = Bounds(sessions=2)
    fence = await two.here.session_store.begin(ANA, record("ana"), bounds)
    await two.there.session_store.begin(BO, record("bo"), bounds)
    assert "this tenant's quota sessions is 2" in await refused(
        two.here.session_store.begin(CY, record("cy"), bounds)
    )
    await two.there.session_store.begin(CY, record("cy", meeting="other/m"), bounds)
    await two.here.session_store.end(ANA, fence)
    await two.there.session_store.begin(ANA, record("ana"), bounds)
    assert await two.here.session_store.counts("acme") == TenantCounts(2, 1)
    assert await two.here.session_store.counts("other") == TenantCounts(1, 1)


async def test_meetings_are_bounded_over_all_gateways(two: Two) -> None:
    bounds = Bounds(meetings=1)
    fence = await two.here.session_store.begin(ANA, record("ana"), bounds)
    await two.there.session_store.begin(BO, record("bo"), bounds)
    other = record("cy", meeting="acme/other")
    assert "There are 1 already" in await refused(two.there.session_store.begin(CY, other, bounds))
    await two.here.session_store.end(ANA, fence)
    assert "quota meetings is 1" in await refused(two.there.session_store.begin(CY, other, bounds))
    await two.there.session_store.end(BO, 1)
    await two.there.session_store.begin(CY, other, bounds)


async def test_one_of_several_gets_the_last_place(two: Two) -> None:
    session_stores = [(two.here, two.there)[n % 2].session_store for n in range(6)]
    begun = await asyncio.gather(
        *(
            each.begin(bytes([n]) * 32, record(f"{n}"), Bounds(sessions=1))
            for n, each in enumerate(session_stores)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(each, int) for each in begun) == 1
    assert sum(isinstance(each, QuotaExceeded) for each in begun) == 5


async def test_languages_are_bounded_over_all_gateways(two: Two) -> None:
    bounds = Bounds(languages=(("the limit meeting_languages", 3), ("this tenant's quota languages", 2)))
    here, there = two.here.session_store, two.there.session_store
    ana = await here.begin(ANA, record("ana", "de"), bounds)
    bo = await there.begin(BO, record("bo", "fr", "de"), bounds)
    expected = "2 languages are read in this meeting already; this tenant's quota languages is 2."
    assert await refused(here.begin(CY, record("cy", "ja"), bounds)) == expected
    assert await refused(here.save(ANA, ana, record("ana", "ja"), bounds=bounds)) == expected
    assert await refused(here.take(BO, bo, record("bo", "ja", "it"), bounds)) is not None
    # Instead of one that nobody else reads; and nobody loses what they read.
    assert await there.save(BO, bo, record("bo", "ja"), bounds=bounds)
    taken = await here.take(BO, bo, record("bo", "ja"), Bounds(languages=(("lowered", 0),)))
    assert taken is not None
    await here.begin(CY, record("cy", "ja", "de"), bounds)
    await here.begin(b"d" * 32, record("dot", "it", meeting="acme/other"), bounds)


async def test_joins_per_minute_are_limited_across_gateways(two: Two) -> None:
    """The limit holds for each tenant."""
    bounds, here, there = Bounds(joins=3), two.here.session_store, two.there.session_store
    await here.begin(ANA, record("ana"), bounds)
    await here.begin(ANA, record("ana"), bounds)  # as when its answer was lost
    await there.begin(BO, record("bo"), bounds)
    fence = await there.take(ANA, 1, record("ana"), bounds)
    assert fence == 2
    for attempt in (here.begin(CY, record("cy"), bounds), here.take(ANA, fence, record("ana"), bounds)):
        with pytest.raises(RateLimited, match="This tenant's quota joins is 3 a minute") as error:
            await attempt
        assert 0 < (error.value.retry_after_ms or 0) <= 20_000
    assert await here.find(CY) is None
    await there.begin(CY, record("cy", meeting="other/m"), bounds)
    await here.begin(b"d" * 32, record("dot"))  # a bound is whoever's who asks


async def test_joining_too_often_names_when_to_retry(two: Two) -> None:
    await two.here.session_store.begin(ANA, record("ana"), Bounds(joins=1))
    raised, session_store = Bounds(joins=60), two.there.session_store
    retry_after_ms = None
    while retry_after_ms is None:
        # On a busy machine it may be time for one more.
        token = secrets.token_bytes(32)
        try:
            await session_store.begin(token, record("bo"), raised)
        except RateLimited as error:
            retry_after_ms = error.retry_after_ms
    await two.store.pass_time(retry_after_ms / 1_000)
    await session_store.begin(token, record("bo"), raised)


async def test_who_joins_too_often_uses_up_no_token(two: Two) -> None:
    token, bounds = UsedToken("acme", "t1", "bo", 2e9), Bounds(joins=1)
    await two.here.session_store.begin(ANA, record("ana"), bounds)
    with pytest.raises(RateLimited):
        await two.there.session_store.begin(BO, record("bo"), bounds, token)
    await two.here.session_store.use(replace(token, user="cy"))


async def test_a_refused_begin_leaves_nothing_behind(two: Two) -> None:
    async with listening(two) as (here, _):
        token = UsedToken("acme", "t1", "ana", 2e9)
        bounds = Bounds(sessions=0, shown=9)
        with pytest.raises(QuotaExceeded):
            await two.here.session_store.begin(ANA, record("ana", "de"), bounds, token)
        assert await two.there.session_store.find(ANA) is None
        assert await two.there.session_store.counts("acme") == TenantCounts()
        await two.there.session_store.use(replace(token, user="bo"))
        await two.there.session_store.begin(BO, record("bo", "de"), replace(SHOWN, languages=(("x", 1),)))
        await until(lambda: here.present)
        assert here.told == [("bo", present("bo", "de"))]


# Tokens


async def test_single_session_token_belongs_to_its_first_user(two: Two) -> None:
    """It does so at every gateway."""
    token = UsedToken("acme", "t1", "ana", 2e9)
    another = replace(token, user="bo")
    fence = await two.here.session_store.begin(ANA, record("ana"), UNBOUNDED, token)
    with pytest.raises(Unauthenticated):
        await two.there.session_store.begin(BO, record("bo"), UNBOUNDED, another)
    with pytest.raises(Unauthenticated):
        await two.there.session_store.use(another)
    bo = await two.there.session_store.begin(BO, record("bo"))
    with pytest.raises(Unauthenticated):
        await two.here.session_store.take(BO, bo, record("bo"), UNBOUNDED, another)
    await two.there.session_store.use(token)
    assert await two.there.session_store.take(ANA, fence, record("ana"), UNBOUNDED, token) is not None
    await two.there.session_store.use(replace(another, tenant="other"))


async def test_failed_session_start_frees_its_token(two: Two) -> None:
    """A token that opened a session for nobody can be used again."""
    token = UsedToken("acme", "t1", "ana", 2e9)
    another = replace(token, user="bo")
    fence = await two.here.session_store.begin(ANA, record("ana"), UNBOUNDED, token)
    for _ in range(2):
        await two.here.session_store.end(ANA, fence, token)
    bo = await two.there.session_store.begin(BO, record("bo"), UNBOUNDED, another)
    # Done again, late: by then it is somebody else's.
    await two.here.session_store.end(ANA, fence, token)
    with pytest.raises(Unauthenticated):
        await two.here.session_store.use(token)
    # A session that ends otherwise has used it up.
    await two.there.session_store.end(BO, bo)
    with pytest.raises(Unauthenticated):
        await two.here.session_store.use(token)


async def test_every_session_is_listed_wherever_it_is(two: Two) -> None:
    here, there = two.here.session_store, two.there.session_store
    assert await here.sessions() == ()
    await here.begin(ANA, record("ana", "ja"))
    await there.begin(BO, bo := record("bo", meeting="m", grant=Grant()))
    await here.save(ANA, 1, ana := record("ana", "de"), away_s=1.0)
    listed = sorted(await there.sessions(), key=lambda each: each.record.participant)
    known = [StoredSession(ana, away=True, key=ANA, fence=1), StoredSession(bo, away=False, key=BO, fence=1)]
    assert listed == known
    assert await there.sessions("m") == (known[1],)
    await there.end(BO, 1)
    assert [each.record for each in await here.sessions()] == [ana]


async def test_what_an_operator_ends_is_told_for_each_participant(two: Two) -> None:
    here, there = two.here.session_store, two.there.session_store
    await here.begin(ANA, record("ana", grant=Grant(tenant="acme", any_meeting=True)))
    await there.begin(BO, record("bo", grant=GRANT))
    both = Revocation(tenant="acme", before_s=1e9, meeting="m", by_operator=True)
    assert await here.count_revoked_by(both, ()) == 2
    one, other = (replace(both, subject="", participant=each) for each in ("ana", "bo"))
    assert await there.count_revoked_by(one, ()) == 1
    assert await there.count_revoked_by(replace(one, meeting="n"), ()) == 0
    await here.revoke(one)
    await here.revoke(other)
    await until(lambda: len(two.there.revoked) == 2)
    assert (await two.another()).revoked == [one, other]


async def test_locked_meeting_takes_only_hosts_until_it_is_unlocked_or_empty(two: Two) -> None:
    here, there = two.here.session_store, two.there.session_store
    host = Grant(tenant="acme", roles=frozenset({"host"}))
    await here.lock("acme/m", True)  # nobody is in it
    fence = await here.begin(ANA, record())
    assert await there.begin(BO, record("bo")) == 1
    await there.end(BO, 1)
    await here.lock("acme/m", True)
    with pytest.raises(MeetingLocked):
        await there.begin(BO, record("bo"))
    assert await there.counts("acme") == TenantCounts(1, 1)
    assert await there.begin(CY, record("cy", grant=host)) == 1
    assert await there.take(ANA, fence, record()) == fence + 1  # who is in it goes on
    await there.lock("acme/m", False)
    assert await there.begin(BO, record("bo")) == 1
    await here.lock("acme/m", True)
    await there.end(ANA, fence + 1)
    await there.end(BO, 1)
    with pytest.raises(MeetingLocked):
        await there.begin(BO, record("bo"))
    async with here.subscribe("acme/m", Audience().deliver):
        await there.end(CY, 1)
        assert await there.begin(b"d" * 32, record("dan")) == 1


async def test_everybody_is_told_whether_a_meeting_is_locked_until_nobody_is_left(two: Two) -> None:
    here, there = two.here.session_store, two.there.session_store
    told: list[Hosted] = []
    await here.begin(ANA, record())
    async with there.subscribe("acme/m", Audience().deliver, told.append):
        for _ in range(2):
            await here.lock("acme/m", True)
        await here.lock("acme/n", True)
        await there.lock("acme/m", False)
        await here.mute("acme/m", "bo", True)
        await here.lock("acme/m", True)
        await until(lambda: len(told) == 4)
        assert [each.locked for each in told] == [True, False, False, True]
    late: list[Hosted] = []
    async with here.subscribe("acme/m", Audience().deliver, late.append):
        assert late == [Hosted(frozenset({"bo"}), locked=True)]
        await here.end(ANA, 1)
        await until(lambda: late[-1] == NOTHING_HOSTED)


async def test_everybody_is_told_who_is_muted_until_nobody_is_left(two: Two) -> None:
    here, there = two.here.session_store, two.there.session_store
    told: list[Hosted] = []
    await here.mute("acme/m", "bo", True)  # nobody is in it
    await here.begin(ANA, record())
    async with there.subscribe("acme/m", Audience().deliver, told.append):
        assert told == []
        for _ in range(2):
            await here.mute("acme/m", "bo", True)
        await there.mute("acme/m", "cy", True)
        await here.mute("acme/n", "dan", True)
        await here.mute("acme/m", "nobody", False)
        await here.mute("acme/m", "bo", False)
        await until(lambda: len(told) == 3)
        assert [each.muted for each in told] == [{"bo"}, {"bo", "cy"}, {"cy"}]
    late: list[Hosted] = []
    async with here.subscribe("acme/m", Audience().deliver, late.append):
        assert [each.muted for each in late] == [{"cy"}]
        await here.end(ANA, 1)
        await until(lambda: [each.muted for each in late] == [{"cy"}, set()])  # before the next one comes
        await here.begin(ANA, record(), SHOWN)
        await here.mute("acme/m", "dan", True)
        await until(lambda: [each.muted for each in late] == [{"cy"}, set(), {"dan"}])


async def test_everybody_is_told_what_a_meeting_is_called(two: Two) -> None:
    here, there = two.here.session_store, two.there.session_store
    told: list[Hosted] = []
    await here.entitle("acme/m", Title("Nobody"))  # nobody is in it
    await here.begin(ANA, record())
    async with there.subscribe("acme/m", Audience().deliver, told.append):
        for _ in range(2):
            await here.entitle("acme/m", Title("週次 🎤", "Ana"))
        await here.mute("acme/m", "bo", True)
        await there.entitle("acme/m", Title())
        await until(lambda: len(told) == 3)
        assert [each.title for each in told] == [Title("週次 🎤", "Ana"), Title("週次 🎤", "Ana"), Title()]
    late: list[Hosted] = []
    async with here.subscribe("acme/m", Audience().deliver, late.append):
        assert late == [Hosted(frozenset({"bo"}), Title())]


async def test_bounded_number_is_muted(two: Two) -> None:
    here = two.here.session_store
    await here.begin(ANA, record())
    for number in range(MOST_MUTED):
        await here.mute("acme/m", f"p{number}", True)
    assert await refused(here.mute("acme/m", "one more", True)) == (
        f"{MOST_MUTED} participants are muted in this meeting already."
    )
    await here.mute("acme/m", "p0", True)  # is muted already
    await here.mute("acme/m", "p0", False)
    await here.mute("acme/m", "more", True)


async def test_revocation_that_means_no_token_reaches_the_other_gateway(two: Two) -> None:
    brief = Revocation(tenant="acme", before_s=0, meeting="m", by_operator=True, by_host=True)
    await two.here.session_store.revoke(brief)
    await until(lambda: two.there.revoked == [brief])


async def test_revocation_that_means_no_token_does_not_replace_one_that_lasts(two: Two) -> None:
    lasting = Revocation(tenant="acme", before_s=1e9, meeting="m", by_operator=True)
    await two.here.session_store.revoke(lasting)
    await two.here.session_store.revoke(replace(lasting, before_s=0, by_host=True))
    assert lasting in (await two.another()).revoked


async def test_revocations_reach_every_gateway_including_later_ones(two: Two) -> None:
    first, second = (
        Revocation(tenant="acme", before_s=1e9, subject="ana"),
        Revocation(tenant="acme", before_s=1e9, token_id="t1", meeting="m"),
    )
    await two.here.session_store.revoke(first)
    await until(lambda: two.there.revoked)
    await two.there.session_store.revoke(second)
    await until(lambda: two.here.revoked)
    assert (two.here.revoked, two.there.revoked) == ([second], [first])
    assert (await two.another()).revoked == [first, second]
    await two.here.session_store.revoke(newer := replace(first, before_s=1e9 + 1))
    await until(lambda: len(two.there.revoked) == 2)
    assert newer in (await two.another()).revoked


async def test_revoked_sessions_are_counted_wherever_they_are(two: Two) -> None:
    here, there, ana = (
        two.here.session_store,
        two.there.session_store,
        Revocation(tenant="acme", before_s=1e9, subject="ana"),
    )
    of_bo, of_other = replace(GRANT, subject="bo"), replace(GRANT, tenant="other")
    await here.begin(ANA, record("ana", grant=GRANT))
    fence = await there.begin(BO, record("ben", grant=GRANT))
    await there.begin(CY, record("cy", grant=of_bo))
    await there.begin(b"d" * 32, record("dot", meeting="other/m", grant=of_other))
    assert await here.count_revoked_by(ana, ()) == 2
    assert await here.count_revoked_by(ana, {ANA}) == 1
    assert await here.count_revoked_by(Revocation(tenant="acme", before_s=1e9), {ANA}) == 2
    assert await here.count_revoked_by(replace(ana, tenant="nobody"), ()) == 0
    await there.save(CY, 1, record("cy", grant=GRANT))
    await there.release(BO, fence)
    assert await here.count_revoked_by(ana, ()) == 3
    for session in (ANA, BO, CY):
        await here.end(session, 1)
    assert await there.count_revoked_by(ana, ()) == 0


async def test_of_many_sessions_each_is_counted_once(two: Two) -> None:
    await asyncio.gather(
        *(two.there.session_store.begin(b"%032d" % n, record(f"p{n}", grant=GRANT)) for n in range(1_200))
    )
    everything = Revocation(tenant="acme", before_s=1e9)
    assert await two.here.session_store.count_revoked_by(everything, {b"%032d" % 7}) == 1_199


# Gateways that are gone


async def test_a_lost_gateways_session_is_free_at_once(two: Two) -> None:
    fence = await two.here.session_store.begin(ANA, record())
    await two.store.lose(two.here.session_store)
    taken = await two.there.session_store.take(ANA, fence, record())
    assert taken is not None
    assert await two.there.session_store.save(ANA, taken, record())


async def test_ownerless_sessions_end_after_too_long_away(open_store: OpenStore) -> None:
    async with opened(open_store, keep_sessions_s=1.0) as two, listening(two) as (_, there):
        ana = await two.here.session_store.begin(ANA, record("ana", "de"), SHOWN)
        await two.there.session_store.begin(BO, record("bo"), SHOWN)
        assert await two.here.session_store.save(ANA, ana, record("ana", "de"), away_s=0.0)
        await two.store.pass_time(1.5)
        assert await two.there.session_store.find(ANA) is not None, "its gateway is there, and has it"
        await two.store.lose(two.here.session_store)
        await two.store.pass_time(1.5)
        await until(lambda: set(there.present) == {"bo"})
        assert await two.there.session_store.find(ANA) is None
        assert there.told.count(("ana", None)) == 1
        assert await two.there.session_store.counts("acme") == TenantCounts(1, 1)
        await two.there.session_store.begin(CY, record("cy", "fr"), Bounds(languages=(("most", 1),)))


async def test_a_released_session_is_kept_for_a_while(open_store: OpenStore) -> None:
    async with opened(open_store, keep_sessions_s=1.0) as two:
        fence = await two.here.session_store.begin(ANA, record())
        await two.here.session_store.release(ANA, fence)
        assert await two.there.session_store.find(ANA) is not None
        taken = await two.there.session_store.take(ANA, fence, record())
        assert taken is not None
        await two.store.pass_time(1.5)
        assert await two.there.session_store.find(ANA) is not None, "it is not away"
        await two.there.session_store.release(ANA, taken)
        await two.store.pass_time(1.5)
        await two.store.pass_time(0.0)
        assert await two.there.session_store.find(ANA) is None


async def test_only_whoever_has_a_session_lets_go_of_it(open_store: OpenStore) -> None:
    async with opened(open_store, keep_sessions_s=1.0) as two:
        fence = await two.here.session_store.begin(ANA, record())
        taken = await two.there.session_store.take(ANA, fence, record())
        assert taken is not None
        for late in (fence, taken):
            await two.here.session_store.release(ANA, late)
        await two.store.pass_time(1.5)
        await two.store.pass_time(0.0)
        assert await two.there.session_store.save(ANA, taken, record()), "it is connected there"


async def test_a_gateway_that_left_is_gone_at_once(open_store: OpenStore) -> None:
    async with opened(open_store, keep_sessions_s=1.0) as two:
        await two.here.session_store.begin(ANA, record())
        await two.store.leave(two.here.session_store)
        assert await two.there.session_store.find(ANA) is not None
        await two.store.pass_time(1.5)
        await two.store.pass_time(0.0)
        assert await two.there.session_store.find(ANA) is None


async def test_returning_gateway_keeps_sessions_nobody_has_taken(open_store: OpenStore) -> None:
    async with opened(open_store, keep_sessions_s=13.0) as two:
        fences = [await two.here.session_store.begin(session, record(session.hex())) for session in (ANA, BO, CY)]
        await two.store.lose(two.here.session_store)
        assert await two.there.session_store.take(BO, fences[1], record(BO.hex())) is not None
        await two.here.session_store.sweep()
        await until(lambda: two.here.moved == [(BO, True)])
        assert await two.here.session_store.save(ANA, fences[0], record(ANA.hex()))
        await two.store.pass_time(3.5)
        assert await two.there.session_store.find(CY) is not None, "it is not away"
        assert two.here.moved == [(BO, True)]


async def test_late_returning_gateway_is_told_what_ended(open_store: OpenStore) -> None:
    async with opened(open_store, keep_sessions_s=1.0) as two:
        fence = await two.here.session_store.begin(ANA, record())
        await two.store.lose(two.here.session_store)
        await two.store.pass_time(1.5)
        await two.store.pass_time(0.0)
        await two.here.session_store.sweep()
        await until(lambda: two.here.moved)
        assert two.here.moved == [(ANA, False)]
        assert not await two.here.session_store.save(ANA, fence, record())

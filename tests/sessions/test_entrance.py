"""How sessions begin and go on while the session store does not answer, or others get in the way.

How they go on at another gateway: `test_two_gateways_sessions_e2e`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import (
    LimitExceeded,
    LogUnavailable,
    QuotaExceeded,
    RateLimited,
    TooManySessions,
    Unauthenticated,
)
from gateway.domain.grants import Grant, Revocation
from gateway.domain.quotas import Quota
from gateway.domain.session_store import TenantCounts
from gateway.protocol.messages import Resume
from gateway.sessions.entrance import Entry, JoinRate, longest_away
from gateway.sessions.local_session import LocalSession, key_of
from gateway.sessions.machine import Update
from gateway.stores.memory_session_store import MemorySessionStore
from tests.sessions.desk import ANA, Desk, api_key_of, desk, resume_of
from tests.sessions.faulty_session_store import FaultySessionStore
from tests.sessions.two_gateways import two
from tests.translation.stage import Log, idle, until


@contextlib.asynccontextmanager
async def faulty(**options: Any) -> AsyncIterator[tuple[Desk, FaultySessionStore]]:
    session_store = FaultySessionStore()
    async with desk(session_store=session_store, **options) as d:
        yield d, session_store


@contextlib.asynccontextmanager
async def elsewhere(d: Desk, session_store: FaultySessionStore) -> AsyncIterator[Desk]:
    """Another gateway on the same store."""
    async with desk(
        log=Log(store=d.core.log.store), session_store=MemorySessionStore(session_store.store)
    ) as another:
        yield another


# Beginning


@pytest.mark.parametrize("is_done", [False, True])
async def test_without_an_answer_nothing_has_begun(is_done: bool) -> None:
    async with faulty() as (d, session_store):
        (session_store.silent if is_done else session_store.down).add("begin")
        with pytest.raises(LogUnavailable) as error:
            await d.join(reads=["de"])
        assert error.value.retry_after_ms
        await idle()
        assert (len(d.sessions.local.all), await session_store.counts("default")) == (0, TenantCounts())
        session_store.silent.clear()
        session_store.down.clear()
        await d.join(reads=["de"])
        assert (await session_store.counts("default")).sessions == 1


async def test_unanswered_begin_does_not_use_up_the_token() -> None:
    token = replace(ANA, once=True)
    async with faulty() as (d, session_store):
        session_store.silent.add("begin")
        session_store.down.add("end")
        with pytest.raises(LogUnavailable):
            await d.join(grant=token)
        await idle()
        session_store.silent.clear()
        # The session store does not know yet that it has not begun.
        with pytest.raises(LogUnavailable) as error:
            await d.join(grant=token)
        assert error.value.retry_after_ms
        session_store.down.clear()
        await d.sessions.sweep()
        await idle()
        await d.join(grant=token)
        assert (await session_store.counts("acme")).sessions == 1
        with pytest.raises(Unauthenticated):
            await d.join(grant=token)


async def test_who_is_gone_before_they_have_begun_leaves_nothing() -> None:
    async with faulty() as (d, session_store):
        session_store.go_on.clear()
        joining = asyncio.create_task(d.join())
        await until(lambda: session_store.asked)
        joining.cancel()
        session_store.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await joining
        await idle()
        assert (len(d.sessions.local.all), await session_store.counts("default")) == (0, TenantCounts())


async def test_client_revoked_while_beginning_is_refused() -> None:
    async with faulty() as (d, session_store):
        session_store.go_on.clear()
        joining = asyncio.create_task(d.join(grant=ANA))
        await until(lambda: "begin" in session_store.asked)
        revoking = asyncio.create_task(d.sessions.revoke(Revocation(tenant="acme", before_s=1e9, subject="ana")))
        await until(lambda: "revoke" in session_store.asked)
        session_store.go_on.set()
        assert await revoking == 0
        with pytest.raises(Unauthenticated):
            await joining
        await idle()
        assert (len(d.sessions.local.all), await session_store.counts("default")) == (0, TenantCounts())


async def test_last_place_goes_to_one_of_two() -> None:
    async with faulty(max_sessions=1) as (d, session_store):
        session_store.go_on.clear()
        joining = [asyncio.create_task(d.join()) for _ in range(2)]
        await until(lambda: session_store.asked.count("begin") == 2)
        session_store.go_on.set()
        outcomes = await asyncio.gather(*joining, return_exceptions=True)
        assert sum(isinstance(outcome, TooManySessions) for outcome in outcomes) == 1
        await idle()
        assert (len(d.sessions.local.all), (await session_store.counts("default")).sessions) == (1, 1)


# Going on


@pytest.mark.parametrize("what", ["take", "find"])
async def test_store_outage_loses_no_session(what: str) -> None:
    async with faulty() as (d, session_store), elsewhere(d, session_store) as there:
        entry, _ = await d.join(name="Ana")
        if what == "find":
            there, d = d, there
            entry, _ = await d.join(name="Ana")
        d.sessions.local.away(entry.session, entry.feed)
        await idle()
        at = there if what == "find" else d
        session_store.down.add(what)
        with pytest.raises(LogUnavailable):
            await at.join(resume=resume_of(entry))
        session_store.down.clear()
        await idle()
        again, _ = await at.join(resume=resume_of(entry))
        assert again.recovered
        assert again.session.member.participant == entry.session.member.participant


@pytest.mark.parametrize("is_here", [False, True])
async def test_session_taken_without_an_answer_can_be_retaken(is_here: bool) -> None:
    async with faulty() as (d, session_store), elsewhere(d, session_store) as there:
        entry, earlier = await (d if is_here else there).join(name="Ana")
        session_store.silent.add("take")
        with pytest.raises(LogUnavailable):
            await d.join(resume=resume_of(entry))
        await idle()
        session_store.silent.clear()
        assert earlier.closed == [CloseCode.REPLACED]
        assert len(d.sessions.local.all) + len(there.sessions.local.all) == 0
        assert key_of(entry.session.secret) in session_store.store.ownerless, (
            "it is away, and would not stay for ever"
        )
        again, _ = await there.join(resume=resume_of(entry))
        assert again.recovered


async def test_session_ending_while_taken_is_begun_again() -> None:
    async with faulty() as (d, session_store):
        entry, _ = await d.join()
        session_store.asked.clear()
        session_store.go_on.clear()
        resuming = asyncio.create_task(d.join(resume=resume_of(entry)))
        await until(lambda: "take" in session_store.asked)
        d.sessions.local.end(entry.session)
        session_store.go_on.set()
        again, _ = await resuming
        await idle()
        assert again.recovered is False
        assert (len(d.sessions.local.all), (await session_store.counts("default")).sessions) == (1, 1)


async def test_ended_session_unknown_to_the_store_stays_ended() -> None:
    async with faulty() as (d, session_store):
        entry, _ = await d.join()
        session_store.down.add("end")
        d.sessions.local.end(entry.session)
        await idle()
        again, _ = await d.join(resume=resume_of(entry))
        assert again.recovered is False
        session_store.down.clear()
        await d.sessions.sweep()
        await idle()
        assert (await session_store.counts("default")).sessions == 1


async def test_removed_keys_session_is_not_resumed_elsewhere() -> None:
    key = Grant(tenant="acme", subject="api-key:k", roles=ANA.roles, any_meeting=True, issued_s=float("inf"))
    async with faulty() as (d, session_store), elsewhere(d, session_store) as there:
        entry, _ = await d.join(grant=key)
        there.keys_gone.add("api-key:k")
        again, _ = await there.join(grant=key, resume=resume_of(entry))
        assert again.recovered is False


async def test_resume_at_a_full_gateway_needs_room() -> None:
    async with faulty(max_sessions=1) as (d, session_store), elsewhere(d, session_store) as there:
        here, _ = await d.join("ours", name="Bo")
        entry, _ = await there.join("theirs", name="Ana")
        with pytest.raises(TooManySessions):
            await d.join("theirs", resume=resume_of(entry))
        assert len(there.sessions.local.all) == 1
        d.sessions.local.away(here.session, here.feed)
        again, _ = await d.join("theirs", resume=resume_of(entry))
        assert again.recovered
        assert [session.member.name for session in d.sessions.local.all] == [""]


class Away:
    """What counts here of a session."""

    def __init__(self, account: str, since_s: float | None) -> None:
        self.account = account
        self.away_since_s = since_s


def gives_way(account: str, *sessions: Away) -> Any:
    return longest_away(cast(list[LocalSession], sessions), account)


def test_largest_accounts_longest_away_gives_way() -> None:
    old, many, more, here = Away("small", 1.0), Away("crowd", 3.0), Away("crowd", 2.0), Away("crowd", None)
    assert gives_way("small", old, many, more, here) is more
    assert gives_way("crowd", old, many, more, here) is more


def test_nobody_gives_way_to_an_account_that_has_more() -> None:
    old, connected = Away("small", 1.0), [Away("crowd", None) for _ in range(3)]
    assert gives_way("crowd", old, *connected) is None
    assert gives_way("another", old, *connected) is old


def test_among_equals_the_newcomers_own_gives_way() -> None:
    first, second = Away("a", 1.0), Away("b", 2.0)
    assert gives_way("b", first, second) is second
    assert gives_way("a", first, second) is first
    assert gives_way("c", first, second) in (first, second)


def test_nobody_who_is_connected_gives_way() -> None:
    assert gives_way("a", Away("a", None), Away("b", None)) is None


def test_joins_are_bounded_per_name_and_minute() -> None:
    joins = JoinRate()
    assert not any(joins.count("a", 60, 0.0) for _ in range(60))
    assert joins.count("a", 60, 0.5) == 0.5
    assert joins.count("b", 60, 0.5) == 0.0
    assert joins.count("a", 60, 1.0) == 0.0


def test_another_bound_holds_at_once() -> None:
    joins = JoinRate()
    assert joins.count("a", 1, 0.0) == 0.0
    assert joins.count("a", 1, 0.0) > 0.0
    assert not any(joins.count("a", 2, 0.0) for _ in range(2))
    assert joins.count("a", 2, 0.0) > 0.0


def test_rested_names_are_forgotten() -> None:
    joins = JoinRate()
    joins.count("a", 2, 0.0)
    joins.count("b", 2, 50.0)
    joins.sweep(59.9)
    assert len(joins) == 2
    joins.sweep(60.0)
    assert len(joins) == 1
    assert joins.count("b", 2, 50.0) == 0.0
    assert joins.count("b", 2, 50.0) > 0.0


# ---------------------------------------------------------------- quotas of tenants


def resume(entry: Entry) -> Resume:
    return Resume(entry.session.secret, entry.session.room.epoch, entry.session.room.offset)


async def refused(d: Desk, quota: str, **fields: Any) -> None:
    before = len(d.sessions.local.all)
    expected = {"joins": RateLimited, "languages": LimitExceeded}.get(quota, QuotaExceeded)
    with pytest.raises(expected, match=f"his tenant's quota {quota} is 2") as error:
        await d.join(**{"grant": api_key_of("acme"), **fields})
    assert (error.value.retry_after_ms is not None) is error.value.retryable
    assert len(d.sessions.local.all) == before


async def test_refused_tenant_joins_spare_its_address() -> None:
    async with desk(joins=3) as d:
        d.quota = Quota(joins=2)
        for _ in range(2):
            await d.join("office", grant=api_key_of("acme"))
        for _ in range(10):
            await refused(d, "joins", account="office")
        await d.join("office", grant=api_key_of("other"))


async def test_joins_count_everywhere_and_refused_resumes_harm_nothing() -> None:
    async with two() as g:
        g.here.quota = g.there.quota = Quota(joins=2)
        first, connection = await g.here.join(grant=api_key_of("acme"))
        await g.there.join(grant=api_key_of("acme"))
        await refused(g.there, "joins")
        for gateway in (g.there, g.here):
            await refused(gateway, "joins", resume=resume(first))
        await idle()
        assert (first.session.connected, connection.closed) == (True, [])
        await g.pass_time(30, g.here, g.there)
        again, _ = await g.there.join(grant=api_key_of("acme"), resume=resume(first))
        assert again.recovered


async def test_a_tenants_meeting_is_translated_into_so_many_languages() -> None:
    async with desk() as d:
        d.quota = Quota(languages=2)
        entry, _ = await d.join(grant=api_key_of("acme"), reads=["ja", "de"])
        await refused(d, "languages", reads=["fr"])
        with pytest.raises(LimitExceeded) as error:
            await d.sessions.update(entry.session, Update("en", ("ja", "de", "fr"), "live", originals=False))
        assert error.value.field == "reads"
        await d.join(grant=api_key_of("acme"), reads=["de"])
        await d.join(grant=api_key_of("other"), reads=["ja", "de", "fr"])
        d.quota = Quota(languages=1)
        # Nobody loses what they read, and nothing is added.
        await d.sessions.update(entry.session, Update("en", ("ja", "de"), "live", originals=False))

"""How sessions begin and go on while the session store does not answer, or others get in the way.

How they go on at another gateway: `test_two_gateways_sessions_e2e`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import LogUnavailable, TooManySessions, Unauthenticated
from gateway.domain.grants import Grant, Revocation
from gateway.domain.session_store import TenantCounts
from gateway.sessions.seat import key_of
from gateway.stores.memory_session_store import MemorySessionStore
from tests.sessions.desk import ANA, Desk, desk
from tests.sessions.faulty_session_store import FaultySessionStore
from tests.sessions.two_gateways import resume_of
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
        assert (len(d.sessions.seats.all), await session_store.counts("default")) == (0, TenantCounts())
        session_store.silent.clear()
        session_store.down.clear()
        await d.join(reads=["de"])
        assert (await session_store.counts("default")).sessions == 1


async def test_a_token_for_one_session_is_not_used_up_by_one_that_nobody_was_told_of() -> None:
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
        assert (len(d.sessions.seats.all), await session_store.counts("default")) == (0, TenantCounts())


async def test_who_is_revoked_while_they_begin_is_not_let_in() -> None:
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
        assert (len(d.sessions.seats.all), await session_store.counts("default")) == (0, TenantCounts())


async def test_of_two_who_begin_at_once_at_a_gateway_with_one_place_one_gets_it() -> None:
    async with faulty(max_sessions=1) as (d, session_store):
        session_store.go_on.clear()
        joining = [asyncio.create_task(d.join()) for _ in range(2)]
        await until(lambda: session_store.asked.count("begin") == 2)
        session_store.go_on.set()
        outcomes = await asyncio.gather(*joining, return_exceptions=True)
        assert sum(isinstance(outcome, TooManySessions) for outcome in outcomes) == 1
        await idle()
        assert (len(d.sessions.seats.all), (await session_store.counts("default")).sessions) == (1, 1)


# Going on


@pytest.mark.parametrize("what", ["take", "find"])
async def test_while_the_store_is_away_nothing_goes_on_and_nothing_is_lost(what: str) -> None:
    async with faulty() as (d, session_store), elsewhere(d, session_store) as there:
        entry, _ = await d.join(name="Ana")
        if what == "find":
            there, d = d, there
            entry, _ = await d.join(name="Ana")
        d.sessions.seats.away(entry.seat, entry.feed)
        await idle()
        at = there if what == "find" else d
        session_store.down.add(what)
        with pytest.raises(LogUnavailable):
            await at.join(resume=resume_of(entry))
        session_store.down.clear()
        await idle()
        again, _ = await at.join(resume=resume_of(entry))
        assert again.recovered
        assert again.seat.member.participant == entry.seat.member.participant


@pytest.mark.parametrize("is_here", [False, True])
async def test_a_session_that_was_taken_without_an_answer_can_be_taken_again(is_here: bool) -> None:
    async with faulty() as (d, session_store), elsewhere(d, session_store) as there:
        entry, earlier = await (d if is_here else there).join(name="Ana")
        session_store.silent.add("take")
        with pytest.raises(LogUnavailable):
            await d.join(resume=resume_of(entry))
        await idle()
        session_store.silent.clear()
        assert earlier.closed == [CloseCode.REPLACED]
        assert len(d.sessions.seats.all) + len(there.sessions.seats.all) == 0
        assert key_of(entry.seat.secret) in session_store.store.ownerless, (
            "it is away, and would not stay for ever"
        )
        again, _ = await there.join(resume=resume_of(entry))
        assert again.recovered


async def test_a_session_that_ends_while_it_is_taken_is_begun_again() -> None:
    async with faulty() as (d, session_store):
        entry, _ = await d.join()
        session_store.asked.clear()
        session_store.go_on.clear()
        resuming = asyncio.create_task(d.join(resume=resume_of(entry)))
        await until(lambda: "take" in session_store.asked)
        d.sessions.seats.end(entry.seat)
        session_store.go_on.set()
        again, _ = await resuming
        await idle()
        assert again.recovered is False
        assert (len(d.sessions.seats.all), (await session_store.counts("default")).sessions) == (1, 1)


async def test_a_session_that_has_ended_is_not_resumed_although_the_session_store_does_not_know_it() -> None:
    async with faulty() as (d, session_store):
        entry, _ = await d.join()
        session_store.down.add("end")
        d.sessions.seats.end(entry.seat)
        await idle()
        again, _ = await d.join(resume=resume_of(entry))
        assert again.recovered is False
        session_store.down.clear()
        await d.sessions.sweep()
        await idle()
        assert (await session_store.counts("default")).sessions == 1


async def test_a_session_of_a_key_that_is_gone_is_not_resumed_elsewhere() -> None:
    key = Grant(tenant="acme", subject="api-key:k", roles=ANA.roles, any_meeting=True, issued_s=float("inf"))
    async with faulty() as (d, session_store), elsewhere(d, session_store) as there:
        entry, _ = await d.join(grant=key)
        there.keys_gone.add("api-key:k")
        again, _ = await there.join(grant=key, resume=resume_of(entry))
        assert again.recovered is False


async def test_a_session_comes_to_a_full_gateway_as_any_newcomer() -> None:
    async with faulty(max_sessions=1) as (d, session_store), elsewhere(d, session_store) as there:
        here, _ = await d.join("ours", name="Bo")
        entry, _ = await there.join("theirs", name="Ana")
        with pytest.raises(TooManySessions):
            await d.join("theirs", resume=resume_of(entry))
        assert len(there.sessions.seats.all) == 1
        d.sessions.seats.away(here.seat, here.feed)
        again, _ = await d.join("theirs", resume=resume_of(entry))
        assert again.recovered
        assert [seat.member.name for seat in d.sessions.seats.all] == [""]

"""Whole gateways on one real Redis: a client that changes between them, and a store that is away for a while."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from gateway.config import Settings
from gateway.config.settings import StoreSettings
from gateway.domain.close_codes import CloseCode
from gateway.domain.grants import meeting_of_host_key
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Error,
    MeetingLock,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantRemove,
    ParticipantUpdated,
    SessionEnd,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    TranslationFinal,
    UtteranceAccepted,
)
from tests.gateways import Running, running
from tests.meetings import away, finals, joined, say
from tests.redis_server import RedisServer, server_to_kill, shared_server, shared_urls


@asynccontextmanager
async def gateways(url: str, count: int = 2, **settings: Any) -> AsyncIterator[list[Running]]:
    store = StoreSettings(url=url, prefix=f"{secrets.token_hex(4)}:")
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running(Settings(store=store, **settings))) for _ in range(count)]


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """One that may be killed."""
    with server_to_kill() as running:
        yield running


@pytest.mark.parametrize("stores", [1, 3])
async def test_a_client_changes_between_gateways_and_misses_nothing(stores: int) -> None:
    async with gateways(shared_urls(stores)) as (one, another), joined(one, speaks="en", name="Ana") as ana:
        async with joined(one, reads=["ja"], name="Bo") as bo:
            await ana.peer.send(say("1"))
            await bo.until(TranslationFinal)
            bo.lose()
        await away(one)
        await ana.peer.send(say("2"))
        await ana.until(UtteranceAccepted, 2)
        async with joined(another, reads=["ja"], name="Bo", resume=bo.resume()) as again:
            await ana.peer.send(say("3"))
            await again.until(TranslationFinal, 2)
            assert (again.started.recovered, again.started.participant) == (True, bo.started.participant)
            assert [p.name for p in again.started.participants] == ["Ana"]
            seen = finals([*bo.received, *again.received])
            assert [utterance for _, utterance, _ in seen] == ["1", "2", "3"]
            assert await ana.until(ParticipantJoined)
            assert not [m for m in await ana.everything() if isinstance(m, ParticipantLeft)]
            async with joined(one, reads=["ja"], name="Bo", resume=again.resume()) as back:
                assert await again.closed() == CloseCode.REPLACED
                await back.peer.send(SessionUpdate(speaks="de"))
                await ana.until(ParticipantUpdated)
                await back.peer.send(SessionEnd())
                [left] = await ana.until(ParticipantLeft)
                assert (left.name, left.speaks) == ("Bo", "de")


async def test_restarted_gateways_sessions_resume_at_others() -> None:
    async with gateways(shared_server().url, count=1) as [one]:
        settings = one.gateway.settings
        async with running(settings) as another, joined(another, speaks="en", reads=["ja"]) as ana:
            await ana.peer.send(say("1"))
            await ana.until(TranslationFinal)
            await another.gateway.drain()
            assert await ana.closed() == CloseCode.RESTART
            resume = ana.resume()
        async with joined(one, speaks="en", reads=["ja"], resume=resume) as again:
            assert (again.started.recovered, again.started.participant) == (True, ana.started.participant)


async def test_store_outage_stops_joins_and_delays_news(server: RedisServer) -> None:
    async with gateways(server.url) as (one, another), joined(another, name="Cy") as cy:
        async with joined(one, name="Ana", reads=["ja"]) as ana, joined(one, name="Bo") as bo:
            await cy.until(ParticipantJoined, 2)
            server.kill()
            async with another.peer() as newcomer:
                await newcomer.send(SessionStart(reads=[], meeting="m"))
                refused = await newcomer.receive()
                assert isinstance(refused, Error)
                assert (refused.code, bool(refused.retry_after_ms)) == ("log_unavailable", True)
                ana.lose()
                await away(one)
                await bo.peer.send(SessionEnd())
                assert await bo.closed() == CloseCode.NORMAL
                server.start()
                while not isinstance(refused, SessionStarted):
                    await newcomer.send(SessionStart(reads=[], meeting="m"))
                    refused = await newcomer.receive()
        # Cy may hear of the newcomer, who has come and gone meanwhile, or not.
        while bo.started.participant not in {m.participant for m in cy.received if isinstance(m, ParticipantLeft)}:
            await cy.receive()
        assert ana.started.participant not in {
            m.participant for m in cy.received if isinstance(m, ParticipantLeft)
        }
        async with joined(another, name="Ana", reads=["ja"], resume=ana.resume()) as again:
            assert (again.started.recovered, again.started.participant) == (True, ana.started.participant)


async def test_clients_during_an_outage_are_told_to_return(server: RedisServer) -> None:
    limits = Limits(start_timeout_s=4)
    async with gateways(server.url, count=1, limits=limits) as [one], AsyncExitStack() as stack:
        server.kill()
        peers = [await stack.enter_async_context(one.peer()) for _ in range(4)]
        for peer in peers:
            await peer.send(SessionStart(reads=[], meeting="m"))
        for peer in peers:
            refused = await peer.receive()
            assert isinstance(refused, Error)
            assert (refused.code, refused.retryable) == ("log_unavailable", True)
        server.start()
        while not isinstance(refused, SessionStarted):
            await peers[-1].send(SessionStart(reads=[], meeting="m"))
            refused = await peers[-1].receive()


async def test_host_removes_who_is_away_since_their_gateway_has_stopped() -> None:
    meeting = meeting_of_host_key("secret")
    async with (
        gateways(shared_urls(1), 1) as (one,),
        joined(one, speaks="en", name="Ana", meeting=meeting, host="secret") as ana,
    ):
        async with running(Settings(store=one.gateway.settings.store)) as another:
            async with joined(another, reads=["ja"], name="Bo", meeting=meeting) as bo:
                bo.lose()
            await away(another)
        await ana.peer.send(MeetingLock(True))
        await ana.peer.send(ParticipantRemove(bo.started.participant))
        await ana.until(ParticipantLeft)
        async with one.peer() as peer:
            await peer.send(SessionStart(["ja"], meeting=meeting, resume=bo.resume()))
            refused = await peer.receive()
            assert isinstance(refused, Error), refused
            assert refused.code == "meeting_locked"

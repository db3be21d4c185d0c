"""The client with a real gateway on a real socket: drops, restarts, updates, meetings."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack

import pytest
from msgspec import UNSET

from gateway.client import (
    ClientSession,
    MessageRefused,
    Reconnect,
    Reconnected,
    Reconnecting,
    SessionClosed,
    SessionEvent,
    SessionRefused,
    connect,
)
from gateway.config import Settings
from gateway.domain.grants import meeting_of_host_key
from gateway.engines.simulated import Script
from gateway.protocol.codec import JSON, MSGPACK, Codec
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    MeetingLocked,
    MeetingTitled,
    ParticipantLeft,
    ParticipantUpdated,
    SessionMuted,
    SessionUpdated,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)
from loadtest.systems.server import free_port
from tests.client.reading import AT_ONCE
from tests.clocks import swiftly
from tests.gateways import running

pytestmark = pytest.mark.slow


async def until(session: ClientSession, kind: type[SessionEvent], count: int = 1) -> list[SessionEvent]:
    """Everything up to the `count`-th event of a kind."""
    events: list[SessionEvent] = []
    async for event in session:
        events.append(event)
        if sum(isinstance(each, kind) for each in events) == count:
            break
    return events


def texts(events: list[SessionEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TranslationFinal)]


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=["json", "msgpack"])
async def test_a_dropped_session_misses_nothing(codec: Codec) -> None:
    async with (
        running() as gateway,
        connect(gateway.url, reads=["ja", "de"], speaks="en", codec=codec, reconnect=AT_ONCE) as session,
    ):
        participant = session.started.participant
        slow = await session.final("SLOW down please")
        await until(session, TranslationDelta)
        await session.drop()
        await session.final("And then")
        events = await until(session, TranslationFinal, 4)
        assert sorted(texts(events)) == [
            *("[de] And then", "[de] SLOW down please", "[ja] And then", "[ja] SLOW down please")
        ]
        (found,) = [event for event in events if isinstance(event, Reconnected)]
        assert found.started.recovered is True
        assert session.started.participant == participant
        # What was shown of unfinished translations comes again, whole.
        deltas = "".join(
            event.committed
            for event in events[events.index(found) :]
            if isinstance(event, TranslationDelta) and (event.utterance, event.lang) == (slow, "ja")
        )
        assert deltas
        assert "[ja] SLOW down please".startswith(deltas)


async def say_more_and_more(session: ClientSession, id: str) -> None:
    for count in range(1, 400):
        await session.partial("word " * count, id)
        await asyncio.sleep(0.05)


@swiftly
async def test_stability_final_stops_partials() -> None:
    settings = Settings(segment_chars=2_000, limits=Limits(text_chars=4_000))
    async with (
        running(settings) as gateway,
        connect(gateway.url, reads=["ja"], speaks="en", stability="stable", reconnect=AT_ONCE) as session,
    ):
        async with asyncio.TaskGroup() as tasks:
            saying = tasks.create_task(say_more_and_more(session, "1"))
            deltas = [
                each for each in await until(session, TranslationDelta, 3) if isinstance(each, TranslationDelta)
            ]
            saying.cancel()
        shown = "".join(each.committed for each in deltas)
        assert shown
        assert ("[ja] " + "word " * 400).startswith(shown)
        assert [each.tentative for each in deltas] == ["", "", ""]
        await session.final("word word", "1")
        assert texts(await until(session, TranslationFinal)) == ["[ja] word word"]
        await session.update(stability="final")
        assert (await until(session, SessionUpdated))[-1] == SessionUpdated(["ja"], "en", "final")
        await session.drop()
        await until(session, Reconnected)
        for count in range(1, 20):
            await session.partial("word " * count, "2")
        await session.final("word word", "2")
        events = await until(session, TranslationFinal)
        assert texts(events) == ["[ja] word word"]
        assert [each for each in events if isinstance(each, TranslationDelta)] == []


async def test_restarted_gateway_gets_unaccepted_finals() -> None:
    async with AsyncExitStack() as stack:
        before = AsyncExitStack()
        first = await before.enter_async_context(running(port=free_port()))
        session = await stack.enter_async_context(
            connect(first.url, meeting="standup", reads=["ja"], speaks="en", reconnect=AT_ONCE)
        )
        await session.final("Before")
        await until(session, TranslationFinal)
        async with asyncio.TaskGroup() as tasks:
            lost = tasks.create_task(until(session, Reconnecting))
            await before.aclose()
            await lost
        await session.final("Meanwhile")
        second = await stack.enter_async_context(running(port=first.port))
        assert second.port == first.port
        events = await until(session, TranslationFinal)
        assert texts(events) == ["[ja] Meanwhile"]
        assert session.started.recovered is False
        assert len(session.unacknowledged) == 0
        await session.end()
        assert [event async for event in session if isinstance(event, Reconnecting)] == []


@pytest.mark.parametrize("seed", [1, 2])
async def test_lossy_meeting_doubles_nothing(seed: int) -> None:
    """Each reader gets each caption and translation once; each final is accepted once, in each speaker's order."""
    chance = random.Random(seed)
    finals = 25

    async with running(script=Script(first_token_s=0.002, token_s=0.001)) as gateway, AsyncExitStack() as stack:

        async def enter(name: str, speaks: str | None, reads: list[str]) -> ClientSession:
            return await stack.enter_async_context(
                connect(
                    gateway.url,
                    meeting="hall",
                    name=name,
                    speaks=speaks,
                    reads=reads,
                    reconnect=Reconnect(jitter=lambda: chance.random() / 50),
                )
            )

        ana, ben = await enter("Ana", "en", []), await enter("Ben", "de", [])
        readers = [await enter(f"Reader {number}", None, ["ja", "en"]) for number in range(3)]
        speakers = {ana: "en", ben: "de"}
        # Captions in English, translations of Ben's into English, translations of all into Japanese.
        expected = 4 * finals

        async def read(session: ClientSession) -> list[str]:
            seen: list[str] = []
            async for event in session:
                match event:
                    case Caption(final=True) | TranslationFinal():
                        seen.append(f"{event.speaker} {event.lang} {event.text}")
                        if len(seen) == expected:
                            break
                    case TranslationFailed():
                        pytest.fail(event.message)
                if chance.random() < 0.05:
                    await session.drop()
            return seen

        async def say(session: ClientSession, lang: str) -> None:
            for number in range(finals):
                await session.final(f"{lang} {number}")
                if chance.random() < 0.3:
                    await session.drop()
                await asyncio.sleep(0.005)

        async def answers(session: ClientSession) -> list[str]:
            accepted: list[str] = []
            async for event in session:
                if isinstance(event, UtteranceAccepted) and event.id not in accepted:
                    accepted.append(event.id)
                if len(accepted) == finals:
                    break
            return accepted

        async with asyncio.TaskGroup() as tasks:
            reading = [tasks.create_task(read(reader)) for reader in readers]
            answering = [tasks.create_task(answers(speaker)) for speaker in speakers]
            for speaker, lang in speakers.items():
                tasks.create_task(say(speaker, lang))
    for task in reading:
        assert set(Counter(task.result()).values()) == {1}
        for name, lang in (("Ana", "en"), ("Ben", "de")):
            spoken = [seen for seen in task.result() if seen.startswith(f"{name} {lang} ")]
            if lang == "en":
                assert spoken == [f"Ana en en {number}" for number in range(finals)]
    for accepted in answering:
        assert [int(id.partition("-")[2]) for id in accepted.result()] == list(range(1, finals + 1))


async def test_host_locks_removes_and_ends() -> None:
    secret = "correct horse battery staple"
    meeting = meeting_of_host_key(secret)
    async with (
        running() as gateway,
        connect(gateway.url, reads=[], meeting=meeting, host=secret) as ana,
        connect(gateway.url, reads=["de"], meeting=meeting) as bo,
    ):
        assert (ana.started.host, bo.started.host) == (True, UNSET)
        await ana.lock()
        assert await until(ana, MeetingLocked) != []
        with pytest.raises(SessionRefused, match="locked"):
            async with connect(gateway.url, reads=[], meeting=meeting):
                pass
        # It is the host's again after a lost connection, and still locked.
        await ana.drop()
        await until(ana, Reconnected)
        assert (ana.started.host, ana.started.locked) == (True, True)
        await ana.entitle("Weekly")
        assert MeetingTitled("Weekly") in await until(bo, MeetingTitled)
        await ana.mute(bo.started.participant)
        known = (await until(ana, ParticipantUpdated))[-1]
        assert isinstance(known, ParticipantUpdated)
        assert (known.participant, known.muted) == (bo.started.participant, True)
        await until(bo, SessionMuted)
        await bo.final("One.", lang="en")
        with pytest.raises(MessageRefused) as refused:
            await anext(bo.lines())
        assert refused.value.error.code == "muted"
        await ana.mute(bo.started.participant, False)
        await until(bo, SessionMuted)
        await ana.remove(bo.started.participant)
        await until(ana, ParticipantLeft)
        with pytest.raises(SessionClosed) as removed:
            await until(bo, ParticipantLeft)
        await ana.end_meeting()
        with pytest.raises(SessionClosed) as ended:
            await until(ana, ParticipantLeft)
    codes = [closed.value.error.code for closed in (removed, ended) if closed.value.error is not None]
    assert codes == ["removed", "meeting_ended"]

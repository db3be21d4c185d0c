"""The client with two gateways on a real store, behind a proxy that knows nothing of sessions."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from gateway.client import Line, Reconnected, SessionEvent, connect, fetch_transcript
from gateway.config import Settings, StoreSettings
from gateway.protocol.messages import Caption, ParticipantLeft, TranslationFinal, UtteranceAccepted
from tests.client.reading import AT_ONCE
from tests.gateways import Running, running
from tests.redis_server import shared_urls
from tests.round_robin import RoundRobin, round_robin

pytestmark = pytest.mark.slow


@contextlib.asynccontextmanager
async def two(stores: int = 1) -> AsyncIterator[tuple[RoundRobin, tuple[Running, Running]]]:
    settings = Settings(store=StoreSettings(url=shared_urls(stores), prefix=f"{secrets.token_hex(4)}:"))
    async with (
        running(settings) as one,
        running(settings) as another,
        round_robin(one.port, another.port) as proxy,
    ):
        yield proxy, (one, another)


def sessions(gateways: tuple[Running, Running]) -> tuple[int, int]:
    one, another = (gateway.gateway.stream.open_sessions for gateway in gateways)
    return one, another


@pytest.mark.parametrize("stores", [1, 3])
async def test_cut_off_participants_miss_nothing(stores: int) -> None:
    async with (
        two(stores) as (proxy, gateways),
        connect(proxy.url, meeting="standup", speaks="en", reads=[], reconnect=AT_ONCE) as ana,
        connect(proxy.url, meeting="standup", reads=["ja", "en"], reconnect=AT_ONCE) as ben,
    ):
        assert sessions(gateways) == (1, 1)
        participants = (ana.started.participant, ben.started.participant)
        heard: list[SessionEvent] = []
        recovered: list[bool | None] = []

        async def listen() -> None:
            async for event in ben:
                heard.append(event)
                if isinstance(event, Reconnected):
                    recovered.append(event.started.recovered)
                finals = [each for each in heard if isinstance(each, TranslationFinal)]
                if len(finals) == 12:
                    return

        cuts = 0
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(listen())
            for number in range(12):
                await ana.partial(f"number {number}", str(number))
                await ana.final(f"This is number {number}.", str(number))
                if number % 3 == 1:
                    # The speaker may be back, and go on, long before the reader is.
                    while len(recovered) < cuts:
                        await asyncio.sleep(0.01)
                    proxy.cut()
                    cuts += 1
                async for event in ana:
                    if isinstance(event, UtteranceAccepted) and event.id == str(number):
                        break
        assert recovered == [True] * 4
        assert (ana.started.participant, ben.started.participant) == participants
        texts = Counter(each.text for each in heard if isinstance(each, TranslationFinal))
        assert texts == {f"[ja] This is number {number}.": 1 for number in range(12)}
        captions = Counter(each.text for each in heard if isinstance(each, Caption) and each.final)
        assert captions == {f"This is number {number}.": 1 for number in range(12)}
        assert not [each for each in heard if isinstance(each, ParticipantLeft)]


async def test_corrections_reach_a_reader_at_the_other_gateway_through_cuts() -> None:
    async with (
        two() as (proxy, _gateways),
        connect(proxy.url, meeting="standup", speaks="en", reads=[], reconnect=AT_ONCE) as ana,
        connect(proxy.url, meeting="standup", reads=["ja"], reconnect=AT_ONCE) as ben,
    ):
        screen: dict[str, Line] = {}

        async def listen() -> None:
            async for line in ben.lines():
                screen[line.key] = line
                if line.gone:
                    del screen[line.key]
                if line.final and line.text == "[ja] The end.":
                    return

        async def say(text: str, id: str, replaces: str | None = None) -> None:
            await ana.final(text, id, replaces=replaces)
            async for event in ana:
                if isinstance(event, UtteranceAccepted) and event.id == id:
                    return

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(listen())
            for number in range(6):
                await say(f"Nubmer {number}.", f"u{number}")
                proxy.cut()
                await say("" if number == 3 else f"Number {number}.", f"c{number}", f"u{number}")
            await say("Number nought.", "c", "u0")
            await say("The end.", "end")
        expected = ["Number nought.", *(f"Number {number}." for number in (1, 2, 4, 5)), "The end."]
        transcript = await fetch_transcript(proxy.url, "standup")
        assert [said.text for said in transcript.utterances] == expected
        assert [line.text for line in screen.values() if line.text] == [f"[ja] {text}" for text in expected]

"""Two gateways on one store."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from gateway.domain.log import Said, Translated
from gateway.protocol.messages import (
    Caption,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.sessions.entrance import Entry
from gateway.sessions.machine import Accept, Show
from tests.live_channel import MemoryLiveChannel, Switchboard
from tests.sessions.desk import Connection, Desk, desk
from tests.translation.stage import Log, idle, until


@contextlib.asynccontextmanager
async def two() -> AsyncIterator[tuple[Desk, Desk]]:
    log, switchboard = Log(), Switchboard()
    channels = [MemoryLiveChannel(switchboard) for _ in range(2)]
    async with (
        desk(log=log, channel=channels[0]) as one,
        desk(log=Log(store=log.store), channel=channels[1]) as another,
    ):
        yield one, another


async def joined(d: Desk, **fields: Any) -> tuple[Entry, Connection]:
    entry, connection = await d.join(**fields)
    await entry.seat.room.stream_to(entry.seat.member, entry.feed)
    return entry, connection


async def says(d: Desk, entry: Entry, connection: Connection, text: str) -> None:
    [accept] = connection.send(UtteranceFinal(text, 1, text))
    assert isinstance(accept, Accept)
    await d.sessions.accept(entry.seat, accept)


async def translations(d: Desk) -> Counter[tuple[str, str]]:
    events = [publication.event for publication in (await d.core.log.read("m", 0)).publications]
    return Counter((event.utterance, event.lang) for event in events if isinstance(event, Translated))


async def test_a_reader_at_another_gateway_has_what_is_said_translated_once() -> None:
    async with two() as (here, there):
        speaker, ana = await joined(here, speaks="en")
        _, bo = await joined(there, reads=["de"])
        await says(here, speaker, ana, "One.")
        await until(here.core.engine.pending)
        here.core.engine.says("Eins.")
        await here.core.finals.quiet()
        heard = await bo.received()
        assert [message.text for message in heard if isinstance(message, TranslationFinal)] == ["Eins."]
        assert there.core.engine.requests == []
        assert await translations(here) == {("One.", "de"): 1}
        assert ana.state.in_flight == 0


async def test_what_is_being_said_is_translated_for_a_reader_at_another_gateway() -> None:
    async with two() as (here, there):
        speaker, ana = await joined(here, speaks="en")
        _, bo = await joined(there, reads=["de", "en"])
        await idle()
        [show] = ana.send(UtterancePartial("1", 1, "good morn"))
        assert isinstance(show, Show)
        here.core.partials.hear(speaker.seat.room, show.utterance)
        await until(here.core.engine.pending)
        here.core.engine.says("Guten Morgen zusammen allerseits heute")
        await idle()
        heard = await bo.received()
        assert [(m.text, m.final) for m in heard if isinstance(m, Caption)] == [("good morn", False)]
        assert [m.tentative for m in heard if isinstance(m, TranslationDelta)] == ["Guten"]
        await says(here, speaker, ana, "Good morning.")
        await until(here.core.engine.pending)
        await here.sessions.sweep()
        assert there.core.engine.requests == []


async def test_what_another_gateway_translates_is_cancelled_there() -> None:
    async with two() as (here, there):
        speaker, ana = await joined(here, speaks="en")
        _, bo = await joined(there, reads=["de"])
        await idle()
        await says(here, speaker, ana, "One.")
        await until(here.core.engine.pending)
        key = (speaker.seat.member.participant, "One.")
        there.core.finals.cancel(next(iter(there.sessions.rooms)), key)
        await until(lambda: not here.core.engine.pending())
        await here.core.finals.quiet()
        assert [m.code for m in await bo.received() if isinstance(m, TranslationFailed)] == ["cancelled"]


async def test_a_latecomer_at_another_gateway_is_caught_up_there() -> None:
    async with two() as (here, there):
        speaker, ana = await joined(here, speaks="en")
        await says(here, speaker, ana, "One.")
        _, bo = await joined(there, reads=["de"])
        await until(there.core.engine.pending)
        there.core.engine.says("Eins.")
        await there.core.finals.quiet()
        assert [type(message) for message in await bo.received()] == [TranslationFinal]
        assert here.core.engine.requests == []


async def test_a_speaker_who_sends_a_final_again_at_another_gateway_is_not_heard_twice() -> None:
    async with two() as (here, there):
        speaker, ana = await joined(here, speaks="en")
        _, bo = await joined(there, reads=["de", "en"])
        await says(here, speaker, ana, "One.")
        participant = speaker.seat.member.participant
        again = (await here.core.log.read("m", 0)).publications[0].event
        assert isinstance(again, Said)
        assert (await there.core.finals.accept(next(iter(there.sessions.rooms)), again.utterance)).known
        await until(here.core.engine.pending)
        here.core.engine.says("Eins.")
        await here.core.finals.quiet()
        assert there.core.engine.requests == []
        heard = await bo.received()
        assert [(m.participant, m.text) for m in heard if isinstance(m, Caption)] == [(participant, "One.")]


async def test_what_a_gateway_that_is_gone_has_accepted_the_other_one_translates() -> None:
    async with two() as (here, there):
        speaker, ana = await joined(here, speaks="en")
        _, bo = await joined(there, reads=["de"])
        await says(here, speaker, ana, "One.")
        await until(here.core.engine.pending)
        await here.core.log.close()
        await there.sessions.sweep()
        await until(there.core.engine.pending)
        there.core.engine.says("Eins.")
        await there.core.finals.quiet()
        here.core.engine.fails(*here.core.engine.pending())
        await here.core.finals.quiet()
        assert await translations(there) == {("One.", "de"): 1}
        heard = [message for message in await bo.received() if not isinstance(message, Caption)]
        assert [type(message) for message in heard] == [TranslationFinal]

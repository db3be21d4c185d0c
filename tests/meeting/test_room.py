"""Meetings over real sockets, with the simulated engine: many speakers, many readers, lost connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from gateway.config import EventLogSettings, Settings
from gateway.domain.log import Said, Translated, Untranslated
from gateway.engines.simulated import Rule, Script
from gateway.protocol.codec import JSON, MSGPACK, Codec
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Error,
    ParticipantJoined,
    ParticipantLeft,
    Ping,
    Pong,
    Resume,
    SessionDraining,
    SessionEnd,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    SessionUpdated,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceCancelled,
    UtteranceFinal,
    UtterancePartial,
)
from tests.clocks import swiftly
from tests.gateways import SCRIPT, Peer, Running, running


def say(utterance: str, text: str = "good morning", rev: int = 1) -> UtteranceFinal:
    return UtteranceFinal(id=utterance, rev=rev, text=text)


class Somebody:
    """A peer that has joined; everything it was sent since, and where it is in the log."""

    def __init__(self, peer: Peer, start: SessionStart, started: SessionStarted) -> None:
        self.peer = peer
        self.start = start
        self.started = started
        self.received: list[Any] = []
        self.offset = started.offset

    async def receive(self) -> Any:
        message = await self.peer.receive()
        self.received.append(message)
        self.offset = max(self.offset, getattr(message, "offset", None) or 0)
        return message

    async def until(self, kind: type[Any], count: int = 1) -> list[Any]:
        """Waits until `count` messages of a kind have come since the start; all of them."""
        while len(found := [m for m in self.received if isinstance(m, kind)]) < count:
            await self.receive()
        return found

    async def everything(self) -> list[Any]:
        """All that was sent up to now: a pong comes behind it."""
        await self.peer.send(Ping("now"))
        while await self.receive() != Pong("now"):
            pass
        return [m for m in self.received if m != Pong("now")]

    async def closed(self) -> int | None:
        """The code the gateway closes with."""
        try:
            while True:
                await self.receive()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd is not None else None

    def resume(self) -> Resume:
        return Resume(self.started.session, self.started.epoch, self.offset)

    def lose(self) -> None:
        self.peer.connection.transport.abort()


@contextlib.asynccontextmanager
async def joined(
    gateway: Running, codec: Codec = JSON, *, meeting: str | None = "m", **fields: Any
) -> AsyncIterator[Somebody]:
    start = SessionStart(**{"reads": [], "meeting": meeting, **fields})
    async with gateway.peer(codec) as peer:
        await peer.send(start)
        started = await peer.receive()
        assert isinstance(started, SessionStarted), started
        yield Somebody(peer, start, started)


async def logged(gateway: Running, meeting: str = "m") -> list[Any]:
    return [p.event for p in (await gateway.gateway.log.read(meeting, 0, 10_000)).publications]


async def away(gateway: Running, count: int = 1) -> None:
    """Until so many sessions are without a connection; the suite's timeout is the bound."""
    seats = gateway.gateway.registry._seats
    while sum(not seat.connected for seat in seats.values()) < count:
        await asyncio.sleep(0.005)


def finals(messages: list[Any], lang: str | None = None) -> list[tuple[str, str, str]]:
    return [
        (m.participant, m.utterance, m.lang)
        for m in messages
        if isinstance(m, TranslationFinal) and lang in (None, m.lang)
    ]


# ---------------------------------------------------------------- sharing


async def test_a_language_is_translated_once_however_many_read_it() -> None:
    async with running() as gateway, contextlib.AsyncExitStack() as stack:
        ana = await stack.enter_async_context(joined(gateway, speaks="en", name="Ana"))
        bo = await stack.enter_async_context(joined(gateway, speaks="de", name="Bo", reads=["en"]))
        readers = [
            await stack.enter_async_context(joined(gateway, codec, reads=["ja"]))
            for codec in (JSON, MSGPACK, JSON, MSGPACK)
        ]
        await ana.peer.send(say("1", "hello"))
        await bo.peer.send(say("1", "hallo"))
        for reader in readers:
            got = await reader.until(TranslationFinal, 2)
            assert {(m.speaker, m.text) for m in got} == {("Ana", "[ja] hello"), ("Bo", "[ja] hallo")}
            assert not [m for m in reader.received if isinstance(m, Caption)]
        assert (await bo.until(TranslationFinal))[0].text == "[en] hallo"
        assert {(c.speaker, c.text) for c in await bo.until(Caption, 2)} == {("Ana", "hello"), ("Bo", "hallo")}
        translations = [(e.speaker, e.lang) for e in await logged(gateway) if isinstance(e, Translated)]
        assert sorted(translations) == [("Ana", "ja"), ("Bo", "en"), ("Bo", "ja")]


async def test_a_language_starts_with_its_first_reader_and_stops_with_its_last() -> None:
    async with running() as gateway, joined(gateway, speaks="en") as ana:
        await ana.peer.send(say("1"))
        await ana.until(Caption)
        async with joined(gateway, reads=["ja"]), joined(gateway, reads=["ja"]) as second:
            await ana.peer.send(say("2"))
            await second.until(TranslationFinal, 2)
        await ana.until(ParticipantLeft, 2)
        await ana.peer.send(say("3"))
        await ana.until(Caption, 3)
        translated = [(e.utterance, e.lang) for e in await logged(gateway) if isinstance(e, Translated)]
        assert translated == [("1", "ja"), ("2", "ja")], "1 was made up for, 3 has nobody to read it"


async def test_meetings_do_not_hear_of_each_other() -> None:
    async with running() as gateway, contextlib.AsyncExitStack() as stack:
        ours = await stack.enter_async_context(joined(gateway, speaks="en", reads=["ja"]))
        other = await stack.enter_async_context(joined(gateway, meeting="other", reads=["ja", "en"]))
        private = await stack.enter_async_context(joined(gateway, meeting=None, reads=["ja", "en"]))
        await ours.peer.send(say("1"))
        await ours.until(TranslationFinal)
        assert await other.everything() == []
        assert await private.everything() == []
        assert private.started.meeting not in ("m", "other")


async def test_who_is_here_is_told_up_to_a_bound() -> None:
    settings = Settings(limits=Limits(participants_shown=2))
    async with running(settings) as gateway, joined(gateway, name="Ana") as ana:
        async with joined(gateway, name="Bo") as bo, joined(gateway, name="Cy") as third:
            assert [p.name for p in bo.started.participants] == ["Ana"]
            assert [p.name for p in third.started.participants] == ["Ana", "Bo"]
            await bo.peer.send(SessionUpdate(speaks="de"))
            await bo.until(SessionUpdated)
        await ana.until(ParticipantLeft)
        seen = [(type(m).__name__, m.name, m.speaks) for m in await ana.everything()]
        assert seen == [
            ("ParticipantJoined", "Bo", None),
            ("ParticipantUpdated", "Bo", "de"),
            ("ParticipantLeft", "Bo", "de"),
        ]


# ---------------------------------------------------------------- coming late


async def test_a_late_joiner_gets_the_newest_and_then_the_stream_without_a_seam() -> None:
    settings = Settings(snapshot_utterances=5, limits=Limits(utterances_in_flight=100, messages_burst=1_000))
    async with running(settings) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        for n in range(20):
            await ana.peer.send(say(str(n), f"text {n}"))
        await ana.until(TranslationFinal, 20)
        for n in range(20, 40):
            await ana.peer.send(say(str(n), f"text {n}"))
        await ana.until(UtteranceAccepted, 25)
        async with joined(gateway, reads=["ja", "en"]) as late:
            await ana.until(TranslationFinal, 40)
            got = await late.everything()
        offsets = [m.offset or 0 for m in got if isinstance(m, Caption | TranslationFinal)]
        assert offsets == sorted(set(offsets)), "in order, each once"
        assert offsets[0] == late.started.offset + 1
        assert offsets[-1] == 80
        captions = [int(m.utterance) for m in got if isinstance(m, Caption)]
        assert captions == list(range(captions[0], 40))
        assert captions[0] >= 20
        assert {u for _, u, _ in finals(got)} >= set(map(str, captions))


async def test_a_late_joiner_gets_what_is_being_said() -> None:
    async with running() as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "LONG text that goes on"), UtterancePartial("2", 1, "And then"))
        await ana.until(TranslationDelta, 5)
        await ana.until(Caption, 2)
        async with joined(gateway, reads=["ja", "en"]) as late:
            await late.until(TranslationDelta, 3)
            state = [m for m in late.received if not isinstance(m, ParticipantJoined)]
            assert [type(m) for m in state[:3]] == [Caption, Caption, TranslationDelta]
            assert (state[1].text, state[1].final) == ("And then", False)
            so_far = [m.committed for m in ana.received if isinstance(m, TranslationDelta)]
            assert "".join(so_far[:5]) in state[2].committed, "all of it, from its beginning"
            final = (await late.until(TranslationFinal))[0]
            deltas = "".join(m.committed for m in late.received if isinstance(m, TranslationDelta))
            assert final.text.startswith(deltas)


async def test_a_partial_that_became_final_is_no_longer_in_progress() -> None:
    async with running() as gateway, joined(gateway, speaks="en") as ana:
        await ana.peer.send(UtterancePartial("1", 1, "Good"), say("1", "Good morning", rev=2))
        await ana.until(Caption, 2)
        async with joined(gateway, reads=["en"]) as late:
            assert [(m.text, m.final) for m in await late.everything()] == [("Good morning", True)]


async def test_a_new_language_is_made_up_for_and_finals_come_first() -> None:
    script = Script(first_token_s=0.002, token_s=0.002, max_running=1)
    settings = Settings(snapshot_utterances=10, limits=Limits(messages_burst=1_000))
    async with running(settings, script=script) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        for n in range(12):
            await ana.peer.send(say(str(n)))
        await ana.until(TranslationFinal, 12)
        async with joined(gateway, reads=["de"]) as late:
            await ana.peer.send(say("now"))
            await late.until(TranslationFinal, 11)
            got = [u for _, u, _ in finals(late.received)]
            assert sorted(got) == sorted([*(str(n) for n in range(2, 12)), "now"])
            # One was running and up to two more were handed over before it was said.
            assert got.index("now") <= 3
            async with joined(gateway, reads=["de"]) as third:
                assert len(finals(await third.everything())) == 10
        done = Counter((e.utterance, e.lang) for e in await logged(gateway) if isinstance(e, Translated))
        assert set(done.values()) == {1}


# ---------------------------------------------------------------- changing languages


async def test_what_was_said_before_an_update_still_reaches_its_reader() -> None:
    async with running() as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "LONG first"))
        await ana.until(TranslationDelta)
        await ana.peer.send(SessionUpdate(reads=["de"]), say("2"))
        await ana.until(TranslationFinal, 2)
        assert {(u, lang) for _, u, lang in finals(await ana.everything())} == {("1", "ja"), ("2", "de")}


async def test_who_turns_to_a_language_gets_the_beginning_of_what_is_being_translated() -> None:
    async with running() as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana, joined(gateway) as bo:
        await ana.peer.send(say("1", "LONG text"))
        await ana.until(TranslationDelta, 3)
        await bo.peer.send(SessionUpdate(reads=["ja"]))
        final = (await bo.until(TranslationFinal))[0]
        deltas = "".join(m.committed for m in bo.received if isinstance(m, TranslationDelta))
        assert deltas.startswith("[ja]")
        assert final.text.startswith(deltas)


# ---------------------------------------------------------------- giving up


async def test_what_will_not_be_finished_goes_from_every_screen_and_out_of_the_engine() -> None:
    async with (
        running() as gateway,
        joined(gateway, speaks="en") as ana,
        joined(gateway, reads=["ja"]) as bo,
    ):
        await ana.peer.send(UtterancePartial("1", 1, "LONG one two three four five six"))
        while not gateway.gateway.scheduler.running:
            await asyncio.sleep(0.005)
        await ana.peer.send(UtteranceCancel("1"))
        for somebody in (ana, bo):
            assert await somebody.until(UtteranceCancelled) == [UtteranceCancelled(ana.started.participant, "1")]
        while gateway.gateway.scheduler.running:
            await asyncio.sleep(0.005)
        async with joined(gateway, reads=["ja", "en"]) as late:
            assert [m for m in await late.everything() if isinstance(m, Caption | TranslationDelta)] == []
        # The id is free again.
        await ana.peer.send(UtterancePartial("1", 1, "two"), say("1", "two three", rev=2))
        assert [final.text for final in await bo.until(TranslationFinal)] == ["[ja] two three"]
        await ana.peer.send(UtteranceCancel("1"))
        [error] = await ana.until(Error)
        assert error.code == "unknown_utterance"


# ---------------------------------------------------------------- captions of every language


def said(messages: list[Any]) -> list[tuple[str, str, bool]]:
    return [(m.utterance, m.text, m.final) for m in messages if isinstance(m, Caption)]


@swiftly
async def test_while_the_event_loop_is_late_only_finals_are_translated() -> None:
    async with (
        running() as gateway,
        joined(gateway, speaks="en") as ana,
        joined(gateway, reads=["ja"]) as bo,
    ):
        gateway.gateway._lag.late(1.0)  # somebody's long computation
        await ana.peer.send(UtterancePartial("1", 1, "I was going to"), say("2", "SLOW going"))
        await bo.until(TranslationFinal)
        assert {m.utterance for m in await bo.everything() if isinstance(m, TranslationDelta)} == {"2"}


async def test_who_asks_for_originals_gets_captions_of_languages_it_does_not_read() -> None:
    async with (
        running() as gateway,
        joined(gateway, speaks="en", name="Ana") as ana,
        joined(gateway, reads=["ja"], originals=True) as bo,
        joined(gateway, reads=["ja"]) as cy,
    ):
        await ana.peer.send(UtterancePartial("1", 1, "good"), say("1", rev=2))
        for reader in (bo, cy):
            await reader.until(TranslationFinal)
        assert said(await bo.everything()) == [("1", "good", False), ("1", "good morning", True)]
        assert said(await cy.everything()) == []
        assert [e.languages for e in await logged(gateway) if isinstance(e, Said)] == [("ja",)]
        async with joined(gateway, reads=["ja"], originals=True) as late:
            assert said(await late.everything()) == [("1", "good morning", True)]


async def test_originals_can_be_asked_for_and_declined_in_the_middle_of_an_utterance() -> None:
    async with running() as gateway, joined(gateway, speaks="en") as ana, joined(gateway) as bo:
        await ana.peer.send(UtterancePartial("1", 1, "one"))
        await ana.until(Caption)
        await bo.peer.send(SessionUpdate(originals=True))
        await bo.until(Caption)
        await bo.peer.send(SessionUpdate(stability="final"))
        assert [m.originals for m in await bo.until(SessionUpdated, 2)] == [True, True]
        await ana.peer.send(UtterancePartial("1", 2, "one two"))
        await bo.until(Caption, 2)
        await bo.peer.send(SessionUpdate(originals=False))
        await bo.until(SessionUpdated, 3)
        await ana.peer.send(say("1", "one two three", rev=3))
        await ana.until(UtteranceAccepted)
        assert said(await bo.everything()) == [("1", "one", False), ("1", "one two", False)]


async def test_originals_are_replayed_and_asked_for_again_with_the_connection() -> None:
    async with running() as gateway, joined(gateway, speaks="en") as ana:
        async with joined(gateway, originals=True) as bo:
            bo.lose()
        await away(gateway)
        await ana.peer.send(say("1"))
        await ana.until(UtteranceAccepted)
        async with joined(gateway, originals=True, resume=bo.resume()) as again:
            assert said(await again.everything()) == [("1", "good morning", True)]
            await ana.peer.send(say("2"))
            await again.until(Caption, 2)
            again.lose()
        await away(gateway)
        async with joined(gateway, resume=again.resume()) as without:
            await ana.peer.send(say("3"))
            await ana.until(UtteranceAccepted, 2)
            assert said(await without.everything()) == []


# ---------------------------------------------------------------- lost connections


async def test_resuming_gives_what_was_missed_once_in_order_and_then_live() -> None:
    async with running() as gateway, joined(gateway, speaks="en") as ana:
        async with joined(gateway, reads=["ja", "en"]) as bo:
            await ana.peer.send(say("1"), say("2", "LONG second"))
            await bo.until(TranslationDelta, 6)
            bo.lose()
        await away(gateway)
        assert not [m for m in await ana.everything() if isinstance(m, ParticipantLeft)], "kept, not gone"
        await ana.peer.send(*(say(str(n)) for n in range(3, 9)))
        await ana.until(UtteranceAccepted, 8)
        async with joined(gateway, reads=["ja", "en"], resume=bo.resume()) as again:
            assert again.started.recovered is True
            assert again.started.session == bo.started.session
            assert again.started.participant == bo.started.participant
            await ana.peer.send(say("9"))
            while len(finals([*bo.received, *again.received])) < 9:
                await again.receive()
            both = [*bo.received, *again.received]
        offsets = [m.offset for m in both if isinstance(m, Caption | TranslationFinal)]
        assert offsets == list(range(1, 19))
        assert sorted(u for _, u, _ in finals(both)) == [str(n) for n in range(1, 10)]


async def test_a_speaker_who_is_away_is_translated_and_may_send_again_what_was_not_accepted() -> None:
    async with running() as gateway, joined(gateway, reads=["ja"]) as reader:
        async with joined(gateway, speaks="en", name="Ana") as ana:
            await ana.peer.send(say("1", "SLOW text"))
            await ana.until(UtteranceAccepted)
            ana.lose()
        await reader.until(TranslationFinal)
        async with joined(gateway, speaks="en", name="Ana", resume=ana.resume()) as again:
            await again.peer.send(say("1", "SLOW text"), say("2"))
            accepted = await again.until(UtteranceAccepted, 2)
            assert [m.id for m in accepted] == ["1", "2"]
            await reader.until(TranslationFinal, 2)
        said = [e.utterance.id for e in await logged(gateway) if isinstance(e, Said)]
        assert said == ["1", "2"]
        assert len([e for e in await logged(gateway) if isinstance(e, Translated)]) == 2


async def test_an_acknowledgement_that_was_lost_comes_with_the_replay() -> None:
    async with running() as gateway:
        async with joined(gateway, speaks="en") as ana:
            await ana.peer.send(say("1"))
            await ana.until(UtteranceAccepted)
            ana.lose()
        missed = Resume(ana.started.session, ana.started.epoch, 0)
        async with joined(gateway, speaks="en", resume=missed) as again:
            assert [m.id for m in await again.until(UtteranceAccepted)] == ["1"]


async def test_a_session_goes_on_with_its_newest_connection() -> None:
    async with (
        running() as gateway,
        joined(gateway, reads=["ja"]) as first,
        joined(gateway, reads=["ja"], resume=first.resume()) as second,
    ):
        assert await first.closed() == 4510
        assert first.received[-1].code == "session_replaced"
        await second.peer.send(SessionUpdate(speaks="en"), say("1"))
        await second.until(TranslationFinal)
        assert gateway.gateway.registry.sessions == 1


@pytest.mark.parametrize("what", ["session", "epoch", "ahead", "trimmed"])
async def test_what_cannot_be_resumed_is_begun_anew_with_the_newest(what: str) -> None:
    settings = Settings(
        snapshot_utterances=3,
        event_log=EventLogSettings(max_publications=100),
        limits=Limits(utterances_in_flight=100, messages_burst=1_000),
    )
    async with running(settings) as gateway, joined(gateway, speaks="en") as ana:
        async with joined(gateway, reads=["ja"]) as bo:
            bo.lose()
        await away(gateway)
        for n in range(60):
            await ana.peer.send(say(str(n)))
        while (await gateway.gateway.log.read("m", 0, 1)).last < 120:
            await asyncio.sleep(0.005)
        resume = bo.resume()
        match what:
            case "session":
                resume = Resume("nobody's", resume.epoch, 110)
            case "epoch":
                resume = Resume(resume.session, "other", 110)
            case "ahead":
                resume = Resume(resume.session, resume.epoch, 1_000)
        async with joined(gateway, reads=["ja"], resume=resume) as again:
            assert again.started.recovered is False
            got = await again.everything()
            assert {u for _, u, _ in finals(got)} == {"57", "58", "59"}
            assert (again.started.session == bo.started.session) == (what != "session")


async def test_a_session_belongs_to_one_meeting() -> None:
    async with running() as gateway, joined(gateway, reads=["ja"]) as bo, gateway.peer() as peer:
        await peer.send(SessionStart(reads=["ja"], meeting="other", resume=bo.resume()))
        error = await peer.receive()
        assert isinstance(error, Error)
        assert (error.code, error.field) == ("invalid_value", "resume.session")
        await peer.send(SessionStart(reads=["ja"], resume=bo.resume()))
        started = await peer.receive()
        assert isinstance(started, SessionStarted)
        assert (started.meeting, started.recovered) == ("m", True)


@swiftly
async def test_a_session_is_kept_for_as_long_as_said_and_then_gone() -> None:
    settings = Settings(limits=Limits(keep_s=1))
    async with running(settings) as gateway, joined(gateway, speaks="en") as ana:
        async with joined(gateway, reads=["ja"], name="Bo") as bo:
            bo.lose()
        assert (await ana.until(ParticipantLeft))[0].name == "Bo"
        async with joined(gateway, reads=["ja"], resume=bo.resume()) as again:
            assert again.started.recovered is False
            assert again.started.session != bo.started.session


@pytest.mark.parametrize("how", ["end", "close"])
async def test_who_says_goodbye_is_gone_at_once(how: str) -> None:
    async with running() as gateway, joined(gateway) as ana:
        async with joined(gateway, reads=["ja"]) as bo:
            if how == "end":
                await bo.peer.send(SessionEnd())
        await ana.until(ParticipantLeft)
        assert gateway.gateway.registry.sessions == 1


async def test_kept_sessions_make_room_for_newcomers() -> None:
    async with running(Settings(max_sessions=2)) as gateway, joined(gateway) as ana:
        async with joined(gateway, name="Bo") as bo:
            bo.lose()
        await away(gateway)
        async with joined(gateway, name="Cy"):
            assert [m.name for m in await ana.until(ParticipantLeft)] == ["Bo"]
            assert gateway.gateway.registry.sessions == 2


async def test_an_empty_meeting_is_let_go_of_and_its_log_stays() -> None:
    async with running() as gateway:
        async with joined(gateway, speaks="en", reads=["ja"]) as ana:
            await ana.peer.send(say("1"))
            await ana.until(TranslationFinal)
        while gateway.gateway.registry.meetings:
            await asyncio.sleep(0.01)
        async with joined(gateway, reads=["ja"]) as late:
            assert late.started.epoch == ana.started.epoch
            assert [m.text for m in await late.until(TranslationFinal)] == ["[ja] good morning"]


# ---------------------------------------------------------------- idle and slow connections


@swiftly
async def test_a_connection_on_which_nothing_is_said_is_closed_and_its_session_kept() -> None:
    settings = Settings(limits=Limits(idle_s=1))
    async with running(settings) as gateway, joined(gateway, reads=["ja"]) as bo:
        assert await bo.closed() == 4010
        assert bo.received[-1].code == "session_idle"
        async with joined(gateway, reads=["ja"], resume=bo.resume()) as again:
            assert again.started.recovered is True


@swiftly
async def test_a_peer_that_answers_no_ping_is_found_and_its_session_kept() -> None:
    settings = Settings(ping_interval_s=0.1, ping_timeout_s=0.1)
    async with running(settings) as gateway, joined(gateway, reads=["ja"]) as bo:
        bo.peer.connection.transport.pause_reading()
        await away(gateway)
        async with joined(gateway, reads=["ja"], resume=bo.resume()) as again:
            assert again.started.recovered is True


async def test_a_reader_past_its_bound_resumes_and_gets_everything() -> None:
    script = Script(first_token_s=0.0, token_s=0.0)
    # Long enough to fill the sockets' buffers soon; whatever these hold, the log keeps all of it.
    text = f"{'w' * 999} " * 20
    limits = Limits(messages_burst=100_000, text_chars=len(text))
    settings = Settings(limits=limits, outbox_bytes=200_000, event_log=EventLogSettings(max_bytes=2**40))
    async with running(settings, script=script) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        async with joined(gateway, reads=["ja"]) as slow:
            slow.peer.connection.transport.pause_reading()
            feed = gateway.gateway.registry._seats[slow.started.session].member.feed
            assert feed is not None
            count = 0
            while not feed.outbox.overflowed:
                count += 1
                await ana.peer.send(say(str(count), text))
                await ana.until(TranslationFinal, count)
            slow.lose()
        await away(gateway)
        async with joined(gateway, reads=["ja"], resume=slow.resume()) as again:
            assert again.started.recovered is True
            await again.until(TranslationFinal, count)
            offsets = [m.offset for m in again.received if isinstance(m, TranslationFinal)]
            assert offsets == sorted(set(offsets))
            assert len(await again.until(TranslationFinal)) == count


# ---------------------------------------------------------------- fairness


async def test_one_meetings_flood_delays_anothers_final_by_one_turn() -> None:
    script = Script(first_token_s=0.01, token_s=0.01, max_running=4)
    limits = Limits(utterances_in_flight=1_000, messages_burst=10_000)
    settings = Settings(limits=limits)
    async with (
        running(settings, script=script) as gateway,
        joined(gateway, meeting="flood", speaks="en", reads=["ja"]) as flood,
        joined(gateway, meeting="quiet", speaks="en", reads=["ja"]) as quiet,
    ):
        await flood.peer.send(*(say(str(n)) for n in range(500)))
        await flood.until(UtteranceAccepted, 500)
        await quiet.peer.send(say("one"))
        await quiet.until(UtteranceAccepted)
        ended = [e for e in await logged(gateway, "flood") if isinstance(e, Translated)]
        await quiet.until(TranslationFinal)
        after = [e for e in await logged(gateway, "flood") if isinstance(e, Translated)]
        # What was handed to the engine before goes on (4 run, 2 wait there); the next turn is the other meeting's.
        assert len(after) - len(ended) <= 2 * (4 + 2)
        assert len(after) < 500, "the flood is not over"
        await flood.until(TranslationFinal, 500)


async def test_a_deadline_ends_what_takes_too_long() -> None:
    async with (
        running(Settings(utterance_deadline_s=1)) as gateway,
        joined(gateway, speaks="en", reads=["ja"]) as ana,
    ):
        await ana.peer.send(say("1", "STALL"))
        failed = (await ana.until(TranslationFailed))[0]
        assert (failed.utterance, failed.code) == ("1", "deadline_exceeded")
        await ana.peer.send(say("2"))
        assert (await ana.until(TranslationFinal))[0].utterance == "2"


# ---------------------------------------------------------------- engine crashes


async def test_everything_accepted_survives_engine_crashes_and_is_logged_once() -> None:
    script = Script(first_token_s=0.005, token_s=0.005, max_running=4)
    limits = Limits(utterances_in_flight=100, messages_burst=1_000)
    async with (
        running(Settings(limits=limits), script=script) as gateway,
        joined(gateway, speaks="en", reads=["ja"]) as ana,
    ):
        await ana.peer.send(*(say(str(n), f"text number {n} of many") for n in range(50)))
        for goal in (1, 10, 25):
            await ana.until(TranslationFinal, goal)
            gateway.kill_engine()
            while len(gateway.engines) < 2:
                await ana.receive()
        await ana.until(TranslationFinal, 50)
        got = await ana.everything()
        assert [m.code for m in got if isinstance(m, Error)].count("engine_restarting") >= 1
        assert Counter(u for _, u, _ in finals(got)) == Counter(str(n) for n in range(50))
        events = await logged(gateway)
        assert not [e for e in events if isinstance(e, Untranslated)]
        assert len([e for e in events if isinstance(e, Translated)]) == 50
        for n in range(50):
            deltas = "".join(m.committed for m in got if isinstance(m, TranslationDelta) and m.utterance == str(n))
            assert f"[ja] text number {n} of many".startswith(deltas), "shown text is not taken back"


async def test_a_failed_translation_can_be_asked_for_again() -> None:
    script = Script(first_token_s=0.001, token_s=0.05, rules=(Rule("STALL", stall_after=0),))
    settings = Settings(utterance_deadline_s=1)
    async with running(settings, script=script) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "STALL"))
        await ana.until(TranslationFailed)
        await ana.peer.send(say("1", "STALL"))
        assert [m.id for m in await ana.until(UtteranceAccepted, 1)] == ["1"]
        await ana.until(TranslationFailed, 2)
        assert len([e for e in await logged(gateway) if isinstance(e, Said)]) == 1


# ---------------------------------------------------------------- restarts


@swiftly
async def test_a_restarted_gateway_goes_on_where_it_was(tmp_path: Any) -> None:
    settings = Settings(drain_s=0.1, event_log=EventLogSettings(handover_file=str(tmp_path / "handover")))
    async with running(settings) as gateway, joined(gateway, speaks="en", name="Ana") as ana:
        port = gateway.port
        async with joined(gateway, reads=["ja"], name="Bo") as bo:
            await ana.peer.send(say("1"))
            await bo.until(TranslationFinal)
            bo.lose()
        await away(gateway)
        # One is done while its reader is away, one is not done when the drain's deadline passes.
        await ana.peer.send(say("2"), say("3", "STALL for now"))
        await ana.until(UtteranceAccepted, 3)
        while len([e for e in await logged(gateway) if isinstance(e, Translated)]) < 2:
            await asyncio.sleep(0.005)
        await gateway.gateway.drain()
    assert (tmp_path / "handover").stat().st_mode & 0o077 == 0
    async with running(settings, script=Script(token_s=0.001), port=port) as gateway:
        assert not (tmp_path / "handover").exists()
        async with joined(gateway, reads=["ja"], name="Bo", resume=bo.resume()) as again:
            assert again.started.recovered is True
            assert again.started.participant == bo.started.participant
            assert [m.utterance for m in await again.until(TranslationFinal, 2)] == ["2", "3"]
            async with joined(gateway, speaks="en", name="Ana", resume=ana.resume()) as back:
                assert back.started.recovered is True
                await back.peer.send(say("3", "STALL for now"), say("4"))
                await again.until(TranslationFinal, 3)
                assert [m.id for m in await back.until(UtteranceAccepted, 2)] == ["3", "4"]
        events = await logged(gateway)
        assert [e.utterance.id for e in events if isinstance(e, Said)] == ["1", "2", "3", "4"]
        assert len([e for e in events if isinstance(e, Translated)]) == 4
        assert not [e for e in events if isinstance(e, Untranslated)]


async def test_without_a_handover_file_a_restart_begins_anew_and_says_so() -> None:
    async with running() as gateway, joined(gateway, reads=["ja"]) as bo:
        pass
    async with running() as gateway, joined(gateway, reads=["ja"], resume=bo.resume()) as again:
        assert again.started.recovered is False
        assert again.started.epoch != bo.started.epoch


def restarted(tmp_path: Path, **fields: Any) -> Settings:
    return Settings(event_log=EventLogSettings(handover_file=str(tmp_path / "handover")), **fields)


async def test_a_start_that_fails_leaves_the_handover_file(tmp_path: Path) -> None:
    settings = restarted(tmp_path)
    async with running(settings) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1"))
        await ana.until(TranslationFinal)
        await gateway.gateway.drain()
    async with running(settings, script=Script(load_s=3_600)) as gateway:
        assert (tmp_path / "handover").exists(), "until it is of no use any more"
    async with running(settings) as gateway:
        assert not (tmp_path / "handover").exists()
        async with joined(gateway, speaks="en", reads=["ja"], resume=ana.resume()) as again:
            assert again.started.recovered is True


async def test_the_next_process_does_all_that_was_promised_and_nothing_else(tmp_path: Path) -> None:
    limits = Limits(utterances_in_flight=500, messages_burst=1_000)
    settings = restarted(tmp_path, drain_s=0.01, limits=limits)
    slow = Script(token_s=3_600)
    async with running(settings, script=slow) as gateway, joined(gateway, speaks="en") as ana:
        await ana.peer.send(say("before"))
        await ana.until(UtteranceAccepted)
        async with joined(gateway, reads=["ja"]) as bo:
            await ana.peer.send(*(say(str(n)) for n in range(300)), SessionEnd())
            await ana.until(UtteranceAccepted, 301)
            await bo.peer.send(SessionUpdate(reads=["de"]))
            await bo.until(SessionUpdated)
            await gateway.gateway.drain()
            assert await ana.closed() == 1012, "it ended its session, which is not done"
    async with running(settings) as gateway:
        async with joined(gateway, reads=["de"], resume=bo.resume()) as again:
            await again.until(TranslationFinal, 300)
            assert {(u, lang) for _, u, lang in finals(again.received)} == {(str(n), "ja") for n in range(300)}
        async with joined(gateway, speaks="en", resume=ana.resume()) as back:
            await back.peer.send(*(say(str(n)) for n in range(300)))
            await back.until(UtteranceAccepted, 300)
        assert len([e for e in await logged(gateway) if isinstance(e, Said)]) == 301


@swiftly
async def test_sessions_wait_for_an_engine_that_loads_longer_than_they_are_kept(tmp_path: Path) -> None:
    settings = restarted(tmp_path, limits=Limits(keep_s=1))
    async with running(settings) as gateway, joined(gateway, reads=["ja"]) as bo:
        await gateway.gateway.drain()
    async with running(settings, script=Script(load_s=2.5)) as gateway, gateway.peer() as peer:
        start = SessionStart(reads=["ja"], resume=bo.resume())
        while True:
            await peer.send(start)
            if isinstance(answer := await peer.receive(), SessionStarted):
                break
            await asyncio.sleep(0.1)
        assert answer.recovered is True


async def test_a_failure_is_remembered_across_a_restart(tmp_path: Path) -> None:
    settings = restarted(tmp_path)
    async with running(settings) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "FAIL once"))
        await ana.until(TranslationFailed)
        await gateway.gateway.drain()
    async with (
        running(settings, script=Script()) as gateway,
        joined(gateway, speaks="en", reads=["ja"], resume=ana.resume()) as again,
    ):
        await again.peer.send(say("1", "FAIL once"))
        assert (await again.until(TranslationFinal))[0].text == "[ja] FAIL once"


@swiftly
async def test_a_second_signal_does_not_lose_the_handover(tmp_path: Path) -> None:
    settings = restarted(tmp_path)
    async with running(settings) as gateway, joined(gateway, reads=["ja"]) as bo:
        bo.peer.connection.transport.pause_reading()
        draining = asyncio.create_task(gateway.gateway.drain())
        while not gateway.gateway.scheduler.draining:
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        draining.cancel()
        await asyncio.wait([draining])
        assert (tmp_path / "handover").exists()


# ---------------------------------------------------------------- what a review found


async def test_a_resent_final_and_a_late_joiner_do_not_translate_twice() -> None:
    """Both want the same language of the same utterance at the same time."""
    script = Script(
        first_token_s=0.001, token_s=0.001, max_running=1, rules=(Rule("HOLD", token_s=0.05), Rule("FAIL", 1))
    )
    async with running(script=script) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "one two"))
        await ana.until(TranslationFinal)
        await ana.peer.send(say("2", "STAYS a while"), UtteranceCancel("2"))
        await ana.until(TranslationFailed)
        await ana.peer.send(*(say(f"busy{n}", "HOLD this for a moment") for n in range(4)))
        await ana.until(UtteranceAccepted, 6)
        async with joined(gateway, reads=["fr"]) as late:
            await ana.peer.send(say("2", "STAYS a while"))
            assert [m.id for m in await ana.until(UtteranceAccepted, 7)][-1] == "2", "told once more"
            await late.until(TranslationFinal, 6)
            await ana.until(TranslationFinal, 6)
        done = Counter((e.utterance, e.lang) for e in await logged(gateway) if isinstance(e, Translated))
        assert set(done.values()) == {1}
        assert len([e for e in await logged(gateway) if isinstance(e, Said)]) == 6
        await ana.peer.send(say("3"))
        await ana.until(TranslationFinal, 7)


@swiftly
async def test_newcomers_come_to_a_meeting_whose_log_was_trimmed() -> None:
    settings = Settings(event_log=EventLogSettings(keep_s=1))
    async with running(settings) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(*(say(str(n)) for n in range(5)))
        await ana.until(TranslationFinal, 5)
        while (await gateway.gateway.log.read("m", 0)).publications:
            await asyncio.sleep(0.05)
        async with joined(gateway, reads=["ja"]) as late:
            assert late.started.offset == 10
            assert await late.everything() == []
            await ana.peer.send(say("5"))
            await late.until(TranslationFinal)
        resume = Resume(ana.started.session, ana.started.epoch, 0)
        async with joined(gateway, speaks="en", reads=["ja"], resume=resume) as again:
            assert again.started.recovered is False
            await again.everything()


async def test_an_engine_that_comes_back_is_not_asked_for_what_nobody_was_promised() -> None:
    async with running() as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(*(say(str(n)) for n in range(30)))
        await ana.until(TranslationFinal, 30)
        await ana.peer.send(SessionUpdate(reads=["de"]))
        await ana.until(SessionUpdated)
        gateway.kill_engine()
        await ana.until(Error)
        await ana.peer.send(say("now"))
        await ana.until(TranslationFinal, 31)
        assert finals(ana.received)[-1][1:] == ("now", "de")
        assert [e.utterance for e in await logged(gateway) if isinstance(e, Translated) and e.lang == "de"] == [
            "now"
        ]


async def test_an_acknowledgement_during_the_replay_does_not_run_ahead_of_it() -> None:
    limits = Limits(utterances_in_flight=1_000, messages_burst=10_000)
    settings = Settings(limits=limits, outbox_bytes=200_000)
    async with running(settings) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(*(say(str(n), "x" * 1_500) for n in range(100)))
        await ana.until(TranslationFinal, 100)
        resume = Resume(ana.started.session, ana.started.epoch, 0)
        async with joined(gateway, speaks="en", reads=["ja"], resume=resume) as again:
            await again.peer.send(say("0", "x" * 1_500))
            await again.until(TranslationFinal, 100)
            received = await again.everything()
        for index, message in enumerate(received):
            if isinstance(message, UtteranceAccepted):
                passed = [m.offset or 0 for m in received[:index] if isinstance(m, Caption | TranslationFinal)]
                assert message.offset <= max(passed, default=0) + 1
        assert len([m for m in received if isinstance(m, UtteranceAccepted)]) == 101


async def test_a_replaced_connection_has_no_say_any_more() -> None:
    async with running() as gateway, joined(gateway, reads=["ja"]) as first:
        first.peer.connection.transport.pause_reading()
        async with joined(gateway, reads=["de"], resume=first.resume()) as second:
            with contextlib.suppress(ConnectionClosed):
                await first.peer.send(SessionUpdate(reads=["fr"]))
            await second.everything()
            assert gateway.gateway.registry._seats[second.started.session].member.reads == ("de",)


async def test_a_language_given_up_and_taken_again_is_not_shown_twice() -> None:
    async with running() as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "LONG text"))
        await ana.until(TranslationDelta, 3)
        await ana.peer.send(SessionUpdate(reads=["de"]), SessionUpdate(reads=["ja"]))
        final = (await ana.until(TranslationFinal))[0]
        assert final.text.startswith(
            "".join(m.committed for m in ana.received if isinstance(m, TranslationDelta) and m.lang == "ja")
        )


async def test_a_newcomer_is_shown_nothing_where_the_operator_wants_that() -> None:
    async with running(Settings(snapshot_utterances=0)) as gateway, joined(gateway, speaks="en") as ana:
        await ana.peer.send(say("1"), say("2"))
        await ana.until(Caption, 2)
        async with joined(gateway, reads=["en", "de"]) as late:
            assert await late.everything() == []


async def test_a_new_start_of_a_session_owes_it_nothing_in_its_earlier_languages() -> None:
    async with running() as gateway, joined(gateway, speaks="en", name="Ana") as ana:
        async with joined(gateway, reads=["de"]) as bo:
            await ana.peer.send(say("1"))
            await bo.until(TranslationFinal)
            bo.lose()
        await away(gateway)
        await ana.peer.send(say("2"))
        await ana.until(UtteranceAccepted, 2)
        resume = Resume(bo.started.session, "another epoch", 1)
        async with joined(gateway, reads=["fr"], resume=resume) as again:
            assert again.started.recovered is False
            await again.until(TranslationFinal, 2)
            assert {lang for _, _, lang in finals(await again.everything())} == {"fr"}


async def test_a_session_is_resumed_at_a_full_gateway() -> None:
    async with running(Settings(max_sessions=1)) as gateway, joined(gateway, reads=["ja"]) as first:
        async with joined(gateway, reads=["ja"], resume=first.resume()) as again:
            assert again.started.recovered is True
        async with gateway.peer() as newcomer:
            await newcomer.send(SessionStart(reads=["ja"]))
            assert isinstance(answer := await newcomer.receive(), SessionStarted | Error)
            assert isinstance(answer, SessionStarted), "who left made room"


async def test_no_session_begins_while_the_gateway_drains() -> None:
    async with running() as gateway, gateway.peer() as early, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(say("1", "STALL"))
        await ana.until(Caption)
        draining = asyncio.create_task(gateway.gateway.drain())
        assert (await early.until(SessionDraining))[-1].deadline_ms == 30_000
        await early.send(SessionStart(reads=["ja"]))
        assert (await early.receive()).code == "draining"  # type: ignore[union-attr]
        await ana.peer.send(UtteranceCancel("1"))
        await draining


async def test_what_somebody_was_about_to_say_is_forgotten_when_they_are_away() -> None:
    async with running() as gateway:
        async with joined(gateway, speaks="en") as ana:
            await ana.peer.send(UtterancePartial("1", 1, "I was going to"))
            await ana.until(Caption)
            ana.lose()
        await away(gateway)
        async with joined(gateway, reads=["en"]) as late:
            assert await late.everything() == []


async def test_a_meeting_reads_so_many_languages_and_no_more() -> None:
    settings = Settings(limits=Limits(meeting_languages=2))
    async with running(settings) as gateway, joined(gateway, reads=["ja", "de"]) as ana, gateway.peer() as peer:
        await peer.send(SessionStart(reads=["fr"], meeting="m"))
        error = await peer.receive()
        assert isinstance(error, Error)
        assert (error.code, error.field) == ("limit_exceeded", "reads")
        await peer.send(SessionStart(reads=["ja"], meeting="m"))
        assert isinstance(await peer.receive(), SessionStarted)
        await peer.send(SessionUpdate(reads=["fr"]), SessionUpdate(reads=["de"]))
        answers = await peer.until(SessionUpdated)
        assert [m.code for m in answers if isinstance(m, Error)] == ["limit_exceeded"]
        assert answers[-1] == SessionUpdated(["de"], None, "live")
        await ana.peer.send(SessionUpdate(reads=["fr", "de"]))
        await ana.until(SessionUpdated)


def test_the_script_has_what_is_used_here() -> None:
    assert {rule.match for rule in SCRIPT.rules} >= {"LONG", "SLOW", "STALL"}

"""Sessions over real sockets: begun, resumed, kept, ended, and gone on with by the next process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.config import EventLogSettings, Settings
from gateway.domain.log import Said, Translated, Untranslated
from gateway.engines.simulated import Script
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Error,
    ParticipantLeft,
    Resume,
    SessionEnd,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    SessionUpdated,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtterancePartial,
)
from tests.gateways import running
from tests.meetings import away, finals, joined, logged, say

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


# ---------------------------------------------------------------- restarts


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


# ---------------------------------------------------------------- limits, and what is forgotten


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

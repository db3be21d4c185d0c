"""Sessions: begun, resumed, kept, ended, and gone on with by the next process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from gateway.config import EventLogSettings, Settings
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import GatewayError, LogUnavailable, MeetingLocked, RateLimited, TooManySessions
from gateway.domain.log import Page, Said, Translated, Untranslated
from gateway.domain.sessions import Handover
from gateway.engines.simulated import Script
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Error,
    ParticipantLeft,
    Pong,
    Resume,
    SessionEnd,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    SessionUpdated,
    TranslationDelta,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.sessions.machine import Accept, Acknowledge, Update
from gateway.stores.memory_session_store import MemorySessionStore
from loadtest.systems.server import free_port
from tests.clocks import swiftly
from tests.gateways import running
from tests.meetings import away, finals, joined, logged, say
from tests.sessions.desk import Desk, desk, resume_of
from tests.sessions.talk import only
from tests.translation.stage import Log, idle, said, until

# ---------------------------------------------------------------- kept, and for how long


async def test_away_session_is_kept_by_the_clock() -> None:
    async with desk(Limits(keep_s=60)) as d:
        entry, _ = await d.join(reads=["ja"])
        await idle()  # what a newcomer catches up on has been looked for
        d.sessions.local.away(entry.session, entry.feed)
        d.now_s = 59.9
        await d.sessions.sweep()
        assert (len(d.sessions.local.all), len(d.sessions.rooms)) == (1, 1)
        d.now_s = 60.0
        await d.sessions.sweep()
        assert (len(d.sessions.local.all), len(d.sessions.rooms)) == (0, 0)


async def test_a_session_that_is_connected_is_kept_however_long() -> None:
    async with desk(Limits(keep_s=60)) as d:
        entry, _ = await d.join()
        d.sessions.local.away(entry.session, entry.feed)
        d.now_s = 59.0
        await d.join(resume=resume_of(entry))
        d.now_s = 1e6
        await d.sessions.sweep()
        assert len(d.sessions.local.all) == 1


async def test_newcomer_ends_the_longest_away_session() -> None:
    async with desk(max_sessions=3) as d:
        for name in ("Ana", "Bo", "Cy"):
            entry, _ = await d.join(name=name)
            d.now_s += 1
            if name != "Ana":
                d.sessions.local.away(entry.session, entry.feed)
        await d.join(name="Di")
        assert {session.name for session in d.sessions.kept_sessions()} == {"Ana", "Cy", "Di"}
        await d.join(name="Ed")
        with pytest.raises(TooManySessions):
            await d.join(name="Fi")
        assert {session.name for session in d.sessions.kept_sessions()} == {"Ana", "Di", "Ed"}


async def test_one_account_may_join_again_after_a_while() -> None:
    async with desk(joins=3) as d:
        entries = [await d.join("crowd") for _ in range(3)]
        with pytest.raises(RateLimited) as limited:
            await d.join("crowd")
        with pytest.raises(RateLimited):
            await d.join("crowd", resume=resume_of(entries[0][0]))
        await d.join("somebody")
        assert limited.value.retry_after_ms == 20_000
        d.now_s += 20
        await d.join("crowd")


async def test_a_handover_tells_who_is_charged() -> None:
    async with desk() as d, desk() as successor:
        entry, _ = await d.join("crowd")
        d.sessions.local.away(entry.session, entry.feed)
        await successor.sessions.restore(Handover(sessions=d.sessions.kept_sessions()))
        [kept] = successor.sessions.kept_sessions()
        assert kept.account == "crowd"
        await successor.join("elsewhere", resume=resume_of(entry))
        [kept] = successor.sessions.kept_sessions()
        assert kept.account == "elsewhere"


async def test_losing_an_earlier_connection_spares_the_newer() -> None:
    async with desk() as d:
        entry, earlier = await d.join()
        again, newer = await d.join(resume=resume_of(entry))
        assert again.session is entry.session
        assert (earlier.closed, newer.closed) == ([CloseCode.REPLACED], [])
        d.sessions.local.away(entry.session, entry.feed)
        assert entry.session.connected
        d.sessions.local.away(entry.session, again.feed)
        assert not entry.session.connected


async def test_session_ending_while_resumed_is_begun_again() -> None:
    async with desk() as d:
        entry, _ = await d.join()
        d.sessions.local.away(entry.session, entry.feed)
        read = d.core.log.read

        async def ended_meanwhile(*args: Any) -> Page:
            d.sessions.local.end(entry.session)
            return await read(*args)

        d.core.log.read = ended_meanwhile  # type: ignore[method-assign, assignment]
        again, _ = await d.join(resume=resume_of(entry))
        assert again.session is not entry.session
        assert again.recovered is False
        assert len(d.sessions.local.all) == 1


async def test_a_join_that_fails_leaves_nothing_behind() -> None:
    async with desk() as d:

        async def refuse(*_: Any) -> Page:
            raise LogUnavailable("The test says so.")

        read, d.core.log.read = d.core.log.read, refuse  # type: ignore[method-assign, assignment]
        with pytest.raises(LogUnavailable):
            await d.join()
        d.core.log.read = read  # type: ignore[method-assign]
        await d.sessions.sweep()
        assert (len(d.sessions.local.all), len(d.sessions.rooms)) == (0, 0)
        await d.join()


async def test_meeting_being_entered_is_kept() -> None:
    async with desk() as d:
        read, go_on = d.core.log.read, asyncio.Event()

        async def slow(*args: Any) -> Page:
            await go_on.wait()
            return await read(*args)

        d.core.log.read = slow  # type: ignore[method-assign, assignment]
        joining = asyncio.create_task(d.join())
        await until(lambda: len(d.sessions.rooms))
        await d.sessions.sweep()
        assert len(d.sessions.rooms) == 1
        go_on.set()
        entry, _ = await joining
        await d.core.finals.accept(entry.session.room, said("One.", 1, "u", "ana", final=True))
        assert entry.session.room.offset == 1, "its room hears of what is said"


# ---------------------------------------------------------------- finals of a session


async def test_accepted_final_survives_its_cancelled_caller() -> None:
    async with desk() as d:
        entry, ana = await d.join(speaks="en", reads=["de"])
        accept = only(Accept, ana.send(UtteranceFinal("u", 1, "One.")))
        d.core.log.open.clear()
        accepting = asyncio.create_task(d.sessions.accept(entry.session, accept))
        await until(lambda: d.core.scheduler.running)
        accepting.cancel()
        await asyncio.wait([accepting])
        d.core.log.open.set()
        await until(d.core.engine.pending)
        d.core.engine.says("Eins.")
        await d.core.finals.quiet()
        assert ana.state.in_flight == 0
        assert entry.session.room.offset == 2


@pytest.mark.parametrize("bug", [False, True])
async def test_a_final_that_was_refused_may_be_sent_again(bug: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk() as d:
        entry, ana = await d.join(speaks="en")
        accept = only(Accept, ana.send(UtteranceFinal("u", 1, "One.")))
        with monkeypatch.context() as broken:
            if bug:
                broken.setattr(d.core.finals, "accept", None)
            d.core.log.refuses = lambda _: True
            with pytest.raises(GatewayError) as refusal:
                await d.sessions.accept(entry.session, accept)
        assert refusal.value.code == ("internal" if bug else "log_unavailable")
        assert ana.state.in_flight == 0
        d.core.log.refuses = lambda _: False
        accept = only(Accept, ana.send(UtteranceFinal("u", 1, "One.")))
        await d.sessions.accept(entry.session, accept)


async def test_only_a_private_meetings_end_stops_its_translations() -> None:
    async with desk() as d:
        for meeting, left in ((None, 0), ("m", 1)):
            entry, ana = await d.join(meeting=meeting, speaks="en", reads=["de"])
            accept = only(Accept, ana.send(UtteranceFinal("u", 1, "One.")))
            await d.sessions.accept(entry.session, accept)
            await until(d.core.engine.pending)
            d.sessions.local.end(entry.session)
            d.sessions.local.end(entry.session)
            await idle()
            assert len(d.core.engine.pending()) == left


async def test_ended_sessions_partial_is_translated_no_further() -> None:
    async with desk() as d:
        ana, _ = await d.join(speaks="en")
        await d.join(reads=["de"])
        d.core.partials.hear(ana.session.room, said("we", 1, "u", ana.session.member.participant, final=False))
        await until(d.core.engine.pending)
        d.sessions.local.end(ana.session)
        await until(lambda: not d.core.engine.running)
        assert not list(ana.session.room.live.captions)


async def test_news_reaches_connected_sessions_only() -> None:
    async with desk() as d:
        (lost, away), (_, here) = await d.join(), await d.join(meeting="other")
        d.sessions.local.away(lost.session, lost.feed)
        for connection in (away, here):
            await connection.received()
        d.sessions.tell_everybody(Pong("news"))
        assert await here.received() == [Pong("news")]
        assert await away.received() == []


async def test_session_ending_during_an_update_is_gone() -> None:
    async with desk() as d:
        (entry, _), (other, _) = await d.join(reads=["de"]), await d.join(name="Bo")
        go_on = asyncio.Event()

        async def slow(_languages: object) -> int:
            await go_on.wait()
            return 0

        cast(Any, entry.session.room._subscription).reads = slow
        updating = asyncio.create_task(
            d.sessions.update(entry.session, Update("en", ("fr",), "live", originals=False))
        )
        await idle()
        d.sessions.local.end(entry.session)
        go_on.set()
        await updating
        assert other.session.room.languages() == frozenset()


# ---------------------------------------------------------------- the next process


async def handed_over(d: Desk) -> Handover:
    return Handover(meetings=d.core.log.kept_meetings(), sessions=d.sessions.kept_sessions())


async def test_next_process_keeps_the_remaining_time() -> None:
    async with desk(Limits(keep_s=60)) as d:
        entry, _ = await d.join(name="Ana", reads=["ja"], stability="stable", originals=True)
        other, _ = await d.join(name="Bo")
        for each in (entry, other):
            d.sessions.local.away(each.session, each.feed)
        d.now_s = 50.0
        earlier = await handed_over(d)
        assert [kept.left_s for kept in earlier.sessions] == [10.0, 10.0]
    async with desk(Limits(keep_s=60), log=Log(earlier.meetings)) as d:
        await d.sessions.restore(earlier)
        d.now_s = 1_000.0
        await d.sessions.sweep()
        assert d.sessions.kept_sessions() == earlier.sessions, "its time stands still until the engine takes work"
        d.sessions.engine_ready()
        d.now_s = 1_009.9
        await d.sessions.sweep()
        assert len(d.sessions.local.all) == 2
        again, _ = await d.join(resume=resume_of(entry), name="Ana")
        d.now_s = 1_010.0
        await d.sessions.sweep()
        assert [kept.name for kept in d.sessions.kept_sessions()] == ["Ana"]
        assert again.recovered is True
        assert again.session.member.participant == entry.session.member.participant
        d.sessions.local.away(again.session, again.feed)
        d.now_s += 60
        await d.sessions.sweep()
        assert len(d.sessions.local.all) == 0


async def test_lock_is_handed_over() -> None:
    async with desk(Limits(keep_s=60)) as d:
        await d.join(name="Ana")
        await d.session_store.lock("m", True)
        assert isinstance(d.session_store, MemorySessionStore)
        earlier = replace(await handed_over(d), locked=d.session_store.kept_locks())
        assert earlier.locked == ("m",)
    async with desk(Limits(keep_s=60), log=Log(earlier.meetings)) as d:
        await d.sessions.restore(earlier)
        with pytest.raises(MeetingLocked):
            await d.join(name="Bo")


async def test_who_is_muted_is_handed_over() -> None:
    async with desk(Limits(keep_s=60)) as d:
        entry, _ = await d.join(name="Ana")
        await d.session_store.mute("m", entry.session.member.participant, True)
        assert isinstance(d.session_store, MemorySessionStore)
        earlier = replace(await handed_over(d), muted=d.session_store.kept_muted())
        assert earlier.muted == {"m": (entry.session.member.participant,)}
    async with desk(Limits(keep_s=60), log=Log(earlier.meetings)) as d:
        await d.sessions.restore(earlier)
        resumed, _ = await d.join(name="Ana", resume=resume_of(entry))
        assert resumed.session.room.presence.is_muted(resumed.session.member)


async def test_early_resume_restores_the_whole_keep_time() -> None:
    async with desk(Limits(keep_s=60)) as d:
        entry, _ = await d.join()
        d.sessions.local.away(entry.session, entry.feed)
        d.now_s = 50.0
        earlier = await handed_over(d)
    async with desk(Limits(keep_s=60), log=Log(earlier.meetings)) as d:
        await d.sessions.restore(earlier)
        again, _ = await d.join(resume=resume_of(entry))
        d.sessions.local.away(again.session, again.feed)
        d.sessions.engine_ready()
        assert [kept.left_s for kept in d.sessions.kept_sessions()] == [60.0]


async def test_partly_failed_final_is_not_begun_again() -> None:
    async with desk() as d:
        entry, ana = await d.join(speaks="en", reads=["de", "fr"])
        accept = only(Accept, ana.send(UtteranceFinal("u", 1, "One.")))
        await d.sessions.accept(entry.session, accept)
        await until(lambda: len(d.core.engine.pending()) == 2)
        d.core.engine.fails(d.core.engine.pending()[0])
        await until(lambda: entry.session.room.offset == 2)
        earlier = await handed_over(d)
        await d.core.scheduler.drain(0)
    async with desk(log=Log(earlier.meetings)) as d:
        await d.sessions.restore(earlier)
        _, ana = await d.join(speaks="en", reads=["de", "fr"], resume=resume_of(entry))
        assert [type(effect) for effect in ana.send(UtteranceFinal("u", 1, "One."))] == [Acknowledge]


async def test_restored_session_knows_its_utterances() -> None:
    async with desk() as d:
        entry, ana = await d.join(speaks="en", reads=["de"])
        for utterance in ("done", "failed", "open"):
            accept = only(Accept, ana.send(UtteranceFinal(utterance, 1, f"{utterance}.")))
            await d.sessions.accept(entry.session, accept)
            await until(d.core.engine.pending)
            if utterance == "done":
                d.core.engine.says("Fertig.")
            elif utterance == "failed":
                d.core.engine.fails(*d.core.engine.pending())
            await idle()
        d.sessions.local.away(entry.session, entry.feed)
        earlier = await handed_over(d)
        await d.core.scheduler.drain(0)
    async with desk(log=Log(earlier.meetings)) as d:
        await d.sessions.restore(earlier)
        d.sessions.engine_ready()
        _, ana = await d.join(speaks="en", reads=["de"], resume=resume_of(entry))
        assert ana.state.in_flight == 1
        answers = {
            utterance: [type(effect) for effect in ana.send(UtteranceFinal(utterance, 1, f"{utterance}."))]
            for utterance in ("done", "failed", "open", "new")
        }
        assert answers == {"done": [Acknowledge], "failed": [Accept], "open": [Acknowledge], "new": [Accept]}
        await until(d.core.engine.pending)
        assert [request.text for request in d.core.engine.pending()] == ["open."], "gone on with at once"


async def test_memberless_meeting_is_completed_then_released() -> None:
    async with desk() as d:
        entry, ana = await d.join(speaks="en", reads=["de"])
        accept = only(Accept, ana.send(UtteranceFinal("u", 1, "One.")))
        await d.sessions.accept(entry.session, accept)
        d.sessions.local.end(entry.session)
        earlier = await handed_over(d)
        assert earlier.sessions == ()
        await d.core.scheduler.drain(0)
    async with desk(log=Log(earlier.meetings)) as d:
        await d.sessions.restore(earlier)
        await d.sessions.sweep()
        assert len(d.sessions.rooms) == 1
        await until(d.core.engine.pending)
        d.core.engine.says("Eins.")
        await d.core.finals.quiet()
        await d.sessions.sweep()
        assert len(d.sessions.rooms) == 0
        assert (await d.core.log.read("m", 0)).last == 2


# ---------------------------------------------------------------- lost connections, over real sockets


async def test_resume_replays_the_missed_once_then_live() -> None:
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


async def test_away_speaker_is_translated_and_may_resend() -> None:
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


@pytest.mark.parametrize("what", ["session", "epoch", "ahead", "trimmed"])
async def test_unresumable_session_begins_with_the_newest(what: str) -> None:
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


@pytest.mark.parametrize("how", ["end", "close"])
async def test_who_says_goodbye_is_gone_at_once(how: str) -> None:
    async with running() as gateway, joined(gateway) as ana:
        async with joined(gateway, reads=["ja"]) as bo:
            if how == "end":
                await bo.peer.send(SessionEnd())
        await ana.until(ParticipantLeft)
        assert len(gateway.gateway.sessions.local.all) == 1


# ---------------------------------------------------------------- restarts, over real sockets


@swiftly
async def test_a_restarted_gateway_goes_on_where_it_was(tmp_path: Any) -> None:
    settings = Settings(drain_s=0.1, event_log=EventLogSettings(handover_file=str(tmp_path / "handover")))
    port = free_port()
    async with running(settings, port=port) as gateway, joined(gateway, speaks="en", name="Ana") as ana:
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


@swiftly
async def test_nothing_ends_here_once_it_is_handed_over(tmp_path: Path) -> None:
    """Its end would be told by webhooks, though it goes on at the next process."""
    async with running(restarted(tmp_path, limits=Limits(keep_s=1))) as gateway:
        async with joined(gateway, reads=["ja"]) as bo:
            bo.lose()
        await away(gateway)
        await gateway.gateway.drain()
        await asyncio.sleep(5.0)
        assert len(await gateway.gateway.session_store.sessions()) == 1


async def test_restart_without_handover_begins_anew() -> None:
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


async def test_next_process_does_exactly_what_was_promised(tmp_path: Path) -> None:
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
            await again.until(TranslationFinal, 301)
            promised = {"before", *map(str, range(300))}  # the first for Bo, who came late
            assert {(u, lang) for _, u, lang in finals(again.received)} == {(each, "ja") for each in promised}
        async with joined(gateway, speaks="en", resume=ana.resume()) as back:
            await back.peer.send(*(say(str(n)) for n in range(300)))
            await back.until(UtteranceAccepted, 300)
        assert len([e for e in await logged(gateway) if isinstance(e, Said)]) == 301


@swiftly
async def test_sessions_wait_for_a_slow_engine(tmp_path: Path) -> None:
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


# ---------------------------------------------------------------- limits, and what is forgotten


async def test_restarted_session_owes_nothing_in_earlier_languages() -> None:
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


async def test_partial_of_an_away_speaker_is_forgotten() -> None:
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

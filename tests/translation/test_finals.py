"""Accepted utterances and what becomes of them: one outcome for each language, whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.config import Settings
from gateway.domain.engine import EngineState
from gateway.domain.errors import EngineUnavailable, LogUnavailable, QuotaExceeded
from gateway.domain.log import LoggedEvent, Publication, Said, Translated, Untranslated
from gateway.domain.quotas import NO_QUOTA, Quota
from gateway.engines.simulated import Rule, Script
from gateway.meeting.members import Member
from gateway.meeting.room import Room
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Error,
    SessionUpdate,
    SessionUpdated,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancel,
)
from gateway.stores.memory_log import MemoryEventLog
from gateway.translation.scheduling.ticket import CATCHING_UP
from tests.clocks import swiftly
from tests.gateways import running
from tests.meetings import finals, joined, logged, say
from tests.translation.stage import Log, Stage, idle, nothing_is_live, said, stage, until


@pytest.fixture(autouse=True)
def _offered_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.translation.finals._RETRIES_S", (0.0, 0.0))
    monkeypatch.setattr("gateway.translation.finals._RETRY_S", 0.0)


async def events(r: Stage) -> list[LoggedEvent]:
    return [publication.event for publication in (await r.log.read("m", 0)).publications]


async def outcomes(r: Stage) -> list[tuple[str, str, str]]:
    """(utterance, language, text or code of the failure), in the order of the log."""
    return [
        (event.utterance, event.lang, event.text if isinstance(event, Translated) else event.code)
        for event in await events(r)
        if not isinstance(event, Said)
    ]


def load(r: Stage) -> int:
    """Translations that wait or run."""
    return r.scheduler.running + r.scheduler.waiting


# ---------------------------------------------------------------- acceptance


async def test_utterance_ends_once_in_each_language() -> None:
    async with stage("de fr en", speaker=True) as r:
        await r.final("One.")
        assert [event.languages for event in await events(r) if isinstance(event, Said)] == [("de", "fr")]
        await r.answer(de="Eins.")
        await until(lambda: r.room.offset == 2)
        assert r.finished == []
        assert r.finals.busy(r.room)
        await r.finish(fr="Un.")
        assert r.finished == [("u", False)]
        assert await outcomes(r) == [("u", "de", "Eins."), ("u", "fr", "Un.")]
        assert not r.finals.busy(r.room)
        assert nothing_is_live(r)


async def test_an_utterance_that_nobody_reads_is_finished_at_once() -> None:
    async with stage(speaker=True) as r:
        await r.final("One.")
        assert r.finished == [("u", False)]
        assert len(await events(r)) == 1


async def test_refused_accept_may_be_repeated() -> None:
    async with stage("de fr") as r:
        r.log.refuses = lambda _: True
        with pytest.raises(LogUnavailable):
            await r.final("One.")
        assert load(r) == 0
        assert await events(r) == []
        assert not r.finals.busy(r.room)
        await idle()
        assert r.engine.requests == []
        r.log.refuses = lambda _: False
        await r.final("One.")
        await r.finish(de="Eins.", fr="Un.")
        assert len(await outcomes(r)) == 2


async def test_an_acceptance_that_is_cancelled_leaves_no_ticket() -> None:
    async with stage("de") as r:
        r.log.open.clear()
        accepting = asyncio.create_task(r.final("One."))
        await until(lambda: load(r) == 1)
        accepting.cancel()
        await asyncio.wait([accepting])
        assert load(r) == 0


async def test_what_the_scheduler_refuses_is_not_in_the_log() -> None:
    async with stage("de") as r:
        r.engine.state = EngineState.FAILED
        with pytest.raises(EngineUnavailable):
            await r.final("One.")
        assert await events(r) == []


async def test_language_joining_during_accept_is_translated() -> None:
    async with stage("de", speaker=True) as r:
        r.log.open.clear()
        accepting = asyncio.create_task(r.final("One."))
        await until(lambda: load(r) == 1)
        await r.reader(lang="fr")
        r.log.open.set()
        await accepting
        await r.answer(de="Eins.")
        await until(lambda: r.room.offset == 2)
        assert r.finished == [], "it is still to be translated into what was promised last"
        await r.finish(fr="Un.")
        assert await outcomes(r) == [("u", "de", "Eins."), ("u", "fr", "Un.")]
        assert r.finished == [("u", False)]


async def test_joining_language_without_place_has_an_outcome() -> None:
    async with stage("de", speaker=True) as r:
        r.log.open.clear()
        accepting = asyncio.create_task(r.final("One."))
        await until(lambda: load(r) == 1)
        await r.reader(lang="fr")
        draining = asyncio.create_task(r.scheduler.drain(60))
        await until(lambda: r.scheduler.draining)
        r.log.open.set()
        await accepting
        await until(lambda: r.room.offset == 2)
        assert await outcomes(r) == [("u", "fr", "draining")]
        await r.answer(de="Eins.")
        assert await draining
        await r.finals.quiet()
        assert r.finished == [("u", True)]


async def test_utterance_being_accepted_is_not_resumed() -> None:
    async with stage("de") as r:
        r.log.silent.add("accept")
        accepting = asyncio.create_task(r.final("One."))
        await until(lambda: r.room.offset)
        r.finals.resume()
        assert load(r) == 1
        r.log.silent.clear()
        await accepting
        await r.finish(de="Eins.")
        assert await outcomes(r) == [("u", "de", "Eins.")]


# ---------------------------------------------------------------- outcomes


async def test_an_outcome_that_the_log_refuses_is_offered_again() -> None:
    async with stage("de", speaker=True) as r:
        await r.final("One.")
        r.log.refuses = lambda _: len(r.log.refused) < 2
        await r.finish(de="Eins.")
        assert len(r.log.refused) == 2
        assert await outcomes(r) == [("u", "de", "Eins.")]
        assert r.finished == [("u", False)]


async def test_outcome_is_offered_until_logged() -> None:
    async with stage(speaker=True) as r:
        reader = await r.reader()
        await r.final("One.")
        r.log.refuses = lambda _: True
        await r.answer(de="Eins.")
        await until(lambda: len(r.log.refused) > 5)
        r.finals.resume()
        assert load(r) == 0
        assert r.finals.busy(r.room), "it was promised, so the meeting stays"
        assert r.finished == []
        r.log.refuses = lambda _: False
        await r.finals.quiet()
        assert await outcomes(r) == [("u", "de", "Eins.")]
        assert r.finished == [("u", False)]
        reader.look()
        assert reader.committed["de"] == "Eins."


async def test_a_gateway_that_stops_waits_for_no_log() -> None:
    async with stage("de") as r:
        await r.final("One.")
        r.log.refuses = lambda _: True
        await r.answer(de="Eins.")
        await until(lambda: r.log.refused)


async def test_broken_log_holds_up_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> Publication:
        raise RuntimeError

    async with stage("de", speaker=True) as r:
        await r.final("One.")
        monkeypatch.setattr(r.log, "conclude", broken)
        await r.finish(de="Eins.")
        assert r.finished == [("u", False)]
        r.finals.resume()
        assert load(r) == 0


async def test_trimmed_utterance_still_ends() -> None:
    async with stage("de", speaker=True) as r:
        await r.final("One.")
        r.room.history.trim(r.room.offset + 1)
        await r.finish(de="Eins.")
        assert r.finished == [("u", False)]


async def test_broken_last_delta_costs_no_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("gateway.translation.finals.Throttle.end", broken)
    async with stage("de") as r:
        await r.final("One.")
        await r.finish(de="Eins.")
        assert await outcomes(r) == [("u", "de", "Eins.")]


async def test_work_without_place_resumes_later() -> None:
    async with stage("de") as r:
        r.engine.state = EngineState.FAILED
        await r.finals.take_over(r.room, await r.left("One.", "de"))
        assert load(r) == 0
        r.engine.state = EngineState.READY
        r.finals.resume()
        r.finals.resume()
        assert load(r) == 1
        await r.finish(de="Eins.")
        assert await outcomes(r) == [("u", "de", "Eins.")]


async def test_failure_for_a_latecomer_spares_the_speaker() -> None:
    async with stage("de", speaker=True) as r:
        await r.final("One.")
        await r.finish(de="Eins.")
        r.finals.catch_up(r.room, ["fr"])
        await until(r.engine.pending)
        r.engine.fails(*r.asked("fr"))
        await r.finals.quiet()
        assert r.finished == [("u", False)]


async def test_failed_language_is_told_and_retried() -> None:
    async with stage("de fr", speaker=True) as r:
        await r.final("One.")
        await until(lambda: len(r.engine.pending()) == 2)
        r.engine.fails(*r.asked("fr"))
        await until(lambda: r.room.offset == 2)
        assert r.finished == []
        await r.finish(de="Eins.")
        assert r.finished == [("u", True)]
        await r.final("One.")
        await r.finish(fr="Un.")
        assert [request.target for request in r.engine.requests] == ["de", "fr", "fr"]
        assert await outcomes(r) == [("u", "fr", "engine_failed"), ("u", "de", "Eins."), ("u", "fr", "Un.")]
        assert r.finished == [("u", True), ("u", False)]
        assert len([event for event in await events(r) if isinstance(event, Said)]) == 1


async def test_resent_utterance_without_readers_is_finished() -> None:
    async with stage(speaker=True) as r:
        reader = await r.reader()
        await r.final("One.")
        await until(r.engine.pending)
        r.engine.fails(*r.asked("de"))
        await r.finals.quiet()
        r.room.leave(reader.member)
        await r.final("One.")
        assert r.finished == [("u", True), ("u", False)], "nothing that is asked for failed"
        assert load(r) == 0


# ---------------------------------------------------------------- latecomers


async def test_catching_up_happens_once_behind_finals() -> None:
    async with stage("de") as r:
        await r.final("One.")
        await r.finish(de="Eins.")
        for _ in range(2):
            r.finals.catch_up(r.room, ["en", "de", "fr"])
        await until(r.engine.pending)
        assert [(request.target, request.priority) for request in r.engine.pending()] == [("fr", CATCHING_UP)]
        await r.finish(fr="Un.")
        r.finals.catch_up(r.room, ["fr"])
        await idle()
        assert await outcomes(r) == [("u", "de", "Eins."), ("u", "fr", "Un.")]
        assert load(r) == 0


async def test_no_room_for_a_latecomer_is_not_an_error() -> None:
    async with stage() as r:
        await r.final("One.")
        r.engine.state = EngineState.FAILED
        r.finals.catch_up(r.room, ["fr"])
        await idle()
        assert load(r) == 0
        assert not r.finals.busy(r.room), "nobody was promised it"


# ---------------------------------------------------------------- answers that come late


async def test_meeting_is_busy_while_work_is_claimed() -> None:
    async with stage() as r:
        await r.final("One.")
        r.log.silent.add("claim")
        r.finals.catch_up(r.room, ["de"])
        await until(lambda: load(r) == 1)
        assert r.finals.busy(r.room)
        r.log.silent.clear()
        await r.finish(de="Eins.")
        assert not r.finals.busy(r.room)


async def test_outcome_before_the_accept_answer_counts() -> None:
    async with stage("de", speaker=True) as r:
        await r.final("One.")
        await until(r.engine.pending)
        r.engine.fails(*r.engine.pending())
        await until(lambda: r.finished)
        await r.reader(lang="fr")
        r.finals.catch_up(r.room, ["fr"])
        await until(r.engine.pending)
        # Nobody remembers an utterance that is so old.
        r.room.history.trim(99)
        r.log.silent.add("accept")
        again = asyncio.create_task(r.final("One."))
        await until(lambda: r.log.store.meetings["m"].by_offset[1].unfinished.keys() == {"de", "fr"})
        await r.answer(fr="Un.")
        await until(lambda: len(r.log.store.meetings["m"].by_offset[1].unfinished) == 1)
        r.log.silent.clear()
        await again
        await r.finish(de="Eins.")
        assert await outcomes(r) == [("u", "de", "engine_failed"), ("u", "fr", "Un."), ("u", "de", "Eins.")]
        assert r.finished == [("u", True), ("u", False)]
        assert not r.finals.busy(r.room)


async def test_resent_before_failure_is_answered_is_translated() -> None:
    async with stage("de", speaker=True) as r:
        await r.final("One.")
        await until(r.engine.pending)
        r.log.silent.add("conclude")
        r.engine.fails(*r.engine.pending())
        await until(lambda: r.finished)
        await r.final("One.")
        r.log.silent.clear()
        await until(r.engine.pending)
        await r.finish(de="Eins.")
        assert await outcomes(r) == [("u", "de", "engine_failed"), ("u", "de", "Eins.")]
        assert r.finished == [("u", True), ("u", False)]
        assert not r.finals.busy(r.room)


async def test_cancelled_utterance_ends_while_waiting() -> None:
    async with stage(speaker=True) as r:
        r.engine.state = EngineState.FAILED
        await r.finals.take_over(r.room, await r.left("One.", "de"))
        r.finals.cancel(r.room, ("ana", "u"))
        await r.finals.quiet()
        assert await outcomes(r) == [("u", "de", "cancelled")]
        assert not r.finals.busy(r.room)


async def test_one_id_in_two_logs_keeps_each_text() -> None:
    async with stage() as r:
        r.engine.state = EngineState.FAILED
        earlier = await r.left("One.", "de")
        later = replace(earlier.utterance, text="Two.")
        await r.finals.take_over(r.room, earlier)
        again = replace(earlier, utterance=later, said=earlier.said + 1, languages=("fr",))
        await r.finals.take_over(r.room, again)
        r.engine.state = EngineState.READY
        r.finals.resume()
        await idle()
        assert {(each.text, each.target) for each in r.engine.requests} == {("One.", "de"), ("Two.", "fr")}


async def test_taken_over_text_that_was_corrected_meanwhile_is_not_translated() -> None:
    async with stage() as r:
        left = await r.left("One.", "de")
        correction = said("Two.", 1, "c", "ana", final=True)
        await r.finals.accept(r.room, replace(correction, replaces=("u",)))
        await r.finals.take_over(r.room, left)
        await r.finals.quiet()
        assert r.engine.requests == []
        assert await outcomes(r) == [("u", "de", "cancelled")]


async def test_text_that_kills_gateways_is_given_up() -> None:
    async with stage() as r:
        await r.finals.take_over(r.room, await r.left("One.", "de", tries=4))
        assert r.engine.requests == []
        assert await outcomes(r) == [("u", "de", "engine_failed")]


async def test_taken_over_text_counts_once_it_runs() -> None:
    """What waits here is no try if this gateway dies."""
    async with stage(max_running=1) as r:
        await r.finals.take_over(r.room, await r.left("One.", "fr"))
        await r.finals.take_over(r.room, await r.left("Two.", "fr", utterance="other"))
        await until(r.engine.pending)
        r.log.store.leases.clear()
        taken = await MemoryEventLog(r.log.store).take_over()
        assert {work.utterance.id: work.tries for work in taken} == {"u": 2, "other": 1}


async def test_taken_over_text_runs_without_the_store() -> None:
    async with stage() as r:
        await r.finals.take_over(r.room, await r.left("One.", "fr"))
        r.log.answers_claims = False
        await until(r.engine.pending)
        await r.finish(fr="Un.")
        assert await outcomes(r) == [("u", "fr", "Un.")]


# ---------------------------------------------------------------- giving up


async def test_cancelled_utterance_ends_in_each_language() -> None:
    async with stage("de fr", speaker=True, max_running=1) as r:
        await r.final("One.")
        await r.final("Two.", utterance="other")
        await until(r.engine.pending)
        r.finals.cancel(r.room, ("ana", "u"))
        await until(lambda: r.finished)
        assert await outcomes(r) == [("u", "de", "cancelled"), ("u", "fr", "cancelled")]
        assert r.finished == [("u", True)]
        await r.finish(de="Zwei.", fr="Deux.")
        assert [request.text for request in r.engine.requests] == ["One.", "Two.", "Two."]


async def test_abandoned_meeting_has_nothing_running() -> None:
    async with stage("de") as r:
        other = Room("other", r.log, private=True, snapshot=10)
        await other.open()
        other.join(Member(participant="bo", name="", speaks=None, reads=("fr",), stability="live"))
        await r.final("One.")
        await r.finals.accept(other, said("Two.", 1, "v", "bo", final=True))
        await until(lambda: len(r.engine.pending()) == 2)
        r.finals.abandon(r.room)
        await until(lambda: not r.finals.busy(r.room))
        assert await outcomes(r) == [("u", "de", "cancelled")]
        assert [request.text for request in r.engine.pending()] == ["Two."]
        await r.finish(fr="Deux.")


# ---------------------------------------------------------------- stopping


async def test_drain_deadline_ends_as_draining() -> None:
    async with stage("de", speaker=True) as r:
        await r.final("One.")
        await until(r.engine.pending)
        assert await r.scheduler.drain(0) is False
        await r.finals.quiet()
        assert await outcomes(r) == [("u", "de", "draining")]
        assert r.finished == [("u", True)]


async def test_leaving_logs_every_unfinished_translation() -> None:
    async with stage("de") as r:
        await r.final("One.")
        await until(r.engine.pending)
    assert await outcomes(r) == [("u", "de", "draining")]
    assert r.engine.running == {}
    assert load(r) == 0


async def test_next_process_completes_what_is_left() -> None:
    async with stage("de fr", leaves_unfinished=True) as r:
        await r.final("One.")
        await r.final("Two.", utterance="v")
        await r.answer(de="Eins.")
        await until(lambda: r.room.offset == 3)
        assert await r.scheduler.drain(0) is False
        await r.finals.quiet()
        assert await outcomes(r) == [("u", "de", "Eins.")]
        left = r.log.kept_meetings()
    async with stage(log=Log(left)) as r:
        for work in await r.log.take_over():
            await r.finals.take_over(r.room, work)
        assert r.finals.busy(r.room)
        while r.engine.running or load(r):
            for request in r.engine.pending():
                r.engine.end(request, f"{request.text} in {request.target}")
            await idle()
        await r.finals.quiet()
        assert sorted(await outcomes(r)) == [
            ("u", "de", "Eins."),
            ("u", "fr", "One. in fr"),
            ("v", "de", "Two. in de"),
            ("v", "fr", "Two. in fr"),
        ]
        assert not r.finals.busy(r.room)


# ---------------------------------------------------------------- any order


STEPS = st.lists(
    st.sampled_from(
        ["say", "say", "answer", "answer", "fail", "again", "cancel", "join", "leave", "refuse", "resume", "idle"]
    ),
    max_size=30,
)


@given(STEPS, st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_every_promise_has_one_outcome(steps: list[str], chance: random.Random) -> None:
    asyncio.run(_play(steps, chance))


async def _play(steps: list[str], chance: random.Random) -> None:
    async with stage(speaker=True, max_running=2) as r:
        readers = [await r.reader(lang="de", participant="first")]
        accepted: set[str] = set()
        for number, step in enumerate(steps):
            match step:
                case "say":
                    with contextlib.suppress(LogUnavailable):
                        await r.final("text", utterance=str(number))
                        accepted.add(str(number))
                case "again" if failed := [name for name, failed in r.finished if failed]:
                    # As the session does: once it was told, and until it is told again.
                    name, before = chance.choice(failed), r.finished
                    r.finished = [told for told in before if told[0] != name]
                    try:
                        await r.final("text", utterance=name)
                    except LogUnavailable:
                        r.finished = before
                case "answer" | "fail" if pending := r.engine.pending():
                    request = chance.choice(pending)
                    if step == "answer":
                        r.engine.end(request, "Text")
                    else:
                        r.engine.fails(request)
                case "cancel" if accepted:
                    r.finals.cancel(r.room, ("ana", chance.choice(sorted(accepted))))
                case "join":
                    lang = chance.choice(["de", "fr", "ja"])
                    readers.append(await r.reader(lang=lang, participant=f"p{number}"))
                    r.finals.catch_up(r.room, [lang])
                case "leave" if readers:
                    r.room.leave(readers.pop(chance.randrange(len(readers))).member)
                case "refuse":
                    until_now = len(r.log.refused) + chance.randrange(1, 6)
                    r.log.refuses = lambda _: len(r.log.refused) < until_now  # noqa: B023 -- the newest holds
                case "resume":
                    r.finals.resume()
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
        r.log.refuses = lambda _: False
        while load(r) or r.finals.busy(r.room):
            r.finals.resume()
            for request in r.engine.pending():
                r.engine.end(request, "Text")
            await idle()
        await r.finals.quiet()
        done = Counter((e.utterance, e.lang) for e in await events(r) if isinstance(e, Translated))
        assert set(done.values()) <= {1}
        ended = {(utterance, lang) for utterance, lang, _ in await outcomes(r)}
        said = [event for event in await events(r) if isinstance(event, Said)]
        assert {event.utterance.id for event in said} == accepted
        assert {(event.utterance.id, lang) for event in said for lang in event.languages} <= ended
        told = Counter(name for name, _ in r.finished)
        assert told.keys() == accepted
        assert nothing_is_live(r)


async def test_meeting_is_busy_from_catch_up_on() -> None:
    async with stage() as r:
        r.finals.catch_up(r.room, ["fr"])
        assert r.finals.busy(r.room)
        await until(lambda: not r.finals.busy(r.room))


# ---------------------------------------------------------------- over real sockets


async def test_new_language_is_caught_up_behind_finals() -> None:
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


async def test_accepted_work_survives_engine_crashes_once() -> None:
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


@swiftly
async def test_the_last_words_come_with_the_final_alone() -> None:
    async with (
        running(Settings(delta_interval_s=1)) as gateway,
        joined(gateway, speaks="en", reads=["ja"]) as ana,
    ):
        await ana.peer.send(say("1", "three words here"))
        await ana.until(TranslationFinal)
        got = await ana.everything()
        assert [m.committed for m in got if isinstance(m, TranslationDelta)] == ["[ja]"]


async def test_resent_final_and_late_joiner_share_a_translation() -> None:
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


async def test_restarted_engine_gets_only_promised_work() -> None:
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


# ---------------------------------------------------------------- quotas


async def test_used_up_day_keeps_utterances_untranslated() -> None:
    async with stage("de fr", speaker=True) as r:
        r.quota = Quota(characters=0)
        await r.final("One.")
        said, *outcomes = await events(r)
        assert isinstance(said, Said)
        assert [(each.lang, each.code) for each in outcomes if isinstance(each, Untranslated)] == [
            ("de", "daily_quota_exceeded"),
            ("fr", "daily_quota_exceeded"),
        ]
        assert (r.finished, r.engine.requests) == ([("u", True)], [])
        r.finals.resume()
        assert r.engine.requests == [], "it has its outcome"
        r.quota = NO_QUOTA
        await r.final("One.")
        await r.finish(de="Eins.", fr="Un.")
        assert len(await events(r)) == 5


async def test_full_waiting_quota_refuses() -> None:
    async with stage("de", speaker=True, max_running=1) as r:
        r.quota = Quota(waiting=1)
        await r.final("One.", utterance="1")
        await r.final("Two.", utterance="2")
        with pytest.raises(QuotaExceeded):
            await r.final("Three.", utterance="3")
        assert len(await events(r)) == 2
        await r.answer(de="Eins.")
        await until(lambda: r.engine.pending() and r.engine.requests[-1].text == "Two.")
        await r.answer(de="Zwei.")


async def test_promised_work_ignores_later_quotas() -> None:
    async with stage("de", speaker=True) as r:
        r.quota = Quota(characters=0, minutes=0, waiting=0)
        await r.finals.take_over(r.room, await r.left("One.", "de"))
        await r.finish(de="Eins.")
        assert isinstance((await events(r))[-1], Translated)


async def test_work_being_left_is_not_resumed() -> None:
    log = Log()
    async with stage("de", speaker=True, log=log) as r:
        r.quota = Quota(characters=0)
        log.refuses = lambda event: isinstance(event, Untranslated)
        accepting = asyncio.create_task(r.final("One."))
        await until(lambda: log.refused)
        r.finals.resume()
        log.refuses = lambda _: False
        await accepting
        assert r.engine.requests == []
        assert [type(event) for event in await events(r)] == [Said, Untranslated]


# ---------------------------------------------------------------- pairs of languages


async def test_language_without_lane_fails_alone() -> None:
    async with stage() as r:
        r.engine.pairs = frozenset({("en", "de")})
        await r.reader(lang="de")
        await r.reader(lang="ja")
        await r.final("Good morning.")
        await until(r.engine.pending)
        assert [request.target for request in r.engine.pending()] == ["de"]
        r.engine.says("Guten Morgen.")
        await idle()
        assert sorted(await outcomes(r)) == [("u", "de", "Guten Morgen."), ("u", "ja", "unsupported_language")]
        [failed] = [e for e in await events(r) if isinstance(e, Untranslated)]
        assert failed.message == (
            "Nothing here translates English into Japanese; languages into which English is translated: de."
        )
        assert not r.finals.busy(r.room)


async def test_taken_over_language_without_lane_fails() -> None:
    async with stage() as r:
        r.engine.pairs = frozenset({("en", "de")})
        work = await r.left("Good morning.", "de", "ja")
        await r.finals.take_over(r.room, work)
        await until(r.engine.pending)
        r.engine.says("Guten Morgen.")
        await idle()
        assert sorted(await outcomes(r)) == [("u", "de", "Guten Morgen."), ("u", "ja", "unsupported_language")]


async def test_latecomers_get_no_untranslatable_promise() -> None:
    async with stage() as r:
        r.engine.pairs = frozenset({("en", "de")})
        await r.final("Good morning.")
        await r.reader(lang="ja")
        r.finals.catch_up(r.room, ["ja"])
        await idle()
        assert await outcomes(r) == []
        assert r.engine.requests == []

"""Live partials in the core: one generation in flight, the newest wins, finals go first, what readers see."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.domain.engine import EngineState, FinishReason, TokenEvent
from gateway.domain.log import Utterance
from gateway.domain.quotas import Quota
from gateway.domain.sessions import Preferences, Stability
from gateway.meeting.members import Member
from gateway.protocol.messages import (
    Caption,
    TranslationDelta,
    TranslationFinal,
    UtteranceCancelled,
    UtterancePartial,
)
from gateway.translation.commit_policy import TOLERANCE
from gateway.translation.partials import LiveBudget
from tests.clocks import swiftly
from tests.gateways import running
from tests.meetings import joined, say
from tests.tracing.recorder import recording
from tests.translation.stage import Stage, idle, nothing_is_live, said, stage, until


async def spoken(stage: Stage, series: Sequence[tuple[str, str]]) -> None:
    """Revisions with their translations, one after the other."""
    for rev, (text, translation) in enumerate(series, 1):
        count = len(stage.engine.requests)
        stage.hear(text, rev)
        await until(lambda: len(stage.engine.requests) > count)  # noqa: B023 -- awaited in the loop
        stage.engine.says(translation)
        await until(lambda: not stage.engine.running)
        await idle()


SERIES = [
    ("we will", "Wir"),
    ("we will meet", "Wir treffen"),
    ("we will meet on", "Wir treffen uns"),
    ("we will meet on friday", "Wir treffen uns am Freitag"),
]


# ---------------------------------------------------------------- what readers see


async def test_one_generation_serves_live_stable_and_final_readers() -> None:
    async with stage() as r:
        live, stable, final = await r.reader("live"), await r.reader("stable"), await r.reader("final")
        await spoken(r, SERIES)
        assert len(r.engine.requests) == len(SERIES)
        for screen in (live, stable, final):
            screen.look()
        assert (live.committed["de"], live.tentative["de"]) == ("Wir treffen", " uns")
        assert stable.committed["de"] == "Wir treffen"
        assert not any(m.tentative for m in stable.messages if isinstance(m, TranslationDelta))
        assert final.messages == []


async def test_final_continues_what_readers_saw() -> None:
    async with stage() as r:
        live, final = await r.reader("live"), await r.reader("final")
        speaker = await r.reader("final", "en", participant="ana")
        speaker.member.on_finished = lambda utterance, failed: r.finished.append((utterance, failed))
        await spoken(r, SERIES)
        await r.final("We will meet on Friday.")
        await until(lambda: r.engine.running)
        assert r.finished == []
        request = r.engine.requests[-1]
        assert (request.final, request.priority, request.prefix, request.draft) == (
            True,
            0,
            "Wir treffen",
            " uns am Freitag",
        )
        assert request.tolerance is not None
        r.engine.says("Wir treffen uns am Freitag.")
        await r.finals.quiet()
        messages = live.look()
        assert live.committed["de"] == "Wir treffen uns am Freitag."
        assert live.tentative["de"] == ""
        assert [m.text for m in messages if isinstance(m, TranslationFinal)] == ["Wir treffen uns am Freitag."]
        assert [type(m) for m in final.look()] == [TranslationFinal]
        assert r.finished == [("u", False)]


async def test_final_that_drops_its_prefix_shows_no_delta() -> None:
    async with stage() as r:
        live = await r.reader("live")
        await spoken(r, SERIES)
        live.look()
        r.engine.keeps_prefixes = False
        await r.final("No, we meet today.")
        await r.says("Nein, heute.")
        await r.finals.quiet()
        messages = live.look()
        assert [type(m) for m in messages] == [TranslationFinal]


async def test_newcomer_sees_the_open_utterance() -> None:
    async with stage("de") as r:
        await spoken(r, SERIES)
        live, stable, final = await r.reader("live"), await r.reader("stable"), await r.reader("final")
        for screen in (live, stable, final):
            screen.look()
        assert (live.committed, live.tentative) == ({"de": "Wir treffen"}, {"de": " uns"})
        assert (stable.committed, stable.tentative) == ({"de": "Wir treffen"}, {"de": ""})
        assert final.messages == []


@pytest.mark.parametrize(
    ("before", "after", "committed", "tentative"),
    [
        ("live", "stable", "Wir treffen", ""),
        ("stable", "live", "Wir treffen", " uns"),
        ("final", "live", "Wir treffen", " uns"),
        ("final", "stable", "Wir treffen", ""),
    ],
)
async def test_another_stability_shows_what_it_would_have_shown(
    before: Stability, after: Stability, committed: str, tentative: str
) -> None:
    async with stage("de") as r:
        reader = await r.reader(before)
        await spoken(r, SERIES)
        r.room.update(reader.member, "x", Preferences(None, ("de",), after))
        reader.look()
        assert reader.committed["de"] == committed
        assert reader.tentative["de"] == tentative


async def test_readers_of_finals_cost_no_partial_generation() -> None:
    async with stage() as r:
        final = await r.reader("final")
        await r.reader("live", "fr")
        r.hear("we will")
        await until(lambda: r.engine.requests)
        await idle()
        assert [request.target for request in r.engine.requests] == ["fr"]
        assert final.look() == []


async def test_captions_go_on_without_readers_of_another_language() -> None:
    async with stage() as r:
        reader = await r.reader("live", "en")
        r.hear("we will")
        await idle()
        assert [type(m) for m in reader.look()] == [Caption]
        assert r.engine.requests == []


# ---------------------------------------------------------------- one generation in flight


async def test_newer_revision_ends_the_older_generation() -> None:
    async with stage("de") as r:
        r.hear("we", 1)
        await until(lambda: r.engine.running)
        r.hear("we will", 2)
        r.hear("we will meet", 3)
        await until(lambda: len(r.engine.requests) == 2)
        await idle()
        assert [request.text for request in r.engine.requests] == ["we", "we will meet"]
        assert list(r.engine.running) == [r.engine.requests[-1].id]
        assert r.engine.most_running == 1


async def test_newest_revision_replaces_a_waiting_one() -> None:
    async with stage("de", max_running=1) as r:
        r.hear("busy", utterance="other")
        await until(lambda: r.engine.running)
        for rev, text in enumerate(("we", "we will", "we will meet"), 1):
            r.hear(text, rev)
            await idle()
        assert r.scheduler.waiting == 1
        r.engine.says("beschäftigt")
        await until(lambda: len(r.engine.requests) == 2)
        assert r.engine.requests[-1].text == "we will meet"


async def test_newest_revision_waits_for_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr("gateway.translation.partials.time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr("gateway.translation.partials._LOOK_S", 0.001)
    async with stage("de", partials={"pace_s": 1.0}) as r:
        await spoken(r, SERIES[:1])
        now_s = 0.4  # half the pace, as there is nothing to read yet
        for rev, text in enumerate(("we will", "we will meet", "we will meet on"), 2):
            r.hear(text, rev)
            await idle()
        assert len(r.engine.requests) == 1
        now_s = 0.6
        await until(lambda: len(r.engine.requests) == 2)
        assert r.engine.requests[-1].text == "we will meet on"


@swiftly
async def test_text_that_may_change_is_committed_after_four_seconds() -> None:
    async with stage("de") as r:
        stable = await r.reader("stable")
        began_s = asyncio.get_running_loop().time()
        await spoken(r, [("we", "Wir"), ("we will", "Ich werde")])
        await asyncio.sleep(3.9)
        assert not stable.look()
        await asyncio.sleep(0.2)
        stable.look()
        assert stable.committed == {"de": "Ich werde"}
        # What is said after a pause is waited for from then on.
        await asyncio.sleep(10)
        await spoken(r, [("we will meet", "Ich werde uns treffen")])
        await asyncio.sleep(3.9)
        assert not stable.look()
        await asyncio.sleep(0.2)
        stable.look()
        assert stable.committed == {"de": "Ich werde uns treffen"}
        assert asyncio.get_running_loop().time() == pytest.approx(began_s + 18.2, abs=0.1)


@swiftly
async def test_four_seconds_count_from_the_first_revision() -> None:
    async with stage("de") as r:
        stable = await r.reader("stable")
        await spoken(r, [("we", "")])
        await asyncio.sleep(3)
        await spoken(r, [("we will meet", "Wir treffen uns am Freitag früh")])
        await asyncio.sleep(1.1)
        stable.look()
        assert stable.committed == {"de": "Wir treffen"}


@swiftly
async def test_live_readers_see_one_hypothesis_after_four_seconds() -> None:
    async with stage("de") as r:
        live, stable = await r.reader("live"), await r.reader("stable")
        await spoken(r, [("we", "Wir"), ("we will", "Wir")])
        await asyncio.sleep(2)
        await spoken(r, [("we will meet on", "Wir gehen heute los")])
        await asyncio.sleep(1)
        live.look()
        assert (live.committed, live.tentative) == ({"de": "Wir"}, {"de": ""})
        await asyncio.sleep(1.5)
        live.look()
        assert (live.committed, live.tentative) == ({"de": "Wir"}, {"de": " gehen heute los"})
        # What stays is not changed by it.
        stable.look()
        assert stable.committed == {"de": "Wir"}


@swiftly
@pytest.mark.parametrize(("part_of", "tentative"), [("", {}), ("u", {"de": "Und dann"})])
async def test_behind_a_segment_live_readers_wait_for_two_seconds(part_of: str, tentative: dict[str, str]) -> None:
    async with stage("de") as r:
        live = await r.reader("live")
        r.partials.hear(r.room, replace(said("and then", 1, "u~2", "ana", final=False), part_of=part_of))
        await r.says("Und dann")
        await asyncio.sleep(2.1)
        live.look()
        assert live.tentative == tentative


@swiftly
async def test_what_a_generation_takes_is_not_waited_for_as_well() -> None:
    async with stage("de") as r:
        stable = await r.reader("stable")
        await spoken(r, [("we", "Wir")])
        r.hear("we will", 2)
        await until(lambda: r.engine.running)
        await asyncio.sleep(3)
        r.engine.says("Ich werde")
        await until(lambda: not r.engine.running)
        await idle()
        stable.look()
        assert stable.committed == {"de": "Ich werde"}


@swiftly
async def test_final_begins_with_what_was_committed_late() -> None:
    async with stage("de") as r:
        await spoken(r, [("we", "Wir"), ("we will", "Ich werde")])
        await asyncio.sleep(4.1)
        await r.final("We will.")
        await until(lambda: r.asked("de"))
        assert r.asked("de")[0].prefix == "Ich werde"
        await asyncio.sleep(10)
        await r.finish(de="Ich werde.")


async def test_late_loop_translates_only_finals() -> None:
    lag_s = 10.0
    async with stage(partials={"pace_s": 0.0, "lag_s": lambda: lag_s}) as r:
        live = await r.reader("live")
        captions = await r.reader("live", "en")
        r.hear("we will")
        r.hear("never mind", utterance="other")
        await idle()
        assert r.engine.requests == []
        assert [m.text for m in captions.look() if isinstance(m, Caption)] == ["we will", "never mind"]
        await r.final("Never mind.", utterance="other")
        await until(lambda: r.engine.requests)
        r.engine.says("Macht nichts.")
        await r.finals.quiet()
        assert [m.text for m in live.look() if isinstance(m, TranslationFinal)] == ["Macht nichts."]
        assert len(r.engine.requests) == 1
        lag_s = 0.0
        await until(lambda: len(r.engine.requests) == 2)
        assert r.engine.requests[-1].text == "we will"


async def test_lateness_delays_up_to_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, lag_s = 100.0, 0.014
    monkeypatch.setattr("gateway.translation.partials.time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr("gateway.translation.partials._LOOK_S", 0.001)
    async with stage("de", partials={"pace_s": 0.0, "lag_s": lambda: lag_s}) as r:
        for wait_s in (1.0, 5.0):
            count = len(r.engine.requests)
            r.hear(f"wait {wait_s}", utterance=str(wait_s))
            now_s += wait_s - 0.01
            await asyncio.sleep(0.01)
            await idle()
            assert len(r.engine.requests) == count
            now_s += 0.02
            await until(lambda: len(r.engine.requests) > count)  # noqa: B023 -- awaited in the loop
            lag_s = 60.0


@swiftly
async def test_partial_due_sooner_is_not_late() -> None:
    lag_s = 0.0
    async with stage("de", partials={"pace_s": 0.2, "lag_s": lambda: lag_s}) as r:
        await spoken(r, SERIES[:1])
        lag_s = 10.0
        r.hear("we will meet", 2)
        lag_s = 0.0
        r.hear("we will meet on", 3)
        await asyncio.sleep(0.11)
        assert [request.text for request in r.engine.requests] == ["we will", "we will meet on"]


async def test_utterance_has_one_timer() -> None:
    async with stage("de", partials={"pace_s": 60.0, "lag_s": lambda: 10.0}) as r:
        timers: list[asyncio.TimerHandle | None] = []
        for rev in range(1, 6):
            r.hear("we will meet " * rev, rev)
            ((spoken,),) = [
                of_one.values() for of_room in r.partials._open.values() for of_one in of_room.values()
            ]
            timers.append(spoken.timer)
        assert [timer is not None and not timer.cancelled() for timer in timers] == [False] * 4 + [True]


async def test_late_loop_keeps_the_running_generation() -> None:
    lag_s = 0.0
    async with stage("de", partials={"pace_s": 0.0, "lag_s": lambda: lag_s}) as r:
        r.hear("we will")
        await until(lambda: r.engine.running)
        lag_s = 10.0
        r.hear("we will meet", 2)
        await idle()
        assert [request.text for request in r.engine.pending()] == ["we will"]
        lag_s = 0.0
        await until(lambda: len(r.engine.requests) == 2)
        assert [request.text for request in r.engine.pending()] == ["we will meet"]


async def test_the_lateness_of_a_shared_machine_changes_nothing() -> None:
    async with stage("de", partials={"pace_s": 0.0, "lag_s": lambda: 0.003}) as r:
        r.hear("we will")
        await idle()
        assert [request.text for request in r.engine.requests] == ["we will"]


async def test_the_same_words_again_are_not_translated_again() -> None:
    async with stage("de") as r:
        await spoken(r, SERIES[:1])
        r.hear("we will", 2)
        await idle()
        assert len(r.engine.requests) == 1
        r.hear("we will meet", 3)
        await until(lambda: len(r.engine.requests) == 2)
        r.hear("we will meet", 4)
        await idle()
        assert len(r.engine.requests) == 2
        assert len(r.engine.running) == 1


async def test_superseded_text_is_the_next_draft() -> None:
    async with stage("de") as r:
        await spoken(r, SERIES[:2])
        assert r.engine.requests[-1].draft == "Wir"
        r.hear("we will meet on", 3)
        await until(lambda: len(r.engine.requests) == 3)
        request = r.engine.requests[-1]
        assert (request.prefix, request.draft, request.final, request.priority) == ("", "Wir treffen", False, 1)


async def test_a_rejected_revision_leaves_what_is_shown() -> None:
    async with stage() as r:
        live = await r.reader("live")
        await spoken(r, SERIES)
        live.look()
        r.hear("they met", 9)
        await until(lambda: r.engine.running)
        r.engine.running[r.engine.requests[-1].id].set_result(
            TokenEvent("", tokens=1, finish=FinishReason.REJECTED)
        )
        await until(lambda: not r.engine.running)
        await idle()
        assert live.look() == []


async def test_a_model_that_disagrees_freezes_nothing() -> None:
    """Each rejection lets it go on from what it likes less; the next utterance begins afresh."""
    async with stage("de") as r:
        await spoken(r, SERIES)
        tolerances = []
        for rev in range(10, 13):
            r.hear(f"they met {rev}", rev)
            await until(lambda: r.engine.running)
            tolerances.append(r.engine.requests[-1].tolerance)
            r.engine.says("", FinishReason.REJECTED)
            await until(lambda: not r.engine.running)
            await idle()
        assert tolerances == [TOLERANCE, 2 * TOLERANCE, 4 * TOLERANCE]
        r.hear("then", 1, utterance="next")
        await until(lambda: r.engine.running)
        assert r.engine.requests[-1].tolerance == TOLERANCE
        r.engine.says("dann")
        await until(lambda: not r.engine.running)


async def test_the_final_ends_the_generation_of_the_partial() -> None:
    async with stage() as r:
        live = await r.reader("live")
        await spoken(r, SERIES)
        r.hear("we will meet on friday at", 9)
        await until(lambda: r.engine.running)
        await r.final("We will meet on Friday.")
        await until(lambda: r.engine.requests[-1].final and len(r.engine.running) == 1)
        r.engine.says("Wir treffen uns am Freitag.")
        await r.finals.quiet()
        live.look()
        assert live.committed["de"] == "Wir treffen uns am Freitag."
        assert nothing_is_live(r)


async def test_generation_ending_with_the_final_is_not_shown() -> None:
    async with stage() as r:
        live = await r.reader("live")
        await spoken(r, SERIES)
        r.hear("we will meet on friday at noon today", 9)
        await r.says("Wir treffen uns am Freitag um zwölf")
        await r.final("We will meet on Friday.")
        await until(lambda: r.engine.requests[-1].final and r.engine.running)
        live.look()
        assert r.engine.requests[-1].prefix == live.committed["de"]
        r.engine.says("Wir treffen uns am Freitag.")
        await r.finals.quiet()
        live.look()
        assert live.committed["de"] == "Wir treffen uns am Freitag."


async def test_nothing_is_shown_while_a_final_is_logged() -> None:
    async with stage() as r:
        live = await r.reader("live")
        await spoken(r, SERIES)
        r.hear("we will meet on friday at noon today", 9)
        await until(lambda: r.engine.running)
        (partial,) = r.engine.pending()
        r.log.open.clear()
        accepting = asyncio.create_task(r.final("We will meet on Friday."))
        await asyncio.sleep(0)
        r.engine.end(partial, "Wir treffen uns am Freitag um zwölf")
        await idle()
        r.log.open.set()
        await accepting
        await until(lambda: any(request.final for request in r.engine.pending()))
        live.look()
        assert r.engine.requests[-1].prefix == live.committed["de"] == "Wir treffen"
        r.engine.says("Wir treffen uns am Freitag.")
        await r.finals.quiet()
        live.look()
        assert live.committed["de"] == "Wir treffen uns am Freitag."


# ---------------------------------------------------------------- finals go first


async def test_finals_preempt_partials_which_resume() -> None:
    async with stage(max_running=2) as r:
        live = await r.reader("live")
        r.hear("we", utterance="partial")
        await until(lambda: r.engine.running)
        await r.final("One.", utterance="1")
        await r.final("Two.", utterance="2")
        await until(lambda: len(r.engine.requests) >= 3)
        await until(lambda: all(request_id.startswith("final") for request_id in r.engine.running))
        assert len(r.engine.running) == 2
        assert r.scheduler.waiting == 1
        r.engine.says("Eins.", request=1)
        await until(lambda: len(r.engine.requests) == 4)
        assert (r.engine.requests[-1].text, r.engine.requests[-1].final) == ("we", False)
        r.engine.says("Wir")
        r.engine.says("Zwei.", request=2)
        await r.finals.quiet()
        live.look()
        assert [m.text for m in live.messages if isinstance(m, TranslationFinal)] == ["Eins.", "Zwei."]


async def test_partials_take_half_of_the_engine_at_most() -> None:
    async with stage("de", max_running=4) as r:
        for number in range(3):
            r.hear("we", utterance=str(number))
        await until(lambda: len(r.engine.running) == 2)
        await idle()
        assert (len(r.engine.running), r.scheduler.waiting) == (2, 1)
        await r.final("One.", utterance="x")
        await until(lambda: len(r.engine.running) == 3)


# ---------------------------------------------------------------- ends


async def test_dead_engine_leaves_the_utterance_to_its_final() -> None:
    async with stage("de") as r:
        r.hear("we", 1)
        await until(lambda: r.engine.running)
        r.engine.dies()
        await until(lambda: not r.engine.running)
        await idle()
        r.hear("we will", 2)
        await idle()
        assert len(r.engine.requests) == 1
        await r.final("We will.")
        await r.says("Wir werden.")
        await r.finals.quiet()


async def test_who_leaves_takes_what_they_were_saying_along() -> None:
    async with stage() as r:
        ana = await r.reader("live", participant="ana")
        await r.reader("live")
        r.hear("we", 1)
        await until(lambda: r.engine.running)
        r.partials.speaker_left(r.room, "ana", for_good=True)
        r.room.leave(ana.member)
        await until(lambda: not r.engine.running)
        assert nothing_is_live(r)


async def test_utterance_after_absence_is_left_to_its_final() -> None:
    async with stage() as r:
        live = await r.reader("live")
        await spoken(r, SERIES)
        r.partials.speaker_away(r.room, "ana")
        live.look()
        count = len(r.engine.requests)
        r.hear("we will meet on friday at noon", 9)
        await idle()
        assert len(r.engine.requests) == count
        newcomer = await r.reader("stable")
        await r.final("We will meet on Friday.")
        await until(lambda: r.engine.running)
        assert r.engine.requests[-1].prefix == "Wir treffen"
        r.engine.says("Wir treffen uns am Freitag.")
        await r.finals.quiet()
        for screen in (live, newcomer):
            screen.look()
            assert screen.committed["de"] == "Wir treffen uns am Freitag."
        assert nothing_is_live(r)


async def test_second_absence_leaves_no_caption() -> None:
    async with stage("de") as r:
        r.hear("we")
        r.partials.speaker_away(r.room, "ana")
        r.hear("we will", 2)
        assert [caption.utterance.text for caption in r.room.live.captions] == ["we will"]
        r.partials.speaker_away(r.room, "ana")
        assert list(r.room.live.captions) == []


async def test_unfinished_utterances_are_forgotten() -> None:
    async with stage("de", max_running=500) as r:
        for number in range(300):
            r.hear("we", utterance=str(number))
            r.partials.speaker_away(r.room, "ana")
        assert len(list(r.room.live.partials("de"))) == 20
        r.partials.speaker_left(r.room, "ana", for_good=True)
        assert nothing_is_live(r)


async def test_fourth_open_utterance_ends_the_first() -> None:
    async with stage("de", max_running=32) as r:
        for number in range(4):
            r.hear("we", utterance=str(number))
        await until(lambda: len(r.engine.running) == 3)
        assert {caption.utterance.id for caption in r.room.live.captions} == set("123")
        r.hear("we will", 2, utterance="0")
        await idle()
        assert "we will" not in [request.text for request in r.engine.requests]


async def test_slow_engine_still_shows_partials() -> None:
    async with stage() as r:
        live = await r.reader("live")
        words = "we will all meet again on friday at noon".split()  # noqa: SIM905
        for count in range(1, len(words) + 1):
            r.hear(" ".join(words[:count]), count)
            await idle()
            if count % 3 == 0 and (pending := r.engine.pending()):
                r.engine.end(
                    pending[-1], " ".join(["Wir", "werden", "uns", "alle", "wieder", "treffen"][: count - 2])
                )
                await idle()
        live.look()
        assert live.committed.get("de", "") + live.tentative.get("de", "")


async def test_finals_inside_the_engine_preempt_too() -> None:
    async with stage(max_running=2) as r:
        [lane] = r.scheduler._lanes
        lane._lookahead = 2
        await r.reader("live")
        r.hear("we", utterance="partial")
        await until(lambda: r.engine.running)
        for number in range(2):
            await r.final("One.", utterance=str(number))
        await until(lambda: len(r.engine.running) == 2)
        await until(lambda: all(request.final for request in r.engine.pending()))


async def test_spoken_language_is_translated_no_further() -> None:
    async with stage("de") as r:
        r.hear("we will", 1)
        await until(lambda: r.engine.running)
        german = Utterance("u", 2, "wir", "de", "ana", "Ana", False)
        r.partials.hear(r.room, german)
        await until(lambda: not r.engine.running)


async def test_leaving_the_partials_ends_every_generation() -> None:
    async with stage("de") as r:
        r.hear("we")
        await until(lambda: r.engine.running)
    assert r.engine.running == {}
    assert (r.scheduler.running, r.scheduler.waiting) == (0, 0)


async def test_revision_without_room_is_dropped() -> None:
    async with stage() as r:
        captions = await r.reader("live", "en")
        await r.reader("live")
        r.engine.state = EngineState.FAILED
        r.hear("we will")
        await idle()
        r.engine.state = EngineState.READY
        r.hear("we will meet", 2)
        await until(r.engine.pending)
        assert [request.text for request in r.engine.requests] == ["we will meet"]
        assert [m.text for m in captions.look() if isinstance(m, Caption)] == ["we will", "we will meet"]


async def test_bug_leaves_one_utterance_to_its_final(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage("de") as r:
        with monkeypatch.context() as broken:
            broken.setattr("gateway.translation.commit_policy.CommitPolicy.take_hypothesis", None)
            r.hear("we")
            await until(r.engine.pending)
            r.engine.says("Wir")
            await until(lambda: caplog.records)
        r.hear("we will", 2)
        r.hear("hello", utterance="other")
        await until(r.engine.pending)
        assert [request.text for request in r.engine.requests] == ["we", "hello"]
        await r.final("We will.")
        await until(lambda: r.engine.requests[-1].final)


async def test_bug_before_a_generation_spares_the_speaker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage("de") as r:
        with monkeypatch.context() as broken:
            broken.setattr(r.scheduler, "admit", None)
            r.hear("we")
        assert [record.getMessage() for record in caplog.records] == [
            "an unfinished utterance is left to its final"
        ]
        r.hear("we will", 2)
        r.hear("hello", utterance="other")
        await until(r.engine.pending)
        assert [request.text for request in r.engine.requests] == ["hello"]


# ---------------------------------------------------------------- any order


WORDS = st.sampled_from(["we", "will", "meet", "on", "friday", "not", "5", "5,500"])

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("hear"), st.lists(WORDS, min_size=1, max_size=8)),
        st.tuples(st.just("answer"), st.lists(WORDS, max_size=8)),
        st.tuples(st.sampled_from(["reject", "idle", "join", "busy"]), st.just([])),
    ),
    max_size=40,
)


@given(STEPS, st.lists(WORDS, min_size=1, max_size=8))
@settings(max_examples=150)
def test_committed_text_grows_until_one_final(steps: list[tuple[str, list[str]]], last: list[str]) -> None:
    asyncio.run(_play(steps, " ".join(last)))


async def _play(steps: list[tuple[str, list[str]]], last: str) -> None:
    """Revisions, outcomes, newcomers and finals of others in any order; then the final."""
    async with stage(max_running=2) as r:
        live, stable, final = await r.reader("live"), await r.reader("stable"), await r.reader("final")
        screens = [live, stable]
        for number, (step, words) in enumerate(steps):
            match step:
                case "hear":
                    r.hear(" ".join(words), number + 1)
                case "answer":
                    for request in r.engine.pending():
                        r.engine.end(request, " ".join([*request.prefix.split(), *words]))
                case "reject":
                    for request in r.engine.pending():
                        if not request.final:
                            r.engine.end(request, "", FinishReason.REJECTED)
                case "join":
                    screens.append(await r.reader("stable"))
                case "busy":
                    await r.final("busy", utterance=f"other-{number}")
            await idle()
            partials = [request for request in r.engine.pending() if not request.final]
            assert len(partials) <= 1
            for screen in (live, *screens):
                screen.look()
            # A newcomer has what the others have, and nobody has more.
            assert len({screen.committed_of("u") for screen in screens}) == 1
        await r.final(last)
        await until(lambda: r.engine.running)
        while r.engine.running or r.scheduler.waiting:
            for request in r.engine.pending():
                r.engine.end(request, " ".join([*request.prefix.split(), "done"]))
            await idle()
        await r.finals.quiet()
        for screen in (*screens, final):
            screen.look()
            ends = [m for m in screen.messages if isinstance(m, TranslationFinal) and m.utterance == "u"]
            assert len(ends) == 1
            assert ends[0].text.startswith(screen.committed_of("u"))
        assert final.committed_of("u") == ""


# ---------------------------------------------------------------- over real sockets


@swiftly
async def test_late_gateway_translates_only_finals() -> None:
    async with (
        running() as gateway,
        joined(gateway, speaks="en") as ana,
        joined(gateway, reads=["ja"]) as bo,
    ):
        gateway.gateway._lag.late(1.0)  # somebody's long computation
        await ana.peer.send(UtterancePartial("1", 1, "I was going to"), say("2", "SLOW going"))
        await bo.until(TranslationFinal)
        assert {m.utterance for m in await bo.everything() if isinstance(m, TranslationDelta)} == {"2"}


# ---------------------------------------------------------------- memory


async def test_full_budget_ends_the_largest_account() -> None:
    async with stage(partials={"max_bytes": 190_000}) as r:
        screen = await r.reader("live")
        for name, account in (("ana", "a"), ("bo", "a"), ("cy", "c")):
            member = Member(participant=name, name=name, speaks="en", reads=(), stability="final", account=account)
            r.room.join(member)
            r.hear("x" * 1_000, participant=name)
        r.hear("y" * 1_000, 2, participant="ana")
        r.hear("x" * 1_000, utterance="v", participant="cy")
        assert not [m for m in screen.look() if isinstance(m, UtteranceCancelled)]
        r.hear("x" * 1_000, utterance="v", participant="bo")
        assert [m for m in screen.look() if isinstance(m, UtteranceCancelled)] == [UtteranceCancelled("bo", "u")]
        for name in ("ana", "bo", "cy"):
            r.partials.speaker_left(r.room, name, for_good=True)
        assert nothing_is_live(r)


async def test_text_beyond_the_budget_is_not_kept() -> None:
    async with stage(partials={"max_bytes": 1_000}) as r:
        screen = await r.reader("live")
        for rev, text in enumerate(("we", "we will"), 1):
            r.hear(text, rev)
            assert nothing_is_live(r)
        await r.final("We will meet.")
        await r.says("Wir treffen uns.")
        await until(lambda: [m for m in screen.look() if isinstance(m, TranslationFinal)])


async def test_partials_need_a_lane_for_their_pair() -> None:
    async with stage() as r:
        r.engine.pairs = frozenset({("en", "de")})
        await r.reader("live", "de")
        await r.reader("live", "ja")
        r.hear("Good")
        await until(r.engine.pending)
        await idle()
        assert [request.target for request in r.engine.requests] == ["de"]


# ---------------------------------------------------------------- traces


async def test_traced_final_tells_of_its_partials() -> None:
    with recording() as spans:
        async with stage("de") as r:
            await spoken(r, SERIES[:2])
            assert spans == []
            await r.final("We will meet.", traceparent=f"00-{7:032x}-{7:016x}-01")
            [partials] = [span for span in spans if span.name == "partials"]
            assert partials.fields == {"source": "en", "target": "de", "translated": 2}
            await r.final("Something else.", utterance="v")
            assert sum(span.name == "partials" for span in spans) == 1


async def test_languages_refused_together_are_tried_singly() -> None:
    async with stage("de fr") as r:
        r.quota = Quota(waiting=1)
        r.hear("we")
        await until(lambda: len(r.engine.pending()) == 2)


async def test_bug_at_an_end_spares_other_generations() -> None:
    async with stage("de") as r:
        r.hear("we")
        r.hear("hi", utterance="v")
        await until(lambda: len(r.engine.pending()) == 2)
        first, second = r.engine.pending()
        sound, r.partials._lag_s = r.partials._lag_s, lambda: 1 / 0
        r.engine.end(first, "Wir")
        await idle()
        r.partials._lag_s = sound
        assert r.engine.pending() == [second]
        r.engine.end(second, "Hallo")
        await idle()
        r.hear("hi there", 2, utterance="v")
        await until(r.engine.pending)


# ---------------------------------------------------------------- the budget


def test_largest_account_gives_way_first() -> None:
    budget = LiveBudget[str](max_bytes=10)
    budget.use("small", "s", 3)
    budget.use("large", "a", 3)
    budget.use("large", "b", 4)
    assert budget.excess() is None
    budget.use("large", "a", 4)
    assert budget.excess() == "b"
    budget.release("b")
    budget.release("b")
    assert (budget.excess(), budget.bytes) == (None, 7)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["use", "use", "release"]),
            st.sampled_from("xyz"),
            st.integers(0, 9),
            st.integers(0, 50),
        )
    )
)
def test_budget_sum_stays_within_bounds(steps: list[tuple[str, str, int, int]]) -> None:
    budget = LiveBudget[int](max_bytes=100)
    held: dict[int, int] = {}
    for step, account, name, size in steps:
        if step == "release":
            budget.release(name)
            held.pop(name, None)
        else:
            budget.use(account, name, size)
            held[name] = size
        while (excess := budget.excess()) is not None:
            budget.release(excess)
            del held[excess]
        assert budget.bytes == sum(held.values()) <= 100
    for name in list(held):
        budget.release(name)
    assert not any(vars(budget)[name] for name in ("_bytes", "_held", "_bytes_of", "_accounts"))

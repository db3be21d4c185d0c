"""Two gateways with one meeting: what readers at one of them see of what is said at the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.live import Asked, Ended, GrowingFinal, LiveEvent, Partial, Reads, Revised, Withdrawn
from gateway.domain.sessions import Preferences
from gateway.meeting import other_gateways
from gateway.meeting.live_view import HERE
from gateway.protocol.messages import (
    Caption,
    TranslationDelta,
    TranslationFinal,
    UtteranceCancelled,
)
from tests.live_channel import MemoryLiveChannel, Switchboard
from tests.logs import utterance
from tests.translation.stage import Log, Screen, Stage, idle, nothing_is_live, stage, until
from tests.translation.test_partials import SERIES, spoken


class Channel(MemoryLiveChannel):
    """Loses what the test says; `sent` has all of it."""

    def __init__(self, switchboard: Switchboard) -> None:
        super().__init__(switchboard)
        self.sent: list[LiveEvent] = []
        self.loses: Callable[[LiveEvent], bool] = lambda _: False

    def send(self, meeting: str, event: LiveEvent) -> None:
        self.sent.append(event)
        if not self.loses(event):
            super().send(meeting, event)


class Two:
    """Ana speaks here; everybody else is there."""

    def __init__(self, here: Stage, there: Stage, from_here: Channel, from_there: Channel) -> None:
        self.here, self.there = here, there
        self.from_here, self.from_there = from_here, from_there


@contextlib.asynccontextmanager
async def two() -> AsyncIterator[Two]:
    switchboard, log = Switchboard(), Log()
    one, another = Channel(switchboard), Channel(switchboard)
    async with stage(log=log, channel=one) as here, stage(log=Log(store=log.store), channel=another) as there:
        await idle()
        yield Two(here, there, one, another)
        await here.room.close()
        await there.room.close()


async def say_final(t: Two, text: str, translation: str, utterance: str = "u") -> None:
    await t.here.final(text, utterance=utterance)
    await until(t.here.engine.pending)
    t.here.engine.says(translation)
    await t.here.finals.quiet()
    await until(lambda: t.there.room.offset == t.here.room.offset)
    await idle()


def seen(screen: Screen) -> tuple[str, str]:
    screen.look()
    return screen.committed.get("de", ""), screen.tentative.get("de", "")


async def test_readers_at_both_gateways_see_the_same() -> None:
    async with two() as t:
        screens = [
            await at.reader(stability) for at in (t.here, t.there) for stability in ("live", "stable", "final")
        ]
        await idle()
        await spoken(t.here, SERIES)
        assert [seen(screen) for screen in screens] == 2 * [("Wir treffen", " uns"), ("Wir treffen", ""), ("", "")]
        await say_final(t, "We will meet on Friday.", "Wir treffen uns am Freitag.")
        # The last text may come after the final, which has all of it.
        for screen in screens:
            assert "Wir treffen uns am Freitag.".startswith(seen(screen)[0])
        for screen in screens:
            assert sum(isinstance(message, TranslationFinal) for message in screen.messages) == 1
        assert len(t.here.engine.requests) == len(SERIES) + 1
        assert t.there.engine.requests == []
        assert nothing_is_live(t.there)


async def test_languages_read_elsewhere_are_translated_here() -> None:
    async with two() as t:
        live = await t.there.reader("live")
        await idle()
        await spoken(t.here, SERIES)
        assert seen(live) == ("Wir treffen", " uns")


async def test_texts_without_live_readers_are_not_sent() -> None:
    async with two() as t:
        await t.here.reader("live")
        await t.there.reader("final")
        await idle()
        t.from_here.sent.clear()
        await spoken(t.here, SERIES)
        await say_final(t, "We will meet on Friday.", "Wir treffen uns am Freitag.")
        assert {type(event) for event in t.from_here.sent} == {Revised}


async def test_captions_and_their_end_are_seen_elsewhere() -> None:
    async with two() as t:
        english = await t.there.reader("live", "en")
        await idle()
        t.here.hear("we will")
        await idle()
        t.here.partials.withdraw(t.here.room, ("ana", "u"))
        await idle()
        t.here.hear("we meet", utterance="v")
        await idle()
        await t.here.final("We meet.", utterance="v")
        await idle()
        assert [(type(message), getattr(message, "final", None)) for message in english.look()] == [
            (Caption, False),
            (UtteranceCancelled, None),
            (Caption, False),
            (Caption, True),
        ]
        assert not list(t.there.room.live.captions)


@contextlib.asynccontextmanager
async def past_their_budget(t: Two) -> AsyncIterator[None]:
    """What waits there waits while the context lasts."""
    turns = t.there.room.turns
    turns.charge(t.there.room._payer("ana"), 1e9)
    held = turns._next = asyncio.get_running_loop().call_later(3_600, lambda: None)
    yield
    await idle()
    held.cancel()
    turns._go_on()
    await until(lambda: turns._next is None)


@pytest.mark.parametrize("kept", [0, 50])
async def test_no_caption_is_seen_elsewhere_after_its_final(kept: int) -> None:
    async with two() as t:
        english = await t.there.reader("live", "en")
        await idle()
        t.there.room.history.keep = kept
        async with past_their_budget(t):
            t.here.hear("we", 1)
            await idle()
            await t.here.final("We will.", utterance="u")
            await until(lambda: t.there.room.offset == t.here.room.offset)
        assert [(m.text, m.final) for m in english.look() if isinstance(m, Caption)] == [("We will.", True)]
        assert not list(t.there.room.live.captions)


@pytest.mark.parametrize("kept", [0, 50])
async def test_a_withdrawal_is_seen_elsewhere_before_the_final(kept: int) -> None:
    async with two() as t:
        english = await t.there.reader("live", "en")
        await idle()
        t.here.hear("we", 1)
        await idle()
        t.there.room.history.keep = kept
        async with past_their_budget(t):
            t.here.partials.withdraw(t.here.room, ("ana", "u"))
            await idle()
            await t.here.final("They will.", utterance="u")
            await until(lambda: t.there.room.offset == t.here.room.offset)
        assert [type(message) for message in english.look()] == [Caption, UtteranceCancelled, Caption]


async def test_nothing_is_shown_elsewhere_of_who_has_left() -> None:
    async with two() as t:
        english = await t.there.reader("live", "en")
        await idle()
        async with past_their_budget(t):
            t.here.hear("we", 1)
            await idle()
            t.here.partials.speaker_left(t.here.room, "ana", for_good=False)
        assert english.look() == []
        assert not list(t.there.room.live.captions)


async def test_nothing_is_shown_of_a_gateway_that_is_gone() -> None:
    async with two() as t:
        english = await t.there.reader("live", "en")
        await idle()
        async with past_their_budget(t):
            t.here.hear("we", 1)
            await idle()
            others = t.there.room.other_gateways
            others._lose(tuple(others._gateways))
        assert english.look() == []


async def test_few_captions_of_a_speaker_elsewhere_wait() -> None:
    async with two() as t:
        t.from_here.loses = lambda event: isinstance(event, Ended)
        english = await t.there.reader("live", "en")
        await idle()
        async with past_their_budget(t):
            for n in range(20):
                t.here.hear(f"we say {n}", 1, utterance=f"u{n}")
                await idle()
        assert [m.text for m in english.look()] == ["we say 17", "we say 18", "we say 19"]


async def test_past_its_budget_a_meeting_sees_the_newest() -> None:
    async with two() as t:
        english = await t.there.reader("live", "en")
        await idle()
        t.there.room.turns.charge(t.there.room._payer("ana"), 1e9)
        for rev, text in enumerate(["we", "we will"], 1):
            t.here.hear(text, rev)
            t.here.hear("so", rev, utterance="v")
        t.here.partials.withdraw(t.here.room, ("ana", "v"))
        await idle()
        told = [getattr(message, "text", message.utterance) for message in english.look()]
        assert told == ["we will", "v"], "the withdrawal of what may have been seen at its own gateway"


async def test_captions_travel_without_translation_options() -> None:
    async with two() as t:
        t.here.partials.hear(t.here.room, utterance("hi", final=False))
        [revised] = [event for event in t.from_here.sent if isinstance(event, Revised)]
        assert (revised.utterance.text, revised.utterance.context, revised.utterance.glossary) == ("hi", (), ())


async def test_late_gateway_is_told_what_is_shown() -> None:
    async with two() as t:
        await t.there.room.close()
        await t.here.reader("live")
        await spoken(t.here, SERIES)
        await t.there.room.open()
        await idle()
        await t.there.reader("live")
        await idle()
        # Its readers' languages are known now, and somebody asks for what was lost.
        t.from_there.send("m", Asked())
        await idle()
        late = await t.there.reader("live")
        english = await t.there.reader("live", "en")
        assert seen(late) == ("Wir treffen", " uns")
        assert [type(message) for message in english.look()] == [Caption]


async def test_text_that_was_lost_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_gateways, "_ASK_S", 0.0)
    async with two() as t:
        reader = await t.there.reader("live")
        await idle()
        await t.here.final("We meet.")
        await until(t.here.engine.pending)
        [shown] = t.here.room.live.finals("de")
        t.here.room.show_final(shown, "Wir ")
        t.from_here.loses = lambda event: isinstance(event, GrowingFinal)
        t.here.room.show_final(shown, "treffen ")
        t.from_here.loses = lambda event: False
        t.here.room.show_final(shown, "uns")
        await idle()
        assert seen(reader)[0] == "Wir treffen uns"


async def test_contradicting_text_is_not_shown() -> None:
    async with two() as t:
        reader = await t.there.reader("live")
        await idle()
        await spoken(t.here, SERIES)
        before = seen(reader)
        t.from_here.send("m", Partial("ana", "u", "de", 9, "Ihr geht", " dann"))
        await idle()
        assert seen(reader) == before
        await t.here.final("We will meet on Friday.")
        await until(t.here.engine.pending)
        t.from_here.send("m", GrowingFinal("ana", "u", "de", 9, t.here.room.offset, 0, "Ihr geht dann"))
        await idle()
        assert seen(reader)[0] == before[0]


async def test_what_comes_after_the_final_is_not_shown() -> None:
    async with two() as t:
        english, german = await t.there.reader("live", "en"), await t.there.reader("live")
        await idle()
        await spoken(t.here, SERIES)
        await say_final(t, "We will meet on Friday.", "Wir treffen uns am Freitag.")
        english.look()
        german.look()
        late = [event for event in t.from_here.sent if isinstance(event, Revised | Partial | GrowingFinal)]
        assert {type(event) for event in late} == {Revised, Partial, GrowingFinal}
        for event in (*late, Withdrawn("ana", "u")):
            t.from_here.send("m", event)
        await idle()
        assert english.look() == german.look() == []
        assert nothing_is_live(t.there)


async def test_text_before_its_source_waits() -> None:
    async with two() as t:
        reader = await t.there.reader("live")
        await idle()
        t.from_here.send("m", GrowingFinal("ana", "u", "de", 1, t.there.room.offset + 1, 0, "Wir"))
        await idle()
        assert reader.look() == []
        await t.here.final("We meet.")
        await idle()
        assert seen(reader)[0] == "Wir"


async def test_repetition_is_sent_once_unless_maybe_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two() as t:
        readers = [await at.reader("live", "en") for at in (t.here, t.there)]
        await idle()
        for rev in range(1, 20):
            t.here.hear("we will", rev)
        await idle()
        assert sum(isinstance(event, Revised) for event in t.from_here.sent) == 1
        for reader in readers:
            assert [m.text for m in reader.look()] == ["we will"]
        for at in (t.here, t.there):
            assert [caption.utterance.rev for caption in at.room.live.captions] == [19 if at is t.here else 1]
            latecomer = await at.reader("live", "en")
            assert [m.text for m in latecomer.look()] == ["we will"]
        t.here.partials.speaker_away(t.here.room, "ana")
        t.here.hear("we will", 20)
        await idle()
        assert [m.text for m in readers[1].look()] == ["we will"]
        monkeypatch.setattr(other_gateways, "_GONE_S", -1.0)
        t.there.room.other_gateways.sweep()
        monkeypatch.undo()
        t.there.room.other_gateways._asked_s = float("-inf")
        t.here.room.other_gateways._tell_reads()
        await idle()
        assert [type(m) for m in readers[1].look()] == [UtteranceCancelled, Caption]


async def test_an_end_that_was_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two() as t:
        english = await t.there.reader("live", "en")
        await idle()
        for name in ("u", "v"):
            t.here.hear("we will", utterance=name)
        await idle()
        english.look()
        t.from_here.loses = lambda event: isinstance(event, Withdrawn)
        t.here.partials.withdraw(t.here.room, ("ana", "u"))
        monkeypatch.setattr(other_gateways, "_DOUBT_S", -1.0)
        t.there.room.other_gateways._may_have_missed()
        await idle()
        t.there.room.other_gateways.sweep()
        assert english.look() == [UtteranceCancelled("ana", "u")]
        assert [caption.utterance.id for caption in t.there.room.live.captions] == ["v"]


async def test_a_gateway_that_is_silent_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two() as t:
        await t.there.reader("live")
        await idle()
        t.here.hear("we will")
        await idle()
        assert t.here.room.languages() == {"de"} == t.here.room.live_languages()
        for at in (t.here, t.there):
            at.room.other_gateways.sweep()
        assert t.here.room.languages() == {"de"}
        assert list(t.there.room.live.captions)
        monkeypatch.setattr(other_gateways, "_GONE_S", -1.0)
        for at in (t.here, t.there):
            at.room.other_gateways.sweep()
        assert t.here.room.languages() == set()
        assert not list(t.there.room.live.captions)


async def test_gateways_announce_themselves_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two() as t:
        t.from_here.sent.clear()
        t.here.room.other_gateways.sweep()
        assert t.from_here.sent == []
        monkeypatch.setattr(other_gateways, "_PRESENT_S", 0.0)
        t.here.room.other_gateways.sweep()
        assert t.from_here.sent == [Reads((), ())]


async def test_remote_reads_are_known_as_they_change() -> None:
    async with two() as t:
        reader = await t.there.reader("live")
        await idle()
        room = t.there.room
        room.update(reader.member, "", Preferences(None, ("fr",), "final"))
        await idle()
        assert t.here.room.languages() == {"fr"}
        assert not t.here.room.live_languages()
        room.leave(reader.member)
        await room.tell_languages()
        await idle()
        assert t.here.room.languages() == set()


async def test_speaker_moving_gateways_continues_the_shown_text() -> None:
    async with two() as t:
        readers = [await t.here.reader("live"), await t.there.reader("live")]
        await idle()
        await spoken(t.here, SERIES)
        await spoken(t.there, [("we will meet on friday", "Wir treffen uns am Freitag")])
        assert t.there.engine.requests[-1].prefix == "Wir treffen"
        await t.there.final("We will meet on Friday.")
        await until(t.there.engine.pending)
        assert t.there.engine.requests[-1].prefix == "Wir treffen"
        [shown] = [each for each in t.there.room.live.finals("de") if each.origin == HERE]
        t.there.room.show_final(shown, " uns am Freitag.")
        await idle()
        for reader in readers:
            assert seen(reader)[0] == "Wir treffen uns am Freitag."


async def test_abandoned_partial_is_hidden_from_remote_latecomers() -> None:
    async with two() as t:
        await t.there.reader("live")
        await idle()
        await spoken(t.here, SERIES)
        t.here.partials.speaker_away(t.here.room, "ana")
        await idle()
        assert not list(t.there.room.live.captions)
        assert [shown.committed for shown in t.there.room.live.partials("de")] == ["Wir treffen"]
        t.here.partials.speaker_left(t.here.room, "ana", for_good=False)
        await idle()
        assert nothing_is_live(t.there)


async def test_an_older_revision_that_comes_late_changes_nothing() -> None:
    async with two() as t:
        t.here.hear("we will", 2)
        t.here.hear("we", 1)
        await idle()
        assert [caption.utterance.text for caption in t.there.room.live.captions] == ["we will"]


async def test_captions_with_lost_ends_are_few_per_speaker() -> None:
    async with two() as t:
        t.from_here.loses = lambda event: isinstance(event, Withdrawn)
        for number in range(9):
            t.here.hear("we will", utterance=str(number))
            t.here.partials.withdraw(t.here.room, ("ana", str(number)))
        await idle()
        assert [caption.utterance.id for caption in t.there.room.live.captions] == ["6", "7", "8"]


WORDS = st.lists(st.sampled_from(["we", "will", "meet", "on", "friday"]), min_size=1, max_size=6)
STEPS = st.lists(
    st.tuples(st.sampled_from(["hear", "answer", "final", "sweep", "ask"]), WORDS, st.booleans()), max_size=30
)


@given(STEPS)
@settings(max_examples=100)
def test_losses_leave_remote_readers_a_prefix(
    steps: list[tuple[str, list[str], bool]],
) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, list[str], bool]]) -> None:
    async with two() as t:
        here, there = await t.here.reader("stable"), await t.there.reader("stable")
        await idle()
        current = 0
        for number, (step, words, lost) in enumerate(steps, 1):
            t.from_here.loses = lambda _, lost=lost: lost  # type: ignore[misc]
            match step:
                case "hear":
                    t.here.hear(" ".join(words), number, utterance=str(current))
                case "answer":
                    for request in t.here.engine.pending():
                        t.here.engine.end(request, " ".join([*request.prefix.split(), *words]))
                case "final":
                    await t.here.final(" ".join(words), number, utterance=str(current))
                    current += 1
                case "sweep":
                    t.there.room.other_gateways.sweep()
                case "ask":
                    t.from_there.send("m", Asked())
            await idle()
            here.look()
            there.look()
            for utterance in map(str, range(current + 1)):
                assert here.committed_of(utterance).startswith(there.committed_of(utterance))
        t.from_here.loses = lambda _: False
        while t.here.engine.running or t.here.scheduler.waiting:
            for request in t.here.engine.pending():
                t.here.engine.end(request, " ".join([*request.prefix.split(), "done"]))
            await idle()
        await t.here.finals.quiet()
        await idle()
        for screen in (here, there):
            screen.look()
            finals = [message.utterance for message in screen.messages if isinstance(message, TranslationFinal)]
            assert sorted(finals) == sorted(map(str, range(current)))
        assert not list(t.there.room.live.finals())
        deltas = [message for message in there.messages if isinstance(message, TranslationDelta)]
        assert all(message.tentative == "" for message in deltas)

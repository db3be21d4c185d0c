"""A talk in segments: what is accepted while it goes on, what its final adds, and how another gateway goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.errors import Overloaded, TooManyInFlight, UtteranceFinished
from gateway.domain.log import Accepted, Said, Utterance
from gateway.engines.prompting.families import FAMILIES
from gateway.protocol.messages import (
    Caption,
    TranslationDelta,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancelled,
)
from gateway.stores.memory_log import MemoryStore
from gateway.translation.speech import Speech
from tests.clocks import swiftly
from tests.engines.prompting.prompts import asked
from tests.translation.engines import AnsweredEngine
from tests.translation.stage import Log, Screen, Stage, said, stage, until
from tests.usual import usual


class Talk:
    """What ana says, at one gateway: `speech`."""

    def __init__(
        self, made: Stage, in_flight: int = 100, segment_chars: int = 40, *, takes_context: bool = False
    ) -> None:
        self.stage = made
        self.takes_context = takes_context
        self.in_flight = in_flight
        self.segment_chars = segment_chars
        self.rev = 0
        self.another_gateway()

    def another_gateway(self) -> None:
        """Nothing is known of what was said; the log is the same."""
        self.speech = usual(
            Speech,
            self.stage.finals,
            self.stage.partials,
            segment_chars=self.segment_chars,
            text_chars=2_000,
            in_flight=self.in_flight,
            takes_context=lambda: self.takes_context,
        )

    def utterance(self, text: str, *, final: bool, **times: Any) -> Utterance:
        self.rev += 1
        made = said(text, self.rev, "u", "ana", final=final)
        return Utterance(**{**{name: getattr(made, name) for name in made.__struct_fields__}, **times})

    async def hears(self, *texts: str, **times: Any) -> None:
        for text in texts:
            utterance = self.utterance(text, final=False, **times)
            if self.speech.hear(self.stage.room, utterance):
                await self.speech.settle(self.stage.room, utterance)

    async def ends(self, text: str, *, again: bool = False, **times: Any) -> Accepted | None:
        return await self.speech.accept(self.stage.room, self.utterance(text, final=True, **times), again=again)

    async def accepted(self) -> list[Utterance]:
        page = await self.stage.log.read("m", 0)
        events = [publication.event for publication in page.publications]
        return [event.utterance for event in events if isinstance(event, Said)]

    async def logged(self) -> list[tuple[str, str]]:
        return [(each.id + "…" * each.continues, each.text) for each in await self.accepted()]


@asynccontextmanager
async def talking(reads: str = "", *, in_flight: int = 100, speaker: bool = False) -> AsyncIterator[Talk]:
    """reads, speaker: as for `stage`."""
    async with stage(reads, speaker=speaker) as made:
        yield Talk(made, in_flight)


async def test_settled_segment_is_accepted_during_the_talk() -> None:
    async with talking() as talk:
        reader = await talk.stage.reader(lang="en")
        await talk.hears("We go.", "We go. Then", "We go. Then we stay")
        assert await talk.logged() == [("u…", "We go.")]
        captions = [(m.utterance, m.text, m.final) for m in reader.look() if isinstance(m, Caption)]
        assert captions == [
            ("u", "We go.", False),
            ("u", "We go.", True),
            ("u~2", "Then", False),
            ("u~2", "Then we stay", False),
        ]
        await talk.ends("We go. Then we stay. Bye.")
        assert await talk.logged() == [("u…", "We go."), ("u~2…", "Then we stay."), ("u~3", "Bye.")]


async def test_the_speaker_is_told_once_all_is_accepted() -> None:
    async with talking() as talk:
        ana = await talk.stage.reader(lang="ja", participant="ana")
        await talk.hears("We go.", "We go. Then")
        assert not [m for m in ana.look() if isinstance(m, UtteranceAccepted)]
        await talk.ends("We go. Then we stay. Bye.")
        [accepted] = [m for m in ana.look() if isinstance(m, UtteranceAccepted)]
        assert accepted.id == "u"


async def test_only_first_open_segment_is_translated() -> None:
    async with talking("de") as talk:
        await talk.hears("We go. Then")
        assert [request.text for request in talk.stage.engine.requests] == []
        await talk.hears("We go. Then we")
        assert {text for _, text in await talk.logged()} == {"We go."}


@pytest.mark.parametrize(
    ("partials", "final", "logged"),
    [
        # Ordinary: one sentence is one utterance.
        ([], "We go.", [("u", "We go.")]),
        (["We", "We go"], "We go.", [("u", "We go.")]),
        ([], "We go. Then we stay.", [("u…", "We go."), ("u~2", "Then we stay.")]),
        # What was settled stays, however the final has it; the rest is said once.
        (["We go.", "We go. Then"], "We went! Then we stay.", [("u…", "We go."), ("u~2", "Then we stay.")]),
        # Nothing is left.
        (["We go.", "We go. Uh"], "We go.", [("u…", "We go.")]),
        # A long one without marks is cut, not refused.
        (
            [],
            "all of this is said without an end by a recogniser",
            [("u…", "all of this is said without an end by a"), ("u~2", "recogniser")],
        ),
    ],
)
@pytest.mark.parametrize("moves", [False, True])
async def test_a_final_sent_again_changes_nothing_anywhere(
    partials: list[str], final: str, logged: list[tuple[str, str]], moves: bool
) -> None:
    async with talking(speaker=True) as talk:
        await talk.hears(*partials)
        if moves:
            talk.another_gateway()
        await talk.ends(final)
        assert await talk.logged() == logged
        await talk.stage.finals.quiet()
        assert talk.stage.finished[-1:] == [("u", False)]
        for again in (False, True):
            talk.another_gateway()
            accepted = await talk.ends(final, again=again)
            assert accepted is None or accepted.known
        assert await talk.logged() == logged


async def test_another_gateway_goes_on_in_the_middle() -> None:
    async with talking() as talk:
        reader = await talk.stage.reader(lang="en")
        await talk.hears("We go.", "We go. Then we stay.", "We go. Then we stay. And")
        reader.look()
        talk.another_gateway()
        await talk.hears("We go. Then we stay. And so", "We go. Then we stay. And so on.")
        assert {m.utterance for m in reader.look() if isinstance(m, Caption)} == {"u~3"}
        await talk.ends("We go. Then we stay. And so on.")
        assert [text for _, text in await talk.logged()] == ["We go.", "Then we stay.", "And so on."]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("first", ["We go.", "We went!"])
@pytest.mark.parametrize("last", [["Bye."], ["Bye.", "Everybody has a seat at the table by now."]])
async def test_another_gateway_goes_on_behind_what_was_trimmed(first: str, last: list[str], again: bool) -> None:
    """first: what the recogniser has made of the first segment since. A final alone is divided otherwise."""
    now = 1_700_000_000.0
    bounds: dict[str, Any] = {"keep_s": 30, "max_publications": 100, "max_bytes": 10**7}
    store = usual(MemoryStore, **bounds, wall_clock=lambda: now)
    async with stage("de", log=Log(store=store)) as here:
        await Talk(here).hears("We go.", "We go. Then we stay.", "We go. Then we stay. And")
        assert len(await Talk(here).logged()) == 2
        for request in here.engine.pending():
            here.engine.end(request, "x")
        await here.finals.quiet()
        now += 31
        await here.log.sweep()
        async with stage("de", log=Log(store=store)) as there:
            talk, reader = Talk(there), await there.reader(lang="en")
            said_now = f"{first} Then we stay. And so on."
            if not again:
                await talk.hears(said_now[:-3], said_now[:-1])
            await talk.ends(" ".join([said_now, *last]), again=again)
            assert [text for _, text in await talk.logged()] == ["And so on.", *last]
            captions = {m.text for m in reader.look() if isinstance(m, Caption) and m.final}
            assert captions == {"And so on.", *last}
            await until(lambda: len([each for each in there.engine.requests if each.final]) > len(last))
            finals = [request.text for request in there.engine.requests if request.final]
            assert finals == ["And so on.", *last]
            # The last one is refused: nothing that is still to be said follows it.
            talk.another_gateway()
            with pytest.raises(UtteranceFinished):
                await talk.ends("They do.", again=True)


async def test_trimmed_segment_was_cut_before_its_sentence_had_a_mark() -> None:
    """A sentence with marks may be longer; that it is divided otherwise now loses none of its words."""
    now = 1_700_000_000.0
    store = usual(MemoryStore, keep_s=30, wall_clock=lambda: now)
    async with stage(log=Log(store=store)) as here:
        text = "all of this is said without an end by a recogniser of"
        await Talk(here).hears(text, f"{text} speech")
        assert await Talk(here).logged() == [("u…", "all of this is said without an end by a")]
        now += 31
        async with stage(log=Log(store=store)) as there:
            await Talk(there).ends(f"{text} speech.")
            assert await Talk(there).logged() == [("u~2", "recogniser of speech.")]


async def test_a_closed_utterance_takes_no_other_text() -> None:
    async with talking() as talk:
        await talk.ends("We go.")
        talk.another_gateway()
        for text in ("We stay.", "We go. Then we stay."):
            with pytest.raises(UtteranceFinished):
                await talk.ends(text)
        assert await talk.logged() == [("u", "We go.")]


async def test_a_refusal_in_the_middle_resumes_where_it_stopped() -> None:
    async with talking() as talk:
        real, calls = talk.stage.log.accept, []

        async def accept(meeting: str, utterance: Utterance, fence: Any = None) -> Accepted:
            calls.append(utterance.id)
            if len(calls) == 2:
                raise Overloaded("busy")
            return await real(meeting, utterance, fence)

        talk.stage.log.accept = accept  # type: ignore[method-assign]
        with pytest.raises(Overloaded):
            await talk.ends("One. Two. Three.")
        await talk.ends("One. Two. Three.")
        assert calls == ["u", "u~2", "u~2", "u~3"]
        assert [text for _, text in await talk.logged()] == ["One.", "Two.", "Three."]


async def test_a_refused_segment_is_settled_later() -> None:
    async with talking() as talk:
        made, reader = talk.stage, await talk.stage.reader(lang="en")
        refuses, real = [True], made.log.accept

        async def accept(meeting: str, utterance: Utterance, fence: Any = None) -> Accepted:
            if refuses:
                raise Overloaded("busy")
            return await real(meeting, utterance, fence)

        made.log.accept = accept  # type: ignore[method-assign]
        await talk.hears("We go.", "We go. Then")
        assert [m.text for m in reader.look() if isinstance(m, Caption)][-1] == "We go. Then"
        refuses.clear()
        await talk.hears("We go. Then we")
        assert [text for _, text in await talk.logged()] == ["We go."]


async def test_a_participant_has_a_bound_of_untranslated_segments() -> None:
    async with talking(in_flight=2) as talk:
        made = talk.stage
        await made.reader()
        with pytest.raises(TooManyInFlight):
            await talk.ends("One. Two. Three.")
        assert [text for _, text in await talk.logged()] == ["One.", "Two."]
        await until(lambda: len(made.engine.pending()) == 2)
        for request in made.engine.pending():
            made.engine.end(request, "x")
        await made.finals.quiet()
        await talk.ends("One. Two. Three.")
        assert [text for _, text in await talk.logged()] == ["One.", "Two.", "Three."]


async def test_it_is_finished_when_every_segment_is() -> None:
    async with talking(speaker=True) as talk:
        made = talk.stage
        await made.reader()
        await talk.ends("One. Two.")
        await until(lambda: len(made.engine.pending()) == 2)
        one, two = sorted(made.engine.pending(), key=lambda request: request.text)
        made.engine.end(two, "Zwei.")
        assert made.finished == []
        made.engine.end(one, "Eins.")
        await made.finals.quiet()
        assert made.finished == [("u", False)]


async def test_giving_up_withdraws_the_rest_alone() -> None:
    async with talking() as talk:
        made, reader = talk.stage, await talk.stage.reader(lang="en")
        await talk.hears("We go.", "We go. Then")
        talk.speech.withdraw(made.room, ("ana", "u"))
        assert [m.utterance for m in reader.look() if isinstance(m, UtteranceCancelled)] == ["u~2"]
        assert [text for _, text in await talk.logged()] == ["We go."]


async def test_cancelling_stops_every_segment() -> None:
    async with talking(speaker=True) as talk:
        made = talk.stage
        await made.reader()
        await talk.ends("One. Two.")
        talk.speech.cancel(made.room, ("ana", "u"))
        await made.finals.quiet()
        assert made.finished == [("u", True)]


async def test_caption_of_a_withdrawn_rest_goes() -> None:
    async with talking() as talk:
        made, reader = talk.stage, await talk.stage.reader(lang="en")
        await talk.hears("We go.", "We go. Uh")
        await talk.ends("We go.")
        assert [m.utterance for m in reader.look() if isinstance(m, UtteranceCancelled)] == ["u~2"]
        assert not list(made.room.live.captions)


async def test_segments_have_their_part_of_the_time() -> None:
    async with talking() as talk:
        await talk.hears("One two.", start_ms=1_000, end_ms=2_000)
        await talk.hears("One two. Three", start_ms=1_000, end_ms=2_500)
        await talk.ends("One two. Three four. Five six.", start_ms=1_000, end_ms=5_000)
        page = await talk.stage.log.read("m", 0)
        spans = [
            (e.event.utterance.start_ms, e.event.utterance.end_ms)
            for e in page.publications
            if isinstance(e.event, Said)
        ]
        assert (spans[0][0], spans[-1][1]) == (1_000, 5_000)
        assert all(before[1] == after[0] for before, after in pairwise(spans))


async def test_who_left_is_forgotten() -> None:
    async with talking() as talk:
        await talk.hears("We go.", "We go. Then")
        talk.speech.speaker_left(talk.stage.room, "ana", for_good=True)
        assert not talk.speech._open


WORDS = st.lists(st.sampled_from(["we", "go.", "Anna", "3", "500", "then,", "no!"]), min_size=1, max_size=25)


@settings(max_examples=30, deadline=None)
@given(words=WORDS, steps=st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=25))
async def test_any_chunking_over_gateways_says_all_once(words: list[str], steps: list[tuple[int, bool]]) -> None:
    async with stage() as made:
        talk, at = Talk(made), 0
        for step, moves in steps:
            at = min(len(words), at + step)
            if moves:
                talk.another_gateway()
            await talk.hears(" ".join(words[:at]))
        await talk.ends(" ".join(words))
        assert " ".join(text for _, text in await talk.logged()) == " ".join(words)


async def test_segments_end_in_their_order() -> None:
    async with talking() as talk:
        made, reader = talk.stage, await talk.stage.reader()
        await talk.ends("One. Two. Three.")
        await until(lambda: len(made.engine.requests) == 3)
        first, *others = made.engine.requests
        for request in others:
            made.engine.says(f"({request.text})", request=made.engine.requests.index(request))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not [m for m in reader.look() if isinstance(m, TranslationFinal)]
        made.engine.says("(One.)", request=0)
        await made.finals.quiet()
        finals = [m.text for m in reader.look() if isinstance(m, TranslationFinal)]
        assert finals == ["(One.)", "(Two.)", "(Three.)"]
        assert first.text == "One."


async def test_rest_without_times_has_its_share() -> None:
    async with talking() as talk:
        await talk.hears("One two.", "One two. Three")
        await talk.ends("One two. Three four.", start_ms=0, end_ms=20_000)
        last = (await talk.stage.log.read("m", 0)).publications[-1].event
        assert isinstance(last, Said)
        assert last.utterance.start_ms is not None
        assert 5_000 < last.utterance.start_ms < 12_000


async def test_segments_of_one_message_are_bounded() -> None:
    async with talking(in_flight=2) as talk:
        text = "One two three. Four five six. Seven eight nine. Ten eleven twelve."
        with pytest.raises(TooManyInFlight):
            await talk.ends(text)
        assert len(await talk.logged()) == 2
        assert talk.speech.is_begun(talk.stage.room, ("ana", "u"))
        await talk.ends(text)
        assert [id for id, _ in await talk.logged()] == ["u…", "u~2…", "u~3…", "u~4"]


async def test_another_gateway_withdraws_unaccepted_segments() -> None:
    async with talking() as talk:
        made, reader = talk.stage, await talk.stage.reader(lang="en")
        await talk.hears("We go.", "We go. Then we stay", "We go. Then we stay. And")
        talk.another_gateway()
        reader.look()
        talk.speech.withdraw(made.room, ("ana", "u"))
        [cancelled] = [m.utterance for m in reader.look() if isinstance(m, UtteranceCancelled)]
        assert cancelled not in {id.rstrip("…") for id, _ in await talk.logged()}
        assert not list(made.room.live.captions)


async def test_what_a_recogniser_takes_back_leaves_the_screen() -> None:
    async with talking() as talk:
        reader = await talk.stage.reader(lang="en")
        await talk.hears("We go.", "We go. Then we", "We go.")
        assert [m.utterance for m in reader.look() if isinstance(m, UtteranceCancelled)] == ["u~2"]


# ---------------------------------------------------------------- what a segment is translated with


SAID = ("We met.",)
CONTEXT_PROMPTS = {
    "hy-mt1.5": "We met.\nWe go.\n参考上面的信息，把下面的文本翻译成德语，"
    "注意不需要翻译上文，也不要额外解释：\nThen we",
    "hy-mt2": "[Background Information]\nWe met.\nWe go.\n\nPlease translate the following text into German, "
    "taking the provided background information into consideration.\n\n[Source Text]\nThen we",
    "chat": "<context>\nWe met.\nWe go.\n</context>",
}


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if "context" in family.options])
async def test_prompt_of_a_segment_has_the_segments_before_it(family: str) -> None:
    async with stage("de") as made:
        talk = Talk(made, takes_context=True)
        await talk.hears("We go.", "We go. Then we", context=SAID)
        await until(lambda: len(made.engine.requests) == 2)
        settled, rest = made.engine.requests
        assert [(settled.text, settled.options.context), rest.text] == [("We go.", SAID), "Then we"]
        assert CONTEXT_PROMPTS[family] in asked(family, rest)


async def test_every_way_to_a_segment_has_the_segments_before_it() -> None:
    async with talking() as talk:
        talk.takes_context = True
        await talk.hears("We go.", "We go. Then", "We go. Then we stay. And", "We go. Then we stay. And so")
        talk.another_gateway()
        await talk.hears("We go. Then we stay. And so on. But", "We go. Then we stay. And so on. But not")
        talk.another_gateway()
        await talk.ends("We go. Then we stay. And so on. But not now. Bye.", context=SAID)
        assert [(each.text, each.context) for each in await talk.accepted()] == [
            ("We go.", ()),
            ("Then we stay.", ("We go.",)),
            ("And so on.", ("We go.", "Then we stay.")),
            ("But not now.", (*SAID, "We go.", "Then we stay.", "And so on.")),
            ("Bye.", (*SAID, "We go.", "Then we stay.", "And so on.", "But not now.")),
        ]


async def test_context_of_a_long_talk_is_bounded() -> None:
    async with talking() as talk:
        talk.takes_context = True
        sentences = [f"This is number {number} of many." for number in range(20)]
        await talk.ends(" ".join(sentences))
        contexts = [each.context for each in await talk.accepted()]
        assert [len(context) for context in contexts] == [*range(9), *(5, 6, 7, 8) * 2, 5, 6, 7]
        # Only every fourth time does the prompt begin with another segment.
        assert all(context == tuple(sentences[n - len(context) : n]) for n, context in enumerate(contexts))


async def test_a_model_without_context_gets_none() -> None:
    async with talking() as talk:
        await talk.ends("We go. Then we stay. Bye.")
        assert [each.context for each in await talk.accepted()] == [(), (), ()]


# ---------------------------------------------------------------- how long readers wait

# pocketsphinx hears 24 s of talk without a pause: seconds, how many words are taken back, the words that follow.
PARTIALS_WITHOUT_END = """
0.81 0 the; 1.62 0 it was; 2.16 0 the best; 2.43 0 of ta; 2.7 1 tory; 2.97 1 times; 3.24 0 it; 3.51 0 was the;
3.78 0 was; 4.05 0 the; 4.32 2 worst of time; 4.59 1 times; 5.4 0 it was; 5.67 0 the eight; 5.94 1 age of we're;
6.21 1 wisdom; 7.02 0 it was; 7.29 0 a; 7.56 1 the age of; 7.83 0 four was; 8.1 2 foolishness; 9.18 0 it was;
9.45 0 the; 9.72 0 call; 9.99 1 top of the; 10.26 1 belief; 11.07 0 it was; 11.34 0 the; 11.61 1 a utah;
11.88 2 you call to; 12.15 3 a he popped up again; 12.42 1 in fuji; 12.69 2 getting cut us;
12.96 5 talked of incredulity; 13.77 0 it for; 14.04 1 was; 14.31 0 season; 14.58 0 of law; 14.85 1 light;
15.39 0 that; 15.66 1 it was; 15.93 0 seized; 16.2 0 nut by; 16.47 2 non-stop to; 16.74 1 nuts; 17.82 0 it;
18.09 0 was us; 18.36 1 the spread; 18.63 0 of how; 18.9 1 haute; 19.17 0 it; 19.44 0 was the; 19.71 0 wind;
19.98 0 who; 20.25 0 just; 20.52 3 winter of despair; 21.6 3 wind who does that we had; 21.87 0 every;
22.14 1 everything the; 22.41 1 before; 22.68 0 us; 22.95 0 we; 23.22 1 get nah; 23.49 1 nothing; 23.76 0 before
"""
# A recogniser with pauses between its revisions; WhisperLiveKit with its default settings.
PARTIALS_WITH_PAUSES = """
2.4 0 Good morning everyone.; 7.4 0 Can you hear me?; 10.8 0 Let us move the launch to Friday.;
14.4 0 Does anybody have a question about the budget?; 16.4 0 I will send the minutes after the meeting.;
18.8 0 The server was down for two.; 20.3 1 two hours last time.; 23.3 1 night.;
28.4 0 Thank you for the presentation.; 33.3 0 We need two more people for this project.
"""


def revisions(recording: str) -> list[tuple[float, str]]:
    """When each revision came, and its whole text."""
    words: list[str] = []
    found = []
    for step in recording.split(";"):
        at_s, taken_back, *further = step.split()
        words = words[: len(words) - int(taken_back)] + further
        found.append((float(at_s), " ".join(words)))
    return found


async def answer_differently(engine: AnsweredEngine, takes_s: float) -> None:
    """A model that begins each translation in another way, as far as what is committed allows; until cancelled."""
    loop = asyncio.get_running_loop()
    answers: dict[str, str] = {}
    while True:
        for request in engine.pending():
            if request.id not in answers:
                words = request.text.split()
                answers[request.id] = request.prefix + f" {len(answers)}x" + " wort" * (len(words) - 1)
                loop.call_later(takes_s, answer_if_asked, engine, request.id, answers[request.id])
        await asyncio.sleep(0.01)


def answer_if_asked(engine: AnsweredEngine, id: str, text: str) -> None:
    for request in engine.pending():
        if request.id == id:
            engine.end(request, text)


async def watch(reader: Screen, shown_s: list[float]) -> None:
    """When the reader was shown new words, by the loop's clock; until cancelled."""
    while True:
        if any(
            isinstance(m, TranslationFinal) or (isinstance(m, TranslationDelta) and m.committed)
            for m in reader.look()
        ):
            shown_s.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("recording", [PARTIALS_WITHOUT_END, PARTIALS_WITH_PAUSES])
@swiftly
async def test_readers_of_what_stays_wait_five_seconds_at_most(recording: str) -> None:
    loop = asyncio.get_running_loop()
    async with stage(partials={"pace_s": 0.6}) as made:
        reader, talk = await made.reader("stable"), Talk(made, segment_chars=120)
        shown_s: list[float] = []
        tasks = [
            asyncio.create_task(answer_differently(made.engine, takes_s=0.4)),
            asyncio.create_task(watch(reader, shown_s)),
        ]
        began_s, heard_s = loop.time(), []
        for at_s, text in revisions(recording):
            await asyncio.sleep(began_s + at_s - loop.time())
            heard_s.append(loop.time())
            await talk.hears(text)
        for task in tasks:
            task.cancel()
    # From the first revision that says more than a reader was shown.
    waits_s = []
    for before_s, after_s in pairwise([began_s, *shown_s, loop.time()]):
        begins_s = next((at_s for at_s in heard_s if at_s > before_s), after_s)
        waits_s.append(after_s - begins_s)
    assert max(waits_s) <= 5.0

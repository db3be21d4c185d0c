"""Scenarios: what is said in so many meetings over time, or as single requests.

Knows: turns, texts, how a recogniser revises. Must not know: engines, sockets, clocks.

The same values give the same lines, and a shorter list is the beginning of a longer one.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from itertools import count as numbers
from itertools import takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from demo_model import LANGUAGES
from loadtest.results import LoadtestError
from loadtest.talk import streams
from loadtest.talk.turns import MEAN_WORDS, PER_MINUTE, Turns, length, pause_s
from loadtest.talk.words import Words
from loadtest.trial.values import Line, Partial
from loadtest.workload import Workload, utterances

# A meeting is under way when a trial begins: this long, seconds.
_BEFORE_S = 45.0

# From the last word to the recogniser's decision that it was the last, seconds.
_DECIDES_S = (0.3, 0.6)

# The recogniser's own pace: a revision every 200 to 400 ms. The last one is out half of that after the last word.
_REVISION_S = 0.3


Shape = Literal["natural", "uniform", "sentences"]


class Scenario(Struct, frozen=True, kw_only=True):
    """What is said."""

    seed: int = 1
    source: str = "en"
    # Every line is translated into each.
    targets: tuple[str, ...] = ("de",)
    # `natural`: lengths and turns of real meetings. `uniform`: every line as long as the mean and at equal
    # distances, as test data often is, to show how it misleads. `sentences`: for requests alone, one to four
    # sentences a line, as a recogniser that waits for punctuation cuts what is said.
    shape: Shape = "natural"
    meetings: int = 1
    # Of one meeting.
    people: int = 6
    # Mean time between two revisions of what is being said, at least 0.3; None: finals alone.
    partial_every_s: float | None = None


def meetings_lines(scenario: Scenario, seconds: float) -> list[Line]:
    """What is said in all meetings in so many seconds, in order of time.

    The meetings are under way when it begins. Each is the same whatever the number of the others. Raises
    `LoadtestError` as `check` does.
    """
    check(scenario, meetings=True)
    meetings = [_meeting(scenario, number, seconds) for number in range(1, scenario.meetings + 1)]
    return list(heapq.merge(*meetings, key=lambda line: line.due_s))


def request_lines(scenario: Scenario, count: int) -> list[Line]:
    """The first `count` lines without times, meetings or partials, for one target each in turn.

    Their lengths are those of meetings, or `sentences`. Raises `LoadtestError` as `check` does.
    """
    check(scenario, meetings=False)
    if scenario.shape == "sentences":
        return _sentences(scenario, count)
    rng = random.Random(f"talk/{scenario.seed}/requests")
    words = Words(f"talk/{scenario.seed}/requests", scenario.source)
    lines: list[Line] = []
    for number in range(count):
        wanted = length(rng) if scenario.shape == "natural" else MEAN_WORDS
        target = scenario.targets[number % len(scenario.targets)]
        lines.append(Line(str(number), words.draw(wanted), scenario.source, (target,)))
    return lines


def _sentences(scenario: Scenario, count: int) -> list[Line]:
    each = -(-count // len(scenario.targets))
    said = [utterances(Workload(scenario.seed, scenario.source, target), each) for target in scenario.targets]
    # Number by number, one target after the other.
    turns = [utterance for turn in zip(*said, strict=True) for utterance in turn]
    return [
        Line(str(number), utterance.text, scenario.source, (utterance.target,))
        for number, utterance in enumerate(turns[:count])
    ]


def arrivals(lines: Sequence[Line], per_s: float, seed: int) -> list[Line]:
    """The same lines, due as a Poisson process has it: `per_s` translations a second on average.

    A line into two languages is two translations. Partials keep their distance to their final.
    """
    rng = random.Random(f"arrivals/{seed}")
    due_s = 0.0
    placed: list[Line] = []
    for line in lines:
        due_s += rng.expovariate(per_s / len(line.targets))
        partials = tuple(replace(each, due_s=due_s - line.due_s + each.due_s) for each in line.partials)
        placed.append(replace(line, due_s=due_s, partials=partials))
    return placed


def translations_per_s(lines: Sequence[Line]) -> float:
    """How many translations the lines ask for, a second, on average until the last is due; 0 without times."""
    last_s = max((line.due_s for line in lines), default=0.0)
    return sum(len(line.targets) for line in lines) / last_s if last_s > 0 else 0.0


def check(scenario: Scenario, *, meetings: bool) -> None:
    """Raises `LoadtestError` for a scenario in which nothing can be said. meetings: it is to be held in meetings.

    Any language can be read: only what is spoken comes from the corpus. Its sentences are drawn with their
    translations, so that for those both have to be there.
    """
    drawn = scenario.targets if scenario.shape == "sentences" else ()
    for language in (scenario.source, *drawn):
        if language not in LANGUAGES:
            raise LoadtestError(f"The corpus has no {language!r}; it has {', '.join(LANGUAGES)}.")
    if not scenario.targets or scenario.source in scenario.targets:
        raise LoadtestError("A scenario needs targets, and none of them can be what is spoken.")
    if meetings and scenario.shape == "sentences":
        raise LoadtestError("Meetings have natural or uniform lines; those of sentences are for requests.")
    if scenario.meetings < 1 or scenario.people < 1:
        raise LoadtestError("A scenario needs at least one meeting, and one who speaks in it.")
    if scenario.partial_every_s is not None and scenario.partial_every_s < _REVISION_S:
        raise LoadtestError(f"A recogniser revises every {_REVISION_S} s at most.")


# ---------------------------------------------------------------- one meeting


class _Said(Struct, frozen=True):
    """due_s: of its final. partials: all of them, however many were asked for."""

    speaker: int
    text: str
    begins_s: float
    due_s: float
    partials: tuple[Partial, ...]


class _Voice:
    """Says texts: with revisions, as a recogniser hears them, at the speed of speech."""

    def __init__(self, scenario: Scenario, rng: random.Random) -> None:
        self._lang = scenario.source
        self._every_s = scenario.partial_every_s
        self._rng = rng
        self._misheard = _vocabulary(scenario.seed, scenario.source)

    def say(self, speaker: int, text: str, begins_s: float) -> tuple[_Said, float]:
        """What is said, and how long it takes to say, seconds."""
        revisions, end_ms = streams.heard(text, self._lang, self._misheard, self._rng)
        due_s = begins_s + end_ms / 1000 + self._rng.uniform(*_DECIDES_S)
        partials = tuple(Partial(begins_s + each.at_ms / 1000, each.text) for each in revisions)
        said = _Said(speaker, text, begins_s, due_s, self._thinned(partials))
        return said, max(end_ms / 1000 - _REVISION_S / 2, 0.1)

    def _thinned(self, partials: tuple[Partial, ...]) -> tuple[Partial, ...]:
        if self._every_s is None:
            return ()
        kept: list[Partial] = []
        for partial in partials:
            if not kept or partial.due_s - kept[-1].due_s >= self._every_s - _REVISION_S / 2:
                kept.append(partial)
        return tuple(kept) if self._every_s > _REVISION_S else partials


_vocabularies: dict[tuple[int, str], list[str]] = {}


def _vocabulary(seed: int, lang: str) -> list[str]:
    """What a recogniser takes words for."""
    if (seed, lang) not in _vocabularies:
        _vocabularies[seed, lang] = streams.vocabulary(seed, lang)
    return _vocabularies[seed, lang]


def _meeting(scenario: Scenario, number: int, seconds: float) -> list[Line]:
    """All that is due in one meeting between 0 and `seconds`, in order."""
    rng = random.Random(f"talk/{scenario.seed}/meeting/{number}")
    said = _natural(scenario, rng, number) if scenario.shape == "natural" else _uniform(scenario, rng, number)
    # Turns come in the order in which they begin, and end after that.
    heard = [each for each in takewhile(lambda each: each.begins_s < seconds, said) if each.due_s >= 0]
    lines = [
        Line(
            id=f"{number}-{index}",
            text=each.text,
            source=scenario.source,
            targets=scenario.targets,
            due_s=round(each.due_s, 4),
            meeting=f"meeting-{number}",
            speaker=f"speaker-{each.speaker + 1}",
            partials=tuple(
                Partial(round(partial.due_s, 4), partial.text) for partial in each.partials if partial.due_s >= 0
            ),
        )
        for index, each in enumerate(heard)
        if each.due_s < seconds
    ]
    return sorted(lines, key=lambda line: line.due_s)


def _natural(scenario: Scenario, rng: random.Random, number: int) -> Iterator[_Said]:
    words = Words(f"talk/{scenario.seed}/meeting/{number}", scenario.source)
    turns, voice = Turns(scenario.people, rng), _Voice(scenario, rng)
    now_s = -_BEFORE_S - rng.uniform(0, 10)
    while True:
        speaker, wanted = turns.turn()
        said, takes_s = voice.say(speaker, words.draw(wanted), now_s)
        meanwhile = [
            voice.say(other, words.draw(short), now_s + rng.uniform(0.2, 0.9) * takes_s)[0]
            for other, short in turns.backchannels(wanted)
        ]
        yield said
        yield from sorted(meanwhile, key=lambda each: each.begins_s)
        now_s += takes_s + pause_s(rng)


def _uniform(scenario: Scenario, rng: random.Random, number: int) -> Iterator[_Said]:
    words = Words(f"talk/{scenario.seed}/meeting/{number}", scenario.source)
    voice = _Voice(scenario, rng)
    every_s = 60.0 / PER_MINUTE
    first_s = -_BEFORE_S - rng.uniform(0, every_s)
    for turn in numbers():
        text = words.draw(MEAN_WORDS)
        said, _ = voice.say(turn % scenario.people, text, first_s + turn * every_s)
        shift_s = said.begins_s + every_s - said.due_s
        yield replace(
            said,
            due_s=said.due_s + shift_s,
            partials=tuple(replace(each, due_s=min(each.due_s, said.due_s + shift_s)) for each in said.partials),
        )

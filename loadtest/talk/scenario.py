"""Scenarios: what is said in so many meetings over time, or as single requests; and recorded talk, read from a
file of JSON lines.

Knows: the figures of real meetings and turns that have them, the corpus of the bundled model, how a recogniser
revises. Must not know: engines, sockets, clocks.

The same values give the same lines, and a shorter list is the beginning of a longer one.

The figures: the ICSI meetings as the MRDA corpus cuts them, 108,202 utterances in 75 meetings of about 72 hours
with six people each: 25 utterances a minute, 14 % of them backchannels, the longest of 85 words. People speak 150
words a minute. The pause between two turns is 200 ms in the median (Stivers et al. 2009; Heldner and Edlund 2010).
Lengths of texts are counted in words of the English sentence, whatever the language, so that they mean the same in
each.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count as numbers
from itertools import takewhile
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from demo_model.corpus.sets import ParallelSet, SetKind, load_sets
from loadtest.results import LoadtestError, joined
from loadtest.talk import streams
from loadtest.talk.streams import utterances
from loadtest.trial.values import Line, Partial

# Words of one sentence, in a text that no single sentence fills.
_SENTENCES = (6, 7, 8, 7, 9, 7)
# Longer sentences without slots are left out: an engine answers from its cache what was said before in the same
# words, and of what people say only short things come again.
_MOST_FIXED_WORDS = 4
# For the same reason, lengths that fewer sets have.
_FEWEST_SETS = 50


class Words:
    """Draws texts in one language. The same seed and the same calls give the same texts."""

    def __init__(self, seed: str, source: str) -> None:
        self._source = source
        self._random = random.Random(seed)

    def draw(self, words: int) -> str:
        """A text of about so many words, at least one, and never more than `words`."""
        parts: list[str] = []
        left = words
        while left:
            sentence, length = self._sentence(left, len(parts))
            parts.append(sentence)
            left -= length
        return joined(parts, self._source)

    def _sentence(self, most: int, number: int) -> tuple[str, int]:
        """One sentence of the corpus that is no longer than `most`, and nearly as long where there is one; and its
        length."""
        lengths = _by_words()
        wanted = most if most <= max(lengths) else min(_SENTENCES[number % len(_SENTENCES)], most)
        length = max(length for length in lengths if length <= wanted)
        return self._random.choice(lengths[length]).written[self._source].text, length


@cache
def _by_words() -> dict[int, Sequence[ParallelSet]]:
    """Words of the English sentence → the sets that have so many."""
    found: defaultdict[int, list[ParallelSet]] = defaultdict(list)
    for each in [*load_sets(SetKind.PATTERN), *load_sets(SetKind.WRITTEN)]:
        words = len(each.written["en"].text.split())
        if each.kind is SetKind.PATTERN or words <= _MOST_FIXED_WORDS:
            found[words].append(each)
    enough = (words for words in found if words <= _MOST_FIXED_WORDS or len(found[words]) >= _FEWEST_SETS)
    return {words: found[words] for words in enough}


PER_MINUTE = 25.0
BACKCHANNELS = 0.14
LONGEST_WORDS = 85

# Words of an utterance other than a backchannel: a logarithmic normal distribution. Its mean is what lets one
# person at a time, at 150 words a minute and with the pauses below, say 86 % of 25 utterances a minute.
_MU = 1.35
_SIGMA = 0.95
BACKCHANNEL_WORDS = (1, 1, 1, 2, 2, 3)

# Measured on what is drawn: words of an utterance, backchannels included, and of one that is none.
MEAN_WORDS = 5
_MEAN_TURN_WORDS = 6.0

# Pauses: share, from and to in seconds, and how much more frequent the short ones of this class are.
_PAUSES = ((0.5, 0.0, 0.2, 1), (0.38, 0.2, 1.0, 2), (0.12, 1.0, 4.0, 2))

# The one who has the floor goes on; the others differ in how much they say.
_GOES_ON = 0.55
_TALKATIVE = 0.8


def length(rng: random.Random) -> int:
    """Words of one utterance of a meeting, picked by chance."""
    return rng.choice(BACKCHANNEL_WORDS) if rng.random() < BACKCHANNELS else _turn(rng)


def _turn(rng: random.Random) -> int:
    while (words := round(rng.lognormvariate(_MU, _SIGMA))) > LONGEST_WORDS:
        pass
    return max(words, 1)


def pause_s(rng: random.Random) -> float:
    """What lies between two turns."""
    _, low, high, skew = rng.choices(_PAUSES, [each[0] for each in _PAUSES])[0]
    return low + (high - low) * float(rng.random() ** skew)


class Turns:
    """Who speaks in one meeting, turn after turn. One has the floor; backchannels come from the others."""

    def __init__(self, people: int, rng: random.Random) -> None:
        self._rng = rng
        self._people = list(range(people))
        rng.shuffle(self._people)
        self._weights = [_TALKATIVE**rank for rank in range(people)]
        self._holder = self._next()

    def turn(self) -> tuple[int, int]:
        """The next who has the floor, and for how many words."""
        if self._rng.random() >= _GOES_ON:
            self._holder = self._next()
        return self._holder, _turn(self._rng)

    def backchannels(self, words: int) -> Sequence[tuple[int, int]]:
        """What the others say while one says so many words; long turns draw more of them."""
        others = [person for person in self._people if person != self._holder]
        if not others:
            return ()
        mean = BACKCHANNELS / (1 - BACKCHANNELS) * words / _MEAN_TURN_WORDS
        many = int(mean) + (self._rng.random() < mean - int(mean))
        return [(self._rng.choice(others), self._rng.choice(BACKCHANNEL_WORDS)) for _ in range(many)]

    def _next(self) -> int:
        return self._rng.choices(self._people, self._weights)[0]


# ---------------------------------------------------------------- what is said


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
    # In one meeting.
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
    said = utterances(scenario.seed, scenario.source, -(-count // len(scenario.targets)))
    # Text by text, one target after the other.
    turns = [(text, target) for text in said for target in scenario.targets]
    return [
        Line(str(number), text, scenario.source, (target,)) for number, (text, target) in enumerate(turns[:count])
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
    streams.known_languages(scenario.source, *(scenario.targets if scenario.shape == "sentences" else ()))
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
        self._misheard = streams.vocabulary(scenario.seed, scenario.source)

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


# ---------------------------------------------------------------- recordings


class _Revision(Struct, frozen=True, forbid_unknown_fields=True):
    """What the recogniser said before."""

    at_s: float
    text: str


class _Recorded(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file."""

    # When the last word was out, from any beginning that the whole file shares.
    at_s: float
    text: str
    source: str
    targets: tuple[str, ...]
    meeting: str = ""
    speaker: str = ""
    partials: tuple[_Revision, ...] = ()

    @property
    def times_s(self) -> tuple[float, ...]:
        return (self.at_s, *(each.at_s for each in self.partials))


def read_talk(path: Path) -> list[Line]:
    """The lines in order of time, whatever their order in the file; empty ones are skipped. Times count from the
    earliest in the file, so that it may have any beginning: a recording's, or that of 1970.

    Raises `LoadtestError`, which names the line of the file.
    """
    try:
        content = path.read_bytes().splitlines()
    except OSError as error:
        raise LoadtestError(f"{path} cannot be read: {error.strerror}.") from None
    said: dict[int, _Recorded] = {}
    for number, one in enumerate(content, start=1):
        if one.strip():
            try:
                said[number] = msgspec.json.decode(one, type=_Recorded)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise LoadtestError(f"{path}, line {number}: {error}.") from None
            if wrong := _wrong(said[number]):
                raise LoadtestError(f"{path}, line {number}: {wrong}.")
    if not said:
        raise LoadtestError(f"{path} has no lines.")
    earliest_s = min(at_s for each in said.values() for at_s in each.times_s)

    def since(at_s: float) -> float:
        # To the microsecond: what is below is noise of the subtraction.
        return round(at_s - earliest_s, 6)

    lines = [
        Line(
            id=str(number),
            text=each.text,
            source=each.source,
            targets=each.targets,
            due_s=since(each.at_s),
            meeting=each.meeting,
            speaker=each.speaker,
            partials=tuple(Partial(since(revision.at_s), revision.text) for revision in each.partials),
        )
        for number, each in said.items()
    ]
    return sorted(lines, key=lambda line: line.due_s)


def _wrong(said: _Recorded) -> str | None:
    """What is wrong with its values; None: nothing."""
    if not said.text.strip():
        return "nothing is said"
    if not said.targets or said.source in said.targets:
        return "it needs targets, and none of them can be what is spoken"
    if len(set(said.targets)) < len(said.targets):
        return "a target is named twice"
    if max(said.times_s) > said.at_s:
        return "a partial is due after its final"
    return None

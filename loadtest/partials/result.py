"""What one reader was sent of one utterance, what their screen made of it, and which promises that breaks; what
the evaluation brings home, as values, the bars it is held to, and the scores of each pair.

Knows: deltas and finals as they came, texts, units, times, numbers and their names. Pure. Must not know: sockets,
clocks, how a result looks (`run`).

A unit is a word; in Japanese and Chinese a character, where a Latin word or a number counts as one. Units of two
texts are compared letter by letter, punctuation included.
"""

from __future__ import annotations

import math
import operator
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, groupby, pairwise, takewhile
from typing import Literal

from msgspec import Struct

from gateway.domain.sessions import Stability
from loadtest.results import joined
from loadtest.systems.server import metric
from loadtest.talk.streams import Stream

_CJK = ("ja", "zh")
# Latin letters with and without accents, digits, and what stands between them: 5,500 or BUG-13.
_CJK_UNIT = re.compile(r"[0-9A-Za-zÀ-ÖØ-öø-ɏ]+(?:[-.,:'’][0-9A-Za-zÀ-ÖØ-öø-ɏ]+)*|\S")


class State(Struct, frozen=True):
    """What a screen shows of one utterance from `at_ms` on: text that stays, then text that may change."""

    at_ms: float
    committed: str
    tentative: str = ""

    @property
    def text(self) -> str:
        return self.committed + self.tentative


def units(text: str, lang: str) -> list[str]:
    """The units of a text; spaces are none."""
    return _CJK_UNIT.findall(text) if lang in _CJK else text.split()


def erased(before: str, after: str, lang: str) -> int:
    """Units of `before` from the first one on that is not in `after`.

    Text that only grew took nothing back, though its last word may be another unit now: `Frei` became `Freitag`.
    """
    if after.startswith(before.rstrip()):
        return 0
    own = units(before, lang)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(own, units(after, lang), strict=False))
    return len(own) - sum(1 for _ in same)


def erasure(texts: Sequence[str], lang: str) -> int:
    """Units taken back while a screen showed these texts in turn.

    Over the units of the final text it is the normalised erasure of Arivazhagan et al. (2020),
    Re-translation versus Streaming for Simultaneous Translation.
    """
    return sum(erased(before, after, lang) for before, after in pairwise(texts))


def lags(
    shown: Sequence[tuple[float, int]],
    heard: Sequence[tuple[float, int]],
    end_ms: float,
    source_units: int,
    target_units: int,
) -> list[float]:
    """How many source units the screen is behind, for each revision at the moment before the next one comes.

    shown: from when on, how many target units; heard: when, how many source units a revision has; both in order.
    end_ms: when the last word came. Target units are counted in source units by the ratio of the whole texts.
    """
    if not target_units:
        return []
    found: list[float] = []
    for index, (_, count) in enumerate(heard):
        until_ms = heard[index + 1][0] if index + 1 < len(heard) else end_ms
        on_screen = next((many for at_ms, many in reversed(shown) if at_ms < until_ms), 0)
        found.append(count - on_screen * source_units / target_units)
    return found


def first_ms(states: Sequence[State]) -> float | None:
    """When there was something to read; null where there never was."""
    return next((state.at_ms for state in states if state.text.strip()), None)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float | None:
    """sacrebleu's with its defaults, 0 to 100; null for nothing."""
    if not hypotheses:
        return None
    # Imported here: a wrong option need not wait for it.
    import sacrebleu

    return float(sacrebleu.corpus_chrf(list(hypotheses), [list(references)]).score)


# ---------------------------------------------------------------- what readers were sent


class Arm(Enum):
    """How revisions reach the gateway.

    OURS: as partials, then a final. NAIVE: each as a final utterance of its own. ALONE: the final only.
    """

    OURS = "ours"
    NAIVE = "naive"
    ALONE = "alone"


class Delta(Struct, frozen=True, array_like=True):
    """A `translation.delta`. at_ms: since the speaker began."""

    at_ms: float
    rev: int
    committed: str
    tentative: str
    segment: int = 1


class Final(Struct, frozen=True, array_like=True):
    """A `translation.final`. In the naive arm `rev` is the revision it translates, 1 the first."""

    at_ms: float
    rev: int
    text: str
    tokens: int
    segment: int = 1


class Reading(Struct, frozen=True):
    """All that one reader got of one stream. failed: the codes of `translation.failed`.

    late: how many deltas came behind the final of their segment. further: how many segments the speaker was told
    of besides the first of each utterance.
    """

    arm: Arm
    stream: str
    lang: str
    stability: Stability
    deltas: list[Delta] = []
    finals: list[Final] = []
    failed: list[str] = []
    late: int = 0
    further: int = 0


def states(reading: Reading) -> list[State]:
    """What the screen showed, one after the other; the last state is the whole translation.

    In the naive arm a newer translation takes the place of an older one, and nothing is shown before it is whole.
    """
    segments = segment_states(reading)
    if len(segments) == 1:
        return segments[0]
    showing: dict[int, State] = {}
    shown: list[State] = []
    changes = [(state.at_ms, number, state) for number, states in enumerate(segments) for state in states]
    for at_ms, number, state in sorted(changes, key=lambda change: change[:2]):
        showing[number] = state
        shown.append(State(at_ms, joined([showing[each].text for each in sorted(showing)], reading.lang)))
    return shown


def segment_states(reading: Reading) -> list[list[State]]:
    """Screen states of each segment by itself, in order: no segment moves what is shown of another. The naive arm
    replaces the whole, which counts as one segment."""
    if reading.arm is Arm.NAIVE:
        whole: list[State] = []
        newest = 0
        last = {final.rev: number for number, final in enumerate(reading.finals)}
        for number, final in enumerate(reading.finals):
            if final.rev > newest and last[final.rev] == number:
                newest = final.rev
                whole.append(State(final.at_ms, "", joined(_texts_of(reading, newest), reading.lang)))
        return [whole]
    found: list[list[State]] = []
    numbers = {delta.segment for delta in reading.deltas} | {final.segment for final in reading.finals}
    for segment in sorted(numbers):
        committed, shown = "", []
        for delta in (delta for delta in reading.deltas if delta.segment == segment):
            committed += delta.committed
            shown.append(State(delta.at_ms, committed, delta.tentative))
        finals = [final for final in reading.finals if final.segment == segment]
        found.append(shown + [State(final.at_ms, final.text) for final in finals[:1]])
    return found or [[]]


def final_texts(reading: Reading) -> list[str]:
    """The translations that stay, segment by segment; in the naive arm those of the newest revision."""
    newest = max((final.rev for final in reading.finals), default=0)
    return _texts_of(reading, newest if reading.arm is Arm.NAIVE else None)


def _texts_of(reading: Reading, rev: int | None) -> list[str]:
    texts: dict[int, str] = {}
    for final in reading.finals:
        if rev in (None, final.rev):
            texts.setdefault(final.segment, final.text)
    return [texts[segment] for segment in sorted(texts)]


def broken(reading: Reading, utterances: int = 1) -> Iterator[str]:
    """Sentences on what this reader was promised and did not get. utterances: finals that the speaker sent."""
    about = f"{reading.stream} in {reading.lang} ({reading.arm.value}, {reading.stability})"
    for code in reading.failed:
        yield f"{about}: not translated, {code}"
    came = [(final.rev if reading.arm is Arm.NAIVE else 0, final.segment) for final in reading.finals]
    if {len(came), len(set(came))} != {utterances + reading.further}:
        yield f"{about}: {len(came)} finals came, {utterances + reading.further} should have"
    if reading.arm is Arm.NAIVE:
        return
    if reading.late:
        yield f"{about}: {reading.late} deltas came behind the final"
    in_order = sorted(reading.deltas, key=lambda delta: delta.segment)
    if any(later.rev < sooner.rev for sooner, later in pairwise(in_order) if later.segment == sooner.segment):
        yield f"{about}: a delta of an older revision came behind one of a newer"
    if reading.stability != "live" and any(delta.tentative for delta in reading.deltas):
        yield f"{about}: was shown text that may change"
    if reading.stability == "final" and reading.deltas:
        yield f"{about}: was shown {len(reading.deltas)} deltas"


def contradictions(readings: Sequence[Reading]) -> Iterator[str]:
    """Where readers of one stream in one language were promised or told different text."""
    finals: defaultdict[int, set[str]] = defaultdict(set)
    promised: defaultdict[int, list[str]] = defaultdict(list)
    for reading in readings:
        for final in reading.finals:
            finals[final.segment].add(final.text)
        for segment in {delta.segment for delta in reading.deltas}:
            promised[segment].append("".join(each.committed for each in reading.deltas if each.segment == segment))
    about = f"{readings[0].stream} in {readings[0].lang} ({readings[0].arm.value})" if readings else ""
    if any(len(texts) > 1 for texts in finals.values()):
        yield f"{about}: readers got different finals"
    if not all(max(texts, key=len).startswith(text) for texts in promised.values() for text in texts):
        yield f"{about}: committed text differs between readers"


# ---------------------------------------------------------------- what the evaluation brings home


# Spoken in most streams, and read by all who speak something else.
PIVOT = "en"

# Others are counted in other units, and speak in another order.
_LAG_TARGETS = ("es", "de", "fr")


class PartialsPlan(Struct, frozen=True, kw_only=True):
    """What to run."""

    engine: Literal["vllm", "simulated"] = "vllm"
    max_num_seqs: int = 16
    sources: tuple[str, ...] = ("en", "es", "de", "fr", "ja", "zh")
    # Streams from the corpus in English; a quarter of that, rounded up, in each other language.
    streams: int = 32
    # Handwritten streams in each language at most.
    handwritten: int = 1_000
    # Speakers at the same time while five languages are read; five times as many while one is.
    speakers: int = 2
    # How much faster than people speak it goes; for trying things.
    speed: float = 1.0
    seed: int = 1
    # Longest time for everything.
    time_limit_s: float = 2_400.0


class Phase(Struct, frozen=True):
    """One arm in one source language."""

    arm: Arm
    source: str
    targets: list[str]
    elapsed_s: float
    # By how much a revision was sent behind its time at most.
    late_ms: float
    # What the gateway's counters grew by, as Prometheus' text.
    counters: str

    def counted(self, name: str, **labels: str) -> float:
        """What one counter grew by, over all its series with these labels."""
        return metric(self.counters, name, **labels) or 0.0

    @property
    def cached_share(self) -> float | None:
        """Prompt tokens that the prefix cache held, of all; None where there were none."""
        tokens = self.counted("gateway_prompt_tokens_total")
        return self.counted("gateway_prompt_tokens_cached_total") / tokens if tokens else None


class Display(Struct, frozen=True):
    """What readers of one kind saw of one pair; None where nothing was shown."""

    # Normalised erasure, with the final that replaces what was shown, and without it.
    erasure: float
    erasure_before: float
    # Lag behind the speaker in source units, median.
    lag_median: float | None
    # Milliseconds from the first revision to the first word, median.
    first_ms: float | None


class Spending(Struct, frozen=True):
    """What one arm cost in one pair."""

    # Generated tokens.
    generated: int
    # Tokens of the translations that stay, the end of each included.
    final: int
    # Time in the engine, of an utterance.
    engine_s: float

    @property
    def ratio(self) -> float:
        return self.generated / max(self.final, 1)


class PairScores(Struct, frozen=True):
    """One pair of languages."""

    source: str
    target: str
    streams: int
    revisions: int
    live: Display
    stable: Display
    # Readers who are shown whole sentences only.
    final_only: Display
    naive: Display
    ours: Spending
    naively: Spending
    alone: Spending
    # Outcome → how many revisions had it.
    outcomes: dict[str, int]
    # Share of the finals that begin with the committed text.
    kept: float
    # chrF of our finals against those of the `alone` arm.
    chrf_alone: float | None

    @property
    def name(self) -> str:
        return f"{self.source}→{self.target}"

    @property
    def times_less(self) -> float:
        """How many times less `live` readers see taken back than those of the naive arm."""
        return self.naive.erasure / self.live.erasure if self.live.erasure else math.inf


class Bar(Struct, frozen=True):
    """One thing that has to hold."""

    name: str
    pair: str
    value: float | None
    # The limit in words, as `<= 0.2`.
    limit: str
    passed: bool


class PartialsResult(Struct, frozen=True):
    """Everything that the evaluation has found."""

    model: str
    # What computed chrF, with its version.
    chrf: str
    plan: PartialsPlan
    elapsed_s: float
    phases: list[Phase]
    pairs: list[PairScores]
    bars: list[Bar]
    # Promises that were not kept, one sentence each.
    broken: list[str]
    streams: list[Stream]
    readings: list[Reading]

    def failures(self) -> Iterator[str]:
        """What makes the exit status 1, one sentence each."""
        yield from self.broken
        # Words behind a tag say nothing about how translations behave.
        if self.plan.engine != "simulated":
            for bar in self.bars:
                if not bar.passed:
                    value = "nothing" if bar.value is None else f"{bar.value:.3g}"
                    yield f"{bar.pair}: {bar.name} is {value}, not {bar.limit}"


_HOLDS = {"<=": operator.le, ">=": operator.ge, "=": operator.eq}
_LAG = "stable lag, median source words"
# Bars for each pair from English.
_BARS: tuple[tuple[str, str, float, Callable[[PairScores], float | None]], ...] = (
    ("live NE, final included", "<=", 0.2, lambda pair: pair.live.erasure),
    ("naive NE / live NE", ">=", 5, lambda pair: pair.times_less),
    ("stable NE before the final", "=", 0, lambda pair: pair.stable.erasure_before),
    ("generated / final tokens", "<=", 2, lambda pair: pair.ours.ratio),
    ("chrF of finals against alone", ">=", 99, lambda pair: pair.chrf_alone),
    (_LAG, "<=", 4, lambda pair: pair.stable.lag_median),
)


def bars(pairs: Sequence[PairScores]) -> list[Bar]:
    """What is asked of the pairs from English, one after the other."""
    found: list[Bar] = []
    for pair in (pair for pair in pairs if pair.source == PIVOT):
        for name, sign, bound, value_of in _BARS:
            if name != _LAG or pair.target in _LAG_TARGETS:
                value = value_of(pair)
                passed = value is not None and _HOLDS[sign](value, bound)
                found.append(Bar(name, pair.name, value, f"{sign} {bound:g}", passed))
    return found


# ---------------------------------------------------------------- from readings to scores


# Outcomes of a revision, as `gateway_partials_total` has it.
_OUTCOMES = ("translated", "superseded", "unchanged", "rejected", "preempted", "refused", "failed")


def broken_promises(streams: Sequence[Stream], readings: Sequence[Reading]) -> list[str]:
    """Sentences on every reader who did not get what was promised."""
    revisions = {stream.id: len(stream.revisions) for stream in streams}
    together: defaultdict[tuple[str, str], list[Reading]] = defaultdict(list)
    for reading in readings:
        if reading.arm is Arm.OURS:
            together[reading.stream, reading.lang].append(reading)
    single = chain.from_iterable(
        broken(reading, revisions[reading.stream] + 1 if reading.arm is Arm.NAIVE else 1) for reading in readings
    )
    return [*single, *chain.from_iterable(map(contradictions, together.values()))]


def pair_scores(
    streams: Sequence[Stream], readings: Sequence[Reading], phases: Sequence[Phase], tokens: Callable[[str], int]
) -> list[PairScores]:
    """One entry for each pair, in the order of the phases. tokens: of a final text, its end included."""
    found: list[PairScores] = []
    for phase in phases:
        if phase.arm is Arm.OURS:
            spoken = [stream for stream in streams if stream.lang == phase.source]
            of_arm = {each.arm: each for each in phases if each.source == phase.source}
            for target in phase.targets:
                here = {(each.arm, each.stability, each.stream): each for each in readings if each.lang == target}
                found.append(_Pair(spoken, here, of_arm, target, tokens).scores())
    return found


@dataclass(frozen=True)
class _Pair:
    """All readings of one pair."""

    streams: Sequence[Stream]
    readings: Mapping[tuple[Arm, Stability, str], Reading]
    phases: Mapping[Arm, Phase]
    target: str
    tokens: Callable[[str], int]

    def scores(self) -> PairScores:
        ours, alone = self._finals(Arm.OURS, "stable"), self._finals(Arm.ALONE, "final")
        both = [stream.id for stream in self.streams if stream.id in ours and stream.id in alone]
        phase = self.phases[Arm.OURS]
        outcomes = {
            name: round(phase.counted("gateway_partials_total", lang=self.target, outcome=name))
            for name in _OUTCOMES
        }
        return PairScores(
            source=phase.source,
            target=self.target,
            streams=len(self.streams),
            # The client does not send what it has just sent.
            revisions=sum(len(list(groupby(each.text for each in stream.revisions))) for stream in self.streams),
            live=self._display(Arm.OURS, "live"),
            stable=self._display(Arm.OURS, "stable"),
            final_only=self._display(Arm.OURS, "final"),
            naive=self._display(Arm.NAIVE, "final"),
            ours=self._spending(Arm.OURS, ours),
            naively=self._spending(Arm.NAIVE, self._finals(Arm.NAIVE, "final")),
            alone=self._spending(Arm.ALONE, alone),
            outcomes={name: count for name, count in outcomes.items() if count},
            kept=self._kept(),
            chrf_alone=chrf(*([joined(each[id], self.target) for id in both] for each in (ours, alone))),
        )

    def _screens(self, arm: Arm, stability: Stability) -> Iterator[tuple[Stream, Reading]]:
        """Streams whose translation is complete, with what was shown of them."""
        for stream in self.streams:
            reading = self.readings.get((arm, stability, stream.id))
            if reading is not None and reading.finals:
                yield stream, reading

    def _finals(self, arm: Arm, stability: Stability) -> dict[str, list[str]]:
        return {stream.id: final_texts(reading) for stream, reading in self._screens(arm, stability)}

    def _display(self, arm: Arm, stability: Stability) -> Display:
        taken_back = before = total = 0
        behind: list[float] = []
        first: list[float] = []
        for stream, reading in self._screens(arm, stability):
            shown = states(reading)
            final = len(units(shown[-1].text, self.target))
            total += final
            for segment in segment_states(reading):
                texts = [state.text for state in segment]
                taken_back += erasure(texts, self.target)
                # In the naive arm the last word is one more revision.
                before += erasure(texts[:-1], self.target)
            source = len(units(stream.final.text, stream.lang))
            heard = [(float(r.at_ms), len(units(r.text, stream.lang))) for r in stream.revisions]
            on_screen = [(state.at_ms, len(units(state.text, self.target))) for state in shown]
            behind += lags(on_screen, heard, stream.final.at_ms, source, final)
            if (at_ms := first_ms(shown)) is not None:
                first.append(at_ms - stream.revisions[0].at_ms)
        return Display(
            erasure=round(taken_back / max(total, 1), 4),
            erasure_before=round(before / max(total, 1), 4),
            lag_median=round(statistics.median(behind), 3) if behind else None,
            first_ms=round(statistics.median(first), 3) if first else None,
        )

    def _spending(self, arm: Arm, finals: Mapping[str, Sequence[str]]) -> Spending:
        phase, lang = self.phases[arm], self.target
        generated = sum(
            phase.counted(f"gateway_{stage}_tokens_total", lang=lang) for stage in ("partial", "final")
        )
        engine_s = phase.counted("gateway_generation_seconds_total", lang=lang) / max(len(self.streams), 1)
        return Spending(round(generated), sum(map(self.tokens, chain(*finals.values()))), round(engine_s, 4))

    def _kept(self) -> float:
        """Share of the finals that begin with what was committed before."""
        screens = [shown for _, each in self._screens(Arm.OURS, "stable") for shown in segment_states(each)]
        kept = sum(len(shown) < 2 or shown[-1].text.startswith(shown[-2].committed.rstrip()) for shown in screens)
        return round(kept / max(len(screens), 1), 4)

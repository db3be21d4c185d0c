"""What the evaluation brings home, as values, and the bars it is held to.

Knows: numbers and their names. Must not know: how they were found, or how they look (`report`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from loadtest.partials.screens import Arm, Reading
from loadtest.systems.metrics import metric
from loadtest.talk.streams import Stream

# Spoken in most streams, and read by all who speak something else.
PIVOT = "en"

# Others are counted in other units, and speak in another order.
_LAG_TARGETS = ("es", "de", "fr")


class PartialsPlan(Struct, frozen=True, kw_only=True):
    """What to run."""

    engine: Literal["vllm", "simulated"] = "vllm"
    max_num_seqs: int = 16
    sources: tuple[str, ...] = ("en", "es", "de", "fr", "ja", "zh")
    # From the corpus, spoken in English; a quarter of it, rounded up, in each other language.
    streams: int = 32
    # How many of those written by hand in each language at most.
    handwritten: int = 1_000
    # At the same time while five languages are read; five times as many while one is.
    speakers: int = 2
    # How much faster than people speak it goes; for trying things.
    speed: float = 1.0
    seed: int = 1
    # Bound of everything.
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

    # Normalised, with the final that replaces what was shown, and without it.
    erasure: float
    erasure_before: float
    # Source units behind the speaker, median.
    lag_median: float | None
    # From the first revision to the first word, median.
    first_ms: float | None


class Spending(Struct, frozen=True):
    """What one arm cost in one pair."""

    # Tokens.
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
    # Revisions by what became of them.
    outcomes: dict[str, int]
    # Share of the finals that begin with the committed text.
    kept: float
    # Of our finals against those of the `alone` arm.
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
    # In words, as `<= 0.2`.
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
# What is asked of each pair from English.
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

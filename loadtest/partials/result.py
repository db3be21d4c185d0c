"""What the evaluation brings home, as values, and the bars it is held to.

Knows: numbers and their names. Must not know: how they were found, or how they look (`report`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from loadtest.machine import Machine
from loadtest.partials.counters import Counters
from loadtest.partials.screens import Arm, Reading
from loadtest.talk.streams import Stream

__all__ = [
    "PIVOT",
    "Bar",
    "Display",
    "PairScores",
    "PartialsPlan",
    "PartialsResult",
    "Phase",
    "Spending",
    "bars",
]

# Spoken in most streams, and read by all who speak something else.
PIVOT = "en"

_NE_MOST = 0.2
_NE_TIMES_LESS = 5.0
_TOKENS_MOST = 2.0
_CHRF_LEAST = 99.0
_LAG_MOST = 4.0
# Others are counted in other units, and speak in another order.
_LAG_TARGETS = ("es", "de", "fr")


class PartialsPlan(Struct, frozen=True, kw_only=True):
    """What to run."""

    engine: Literal["vllm", "simulated"] = "vllm"
    max_num_seqs: int = 16
    dtype: str = "auto"
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
    speakers: int
    streams: int
    elapsed_s: float
    # Cores used on average: by the process with gateway and clients, by the engine's with their host, by others.
    serving_cores: float
    engine_cores: float
    other_cores: float
    # Translations in the engine at a time, on average.
    in_engine: float
    # By how much a revision was sent behind its time at most.
    late_ms: float
    # Of the gateway, what they grew by.
    counters: Counters

    @property
    def reused_tokens(self) -> float:
        return self.counters.total("gateway_tokens_reused_total")

    @property
    def cached_share(self) -> float | None:
        """Prompt tokens that the prefix cache held, of all; None where there were none."""
        tokens = self.counters.total("gateway_prompt_tokens_total")
        return self.counters.total("gateway_prompt_tokens_cached_total") / tokens if tokens else None


class Display(Struct, frozen=True):
    """What readers of one kind saw of one pair; None where nothing was shown."""

    # Normalised, with the final that replaces what was shown.
    erasure: float
    # The same without the final.
    erasure_before: float
    # Source units behind the speaker.
    lag_median: float | None
    lag_mean: float | None
    # From the first revision to the first word: median, and 90th percentile.
    first_ms: float | None
    first_p90_ms: float | None
    # Source units, and milliseconds.
    laal: float | None
    laal_ms: float | None


class Spending(Struct, frozen=True):
    """What one arm cost in one pair."""

    # Tokens.
    generated: int
    # Tokens of the translations that stay, the end of each included.
    final: int
    # Time in the engine, of an utterance.
    engine_s: float
    # Requests to the engine that were finished, of an utterance.
    requests: float

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
    # Share of our finals that are those of the `alone` arm letter by letter.
    same: float
    # Of our finals against those.
    chrf_alone: float | None
    # Of both against the corpus, where it has a translation.
    chrf_reference: float | None
    alone_reference: float | None


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

    command: str
    began: str
    model: str
    dtype: str
    # What tokens were counted with.
    tokenizer: str
    # What computed chrF, with its version.
    chrf: str
    # The gateway's own settings of what it shows when.
    policy: dict[str, str]
    plan: PartialsPlan
    machine: Machine
    elapsed_s: float
    phases: list[Phase]
    pairs: list[PairScores]
    bars: list[Bar]
    # Promises that were not kept, one sentence each.
    broken: list[str]
    streams: list[Stream]
    readings: list[Reading]
    kind: Literal["partials"] = "partials"

    def failures(self) -> Iterator[str]:
        """What makes the exit status 1, one sentence each."""
        yield from self.broken
        # Words behind a tag say nothing about how translations behave.
        if self.plan.engine != "simulated":
            for bar in self.bars:
                if not bar.passed:
                    value = "nothing" if bar.value is None else f"{bar.value:.3g}"
                    yield f"{bar.pair}: {bar.name} is {value}, not {bar.limit}"


def bars(pairs: list[PairScores]) -> list[Bar]:
    """What is asked of the pairs from English, one after the other."""
    found: list[Bar] = []
    for pair in pairs:
        if pair.source != PIVOT:
            continue
        name = f"{pair.source}→{pair.target}"

        def bar(what: str, value: float | None, limit: str, passed: bool, name: str = name) -> None:
            found.append(Bar(what, name, value, limit, passed))

        live, naive = pair.live.erasure, pair.naive.erasure
        bar("live NE, final included", live, f"<= {_NE_MOST:g}", live <= _NE_MOST)
        bar(
            "naive NE / live NE",
            naive / live if live else None,
            f">= {_NE_TIMES_LESS:g}",
            naive >= _NE_TIMES_LESS * live,
        )
        before = pair.stable.erasure_before
        bar("stable NE before the final", before, "= 0", before == 0)
        bar("generated / final tokens", pair.ours.ratio, f"<= {_TOKENS_MOST:g}", pair.ours.ratio <= _TOKENS_MOST)
        quality = pair.chrf_alone
        bar(
            "chrF of finals against alone",
            quality,
            f">= {_CHRF_LEAST:g}",
            quality is not None and quality >= _CHRF_LEAST,
        )
        if pair.target in _LAG_TARGETS:
            lag = pair.stable.lag_median
            bar("stable lag, median source words", lag, f"<= {_LAG_MOST:g}", lag is not None and lag <= _LAG_MOST)
    return found

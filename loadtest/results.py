"""What was measured, as values, and the arithmetic on it.

Knows: outcomes, rounds, percentiles, medians. Must not know: engines, sockets, clocks, files.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

__all__ = [
    "Latency",
    "LoadtestError",
    "Outcome",
    "Round",
    "Route",
    "RouteSummary",
    "Spread",
    "first_error",
    "nearest_rank",
    "ratios",
    "summarise",
]


class LoadtestError(Exception):
    """The load test cannot go on; its text is one sentence for people."""


def first_error(error: BaseException) -> BaseException:
    """What went wrong first, of a group of errors."""
    return first_error(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


class Route(Enum):
    """How an utterance reaches the engine."""

    DIRECT = "direct"
    WEBSOCKET = "websocket"


class Outcome(Struct, frozen=True):
    """What became of one utterance. Milliseconds count from when it was sent.

    first_token_ms: to the first text of its translation; null when none came.
    failed: the error code or sentence; null when it was translated.
    """

    id: str
    first_token_ms: float | None
    total_ms: float
    tokens: int
    text: str = ""
    failed: str | None = None


class Round(Struct, frozen=True):
    """One pass over the list on one route with `in_flight` utterances at a time.

    elapsed_s: from the first utterance sent to the last one translated. tokens: generated ones.
    serving_cpu_s: CPU time of the process that holds the gateway and vLLM's front end, its threads included;
    engine_cpu_s: of the processes below it that run the model; client_cpu_s: of the client process (0 when
    direct); other_cpu_s: of everything else on the machine. first_token_ms, total_ms: one entry an utterance.
    """

    route: Route
    in_flight: int
    repetition: int
    elapsed_s: float
    utterances: int
    failed: int
    tokens: int
    serving_cpu_s: float
    engine_cpu_s: float
    client_cpu_s: float
    other_cpu_s: float
    first_token_ms: list[float]
    total_ms: list[float]

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.elapsed_s

    @property
    def requests_per_s(self) -> float:
        return (self.utterances - self.failed) / self.elapsed_s

    @property
    def serving_cpu_s_per_1000_tokens(self) -> float:
        return self.serving_cpu_s / max(self.tokens, 1) * 1000

    @property
    def client_cpu_s_per_1000_tokens(self) -> float:
        return self.client_cpu_s / max(self.tokens, 1) * 1000

    @property
    def other_cpu_share(self) -> float:
        """Cores that other processes used, on average over the round."""
        return self.other_cpu_s / self.elapsed_s


class Spread(Struct, frozen=True):
    """Over repetitions."""

    median: float
    low: float
    high: float


class Latency(Struct, frozen=True):
    """Percentiles over every utterance of every repetition, milliseconds; null when there was none."""

    p50_ms: float | None
    p99_ms: float | None


class RouteSummary(Struct, frozen=True):
    """All rounds of one route at one number in flight."""

    route: Route
    in_flight: int
    repetitions: int
    utterances: int
    failed: int
    tokens_per_s: Spread
    requests_per_s: Spread
    serving_cpu_s_per_1000_tokens: Spread
    client_cpu_s_per_1000_tokens: Spread
    other_cores: Spread
    first_token: Latency
    total: Latency


def nearest_rank(values: Sequence[float], quantile: float) -> float:
    """The smallest value that at least this share of `values` does not exceed; `values` is not empty."""
    ordered = sorted(values)
    return ordered[max(math.ceil(quantile * len(ordered)), 1) - 1]


def summarise(rounds: Sequence[Round]) -> RouteSummary:
    """Rounds of one route and number in flight; there is at least one."""
    first = rounds[0]
    return RouteSummary(
        route=first.route,
        in_flight=first.in_flight,
        repetitions=len(rounds),
        utterances=sum(each.utterances for each in rounds),
        failed=sum(each.failed for each in rounds),
        tokens_per_s=_spread([each.tokens_per_s for each in rounds]),
        requests_per_s=_spread([each.requests_per_s for each in rounds]),
        serving_cpu_s_per_1000_tokens=_spread([each.serving_cpu_s_per_1000_tokens for each in rounds]),
        client_cpu_s_per_1000_tokens=_spread([each.client_cpu_s_per_1000_tokens for each in rounds]),
        other_cores=_spread([each.other_cpu_share for each in rounds]),
        first_token=_latency([ms for each in rounds for ms in each.first_token_ms]),
        total=_latency([ms for each in rounds for ms in each.total_ms]),
    )


def ratios(direct: Sequence[Round], websocket: Sequence[Round]) -> Spread:
    """Tokens/s through the WebSocket as a part of those directly, each repetition against its neighbour."""
    own = {each.repetition: each.tokens_per_s for each in direct}
    return _spread([each.tokens_per_s / own[each.repetition] for each in websocket])


def _spread(values: Sequence[float]) -> Spread:
    return Spread(round(statistics.median(values), 4), round(min(values), 4), round(max(values), 4))


def _latency(values: Sequence[float]) -> Latency:
    if not values:
        return Latency(None, None)
    return Latency(nearest_rank(values, 0.5), nearest_rank(values, 0.99))

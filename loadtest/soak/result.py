"""What a soak brings home, as values.

Knows: numbers and their names. Must not know: how they were found, or how they look (`report`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from loadtest.machine import Machine
from loadtest.soak.faults import Suffered
from loadtest.soak.verdict import Verdict

__all__ = ["Incarnation", "LatencyRow", "Sample", "SoakPlan", "SoakResult"]


class SoakPlan(Struct, frozen=True, kw_only=True):
    """What to run.

    minutes: of load; starting, calming down and giving memory back come on top. stay_minutes: how long a client
    stays on average, of those that do not stay to the end. fault_every_s: mean time between faults of single
    clients. keep_s, log_keep_s: the gateway's `limits.keep_s` and `event_log.keep_s`.
    """

    engine: Literal["vllm", "simulated"] = "vllm"
    minutes: float = 30.0
    sessions: int = 200
    utterances_per_minute: float = 240.0
    stay_minutes: float = 6.0
    fault_every_s: float = 4.0
    keep_s: int = 60
    log_keep_s: int = 120
    seed: int = 1


class Sample(Struct, frozen=True):
    """The state at one moment. at_s: after the load began. sessions: connected; away: kept without connection.

    accepted: utterances so far; delivered: publications that clients received so far. Null: the gateway could not
    be asked.
    """

    at_s: float
    gateway_mib: float
    engine_mib: float
    sessions: float | None
    away: float | None
    waiting: float | None
    running: float | None
    publications: float | None
    accepted: int
    delivered: int


class LatencyRow(Struct, frozen=True):
    """Milliseconds from when something was said to when a reader had it. readings: how many.

    Only readers that were connected all the time between count; `first` is null where none of them saw a delta.
    """

    name: str
    readings: int
    first_p50: float | None
    first_p99: float | None
    total_p50: float | None
    total_p99: float | None
    total_max: float | None


class Incarnation(Struct, frozen=True):
    """Memory of one gateway process, MiB. settled: a minute after it was ready; final: at its end."""

    number: int
    gateway_settled: float
    gateway_peak: float
    gateway_final: float
    engine_settled: float
    engine_peak: float
    engine_final: float


class SoakResult(Struct, frozen=True):
    """Everything that `result.json` holds.

    settings: of the gateway. load_s: from the first client to the last word. gauges: of the
    gateway, once everybody had gone and everything had expired. counters: of all its processes together.
    exit_status: of the last one; tracebacks: in the logs of all. unquiet: what was not as it should be before the
    clients left, in words.
    """

    command: str
    began: str
    plan: SoakPlan
    settings: dict[str, str]
    machine: Machine
    load_s: float
    verdict: Verdict
    faults: list[Suffered]
    latency: list[LatencyRow]
    memory: list[Incarnation]
    gauges: dict[str, float | None]
    counters: dict[str, float]
    exit_status: int
    tracebacks: int
    unquiet: str | None
    samples: list[Sample]

    def failures(self) -> Iterator[str]:
        """What makes the exit status 1, one sentence each."""
        verdict = self.verdict
        for name in Verdict.__struct_fields__:
            if name in Verdict.broken_by and (count := getattr(verdict, name)):
                yield f"{name.replace('_', ' ')}: {count}"
        if not verdict.accepted:
            yield "nothing was accepted"
        for name, value in self.gauges.items():
            if value != 0:
                yield f"{name} is {'missing' if value is None else f'{value:g}'} at the end"
        if self.exit_status:
            yield f"the gateway ended with status {self.exit_status}"
        if self.tracebacks:
            yield f"the gateway wrote {self.tracebacks} tracebacks to its log"
        if self.unquiet is not None:
            yield self.unquiet

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
    """What to run."""

    engine: Literal["vllm", "simulated"] = "vllm"
    # Of load; starting, calming down and giving memory back come on top.
    minutes: float = 30.0
    # Held at the same time.
    sessions: int = 200
    utterances_per_minute: float = 240.0
    # How long a client stays on average, of those that do not stay to the end.
    stay_minutes: float = 6.0
    # Mean time between faults of single clients.
    fault_every_s: float = 4.0
    # The gateway's `limits.keep_s` and `event_log.keep_s`.
    keep_s: int = 60
    log_keep_s: int = 120
    seed: int = 1


class Sample(Struct, frozen=True):
    """The state at one moment; None where the gateway could not be asked."""

    # After the load began.
    at_s: float
    gateway_mib: float
    engine_mib: float
    # Connected.
    sessions: float | None
    # Kept without connection.
    away: float | None
    waiting: float | None
    running: float | None
    publications: float | None
    # Utterances so far.
    accepted: int
    # Publications that clients received so far.
    delivered: int


class LatencyRow(Struct, frozen=True):
    """Milliseconds from when something was said to when a reader had it.

    Only readers that were connected all the time between count.
    """

    name: str
    # How many.
    readings: int
    # None where none of them saw a delta.
    first_p50: float | None
    first_p99: float | None
    total_p50: float | None
    total_p99: float | None
    total_max: float | None


class Incarnation(Struct, frozen=True):
    """Memory of one gateway process and its engine, MiB."""

    number: int
    # A minute after it was ready.
    gateway_settled: float
    gateway_peak: float
    # At its end.
    gateway_final: float
    engine_settled: float
    engine_peak: float
    engine_final: float


class SoakResult(Struct, frozen=True):
    """Everything that a soak has found."""

    command: str
    began: str
    plan: SoakPlan
    # The gateway's environment variables.
    settings: dict[str, str]
    machine: Machine
    # From the first client to the last word.
    load_s: float
    verdict: Verdict
    faults: list[Suffered]
    latency: list[LatencyRow]
    memory: list[Incarnation]
    # Of the gateway, once everybody had gone and everything had expired.
    gauges: dict[str, float | None]
    # Of all its processes together.
    counters: dict[str, float]
    # Of the last process.
    exit_status: int
    # In the logs of all processes.
    tracebacks: int
    # What was not as it should be before the clients left, in words.
    unquiet: str | None
    samples: list[Sample]
    kind: Literal["soak"] = "soak"

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

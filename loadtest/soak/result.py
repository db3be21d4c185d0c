"""What a soak brings home, as values.

Knows: numbers and their names. Must not know: how they were found, or how they look (`report`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from msgspec import Struct

from loadtest.soak.faults import Fault, FaultKind

# How soon after a fault all has to be well again.
_BACK_WITHIN_S = {FaultKind.STORE_KILL: 5.0, FaultKind.WORKER_KILL: 60.0, FaultKind.WORKER_STOP: 60.0}


class SoakPlan(Struct, frozen=True, kw_only=True):
    """What to run."""

    engine: Literal["vllm", "simulated"] = "vllm"
    # How many of them, each with every language.
    engines: int = 1
    # Minutes of load; starting, calming down and giving memory back come on top.
    minutes: float = 30.0
    # Held at the same time.
    sessions: int = 200
    utterances_per_minute: float = 240.0
    # The gateway's `limits.keep_s` and `event_log.keep_s`.
    keep_s: int = 60
    log_keep_s: int = 120
    seed: int = 1
    # Processes of the gateway, which share a store of their own; None: one process without a store.
    workers: int | None = None
    # The only kind of fault, and how often; None: every kind.
    only: FaultKind | None = None
    times: int = 20
    # Percent of the packets between the workers and their store that are lost.
    loss: float = 0.0


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
    running: float | None
    # Publications that clients received so far.
    delivered: int
    store_mib: float = 0.0


class Incarnation(Struct, frozen=True):
    """Memory of one gateway, with all its workers, its engine and its store, MiB."""

    number: int
    # A minute after it was ready.
    gateway_settled: float
    gateway_peak: float
    # At its end.
    gateway_final: float
    engine_settled: float
    engine_peak: float
    engine_final: float
    store_settled: float = 0.0
    store_peak: float = 0.0
    store_final: float = 0.0


class Verdict(Struct, frozen=True):
    """What the checker counted."""

    # Finals.
    said: int = 0
    accepted: int = 0
    # Their client left cleanly without `accepted` or an error.
    unanswered: int = 0
    # By code.
    refused: dict[str, int] = {}
    clients: int = 0
    # Sessions resumed.
    resumed: int = 0
    # Sessions begun again because the earlier one was gone.
    not_resumed: int = 0
    # Clients that ended in an error.
    gave_up: int = 0
    # Pairs of a client and a caption or an outcome in one language.
    owed: int = 0
    delivered: int = 0
    lost: int = 0
    # Newest utterances that a new session did not begin with.
    not_shown: int = 0
    # Publications that a client handed out twice.
    duplicates: int = 0
    # Publications that arrived twice in one session.
    wire_duplicates: int = 0
    # Captions or outcomes with two offsets.
    twice_in_log: int = 0
    # Offsets at which clients saw different things, acceptances with another offset than their caption, and
    # resumed sessions that are another.
    conflicts: int = 0
    # Publications handed out with an offset that is not above the one before.
    out_of_order: int = 0
    # By code.
    failed: dict[str, int] = {}
    # Failures in the log that no cancellation explains.
    failed_unexpectedly: int = 0
    # Accepted utterances that are not, or more than once, in the meeting's transcript.
    transcript_missing: int = 0
    transcript_twice: int = 0
    # Outcomes that a reader had got, and that the transcript did not have.
    outcome_missing: int = 0
    # Sessions not resumed though their client had been silent for less than the keep time.
    unrecovered: int = 0
    # Errors about the session, by code.
    told: dict[str, int] = {}
    # The first of each kind, in words.
    problems: list[str] = []

    # Each of these is a promise that was not kept.
    broken_by: ClassVar[tuple[str, ...]] = (
        *("lost", "duplicates", "wire_duplicates", "unanswered", "gave_up", "not_shown", "twice_in_log"),
        *("conflicts", "out_of_order", "failed_unexpectedly", "transcript_missing", "transcript_twice"),
        *("outcome_missing", "unrecovered"),
    )

    def broken(self) -> dict[str, int]:
        """How often each promise was not kept that was not."""
        return {name: count for name in self.broken_by if (count := getattr(self, name))}


class SoakResult(Struct, frozen=True):
    """Everything that a soak has found."""

    plan: SoakPlan
    # The gateway's environment variables.
    settings: dict[str, str]
    # From the first client to the last word.
    load_s: float
    verdict: Verdict
    faults: list[Fault]
    memory: list[Incarnation]
    # The gateway's, once everybody had gone and everything had expired.
    gauges: dict[str, float | None]
    # The last process's.
    exit_status: int
    # In the logs of all processes.
    tracebacks: int
    # What was not as it should be before the clients left, in words.
    unquiet: str | None
    samples: list[Sample]

    def failures(self) -> Iterator[str]:
        """What makes the exit status 1, one sentence each."""
        for name, count in self.verdict.broken().items():
            yield f"{name.replace('_', ' ')}: {count}"
        if not self.verdict.accepted:
            yield "nothing was accepted"
        for name, value in self.gauges.items():
            if value != 0:
                yield f"{name} is {'missing' if value is None else f'{value:g}'} at the end"
        for fault in self.faults:
            if (within_s := _BACK_WITHIN_S.get(fault.kind)) is None:
                continue
            when = f"{fault.kind.value} at {fault.began_s:.0f} s"
            if fault.recovered_s is None:
                yield f"{when}, not back"
            elif fault.recovered_s > within_s:
                yield f"{when}, back after {fault.recovered_s:.1f} s, not {within_s:g} s"
        if self.exit_status:
            yield f"the gateway ended with status {self.exit_status}"
        if self.tracebacks:
            yield f"the gateway wrote {self.tracebacks} tracebacks to its log"
        if self.unquiet is not None:
            yield self.unquiet

"""What a soak brings home, as values, and what it shows: its verdict, faults and memory as tables, and the run
over time as charts.

Knows: numbers, their names, what they mean to people. Must not know: how they were found, how a table or a chart
is drawn.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

from msgspec import Struct, to_builtins

from loadtest.options import model_name
from loadtest.soak.faults import OF_EVERYBODY, WHAT, Fault, FaultKind
from loadtest.trial.content import Chart, Series, Table, tabulated
from loadtest.trial.values import Finding, Results

# How soon after a fault all has to be well again.
_BACK_WITHIN_S = {FaultKind.STORE_KILL: 5.0, FaultKind.WORKER_KILL: 60.0, FaultKind.WORKER_STOP: 60.0}


class SoakPlan(Struct, frozen=True, kw_only=True):
    """What to run."""

    engine: Literal["vllm", "simulated"] = "vllm"
    # How many engines, each with every language.
    engines: int = 1
    # Minutes of load; starting, calming down and giving memory back come on top.
    minutes: float = 30.0
    # Sessions held at the same time.
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

    # Seconds after the load began.
    at_s: float
    gateway_mib: float
    engine_mib: float
    # Connected sessions.
    sessions: float | None
    # Sessions kept without connection.
    away: float | None
    running: float | None
    # Publications that clients received so far.
    delivered: int
    store_mib: float = 0.0


class Memory(Struct, frozen=True):
    """Resident memory of one part of a gateway, MiB: a minute after it was ready, at most, at its end."""

    settled: float = 0.0
    peak: float = 0.0
    final: float = 0.0


class Incarnation(Struct, frozen=True):
    """Memory of one gateway, with all its workers."""

    number: int
    gateway: Memory
    engine: Memory
    store: Memory = Memory()


class Verdict(Struct, frozen=True):
    """What the checker counted; `WORDS` says what each is. Dictionaries are by code."""

    said: int = 0
    accepted: int = 0
    unanswered: int = 0
    refused: dict[str, int] = {}
    clients: int = 0
    resumed: int = 0
    not_resumed: int = 0
    gave_up: int = 0
    owed: int = 0
    delivered: int = 0
    lost: int = 0
    not_shown: int = 0
    duplicates: int = 0
    wire_duplicates: int = 0
    twice_in_log: int = 0
    # Acceptances with another offset than their caption count, too, and resumed sessions that are another.
    conflicts: int = 0
    out_of_order: int = 0
    failed: dict[str, int] = {}
    failed_unexpectedly: int = 0
    transcript_missing: int = 0
    transcript_twice: int = 0
    outcome_missing: int = 0
    unrecovered: int = 0
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


# As a report has them, one after the other.
WORDS = {
    "said": "utterances said",
    "accepted": "accepted",
    "refused": "refused for good",
    "unanswered": "neither accepted nor refused",
    "owed": "captions and translations owed to readers",
    "delivered": "delivered",
    "lost": "**lost**",
    "duplicates": "**duplicates seen by readers**",
    "wire_duplicates": "duplicates on the wire, within a session",
    "out_of_order": "out of order",
    "twice_in_log": "translated twice in a log",
    "conflicts": "contradictions between clients",
    "transcript_missing": "accepted, and not in the transcript",
    "transcript_twice": "in the transcript twice",
    "outcome_missing": "outcomes that a reader got, and not in the transcript",
    "failed": "`translation.failed`",
    "failed_unexpectedly": "of those not caused by a cancellation",
    "clients": "clients, one after the other in each seat",
    "resumed": "sessions resumed with all that was missed",
    "not_resumed": "sessions begun again after too long an absence",
    "unrecovered": "of those though they came back in time",
    "not_shown": "newest utterances not shown to a newcomer",
    "gave_up": "clients that gave up",
    "told": "errors that clients were told",
}


class SoakResult(Struct, frozen=True):
    """Everything that a soak has found."""

    plan: SoakPlan
    # The gateway's environment variables.
    settings: dict[str, str]
    # Seconds from the first client to the last word.
    load_s: float
    verdict: Verdict
    faults: list[Fault]
    memory: list[Incarnation]
    # Gauges of the gateway once all clients had gone and everything had expired.
    gauges: dict[str, float | None]
    # Exit status of the last process.
    exit_status: int
    # Tracebacks in the logs of all processes.
    tracebacks: int
    # What was not as it should be before the clients left, in words.
    unquiet: str | None
    samples: list[Sample]
    first_traceback: str = ""

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


def results(result: SoakResult) -> Results:
    """The whole report."""
    failures = list(result.failures())
    value = f"{len(failures)} not kept" if failures else "kept"
    promises = Finding("every promise", value, "kept", not failures, "; ".join(failures))
    return Results(
        model=model_name({"engine": {"kind": result.plan.engine}}),
        findings=[promises],
        parts=list(_parts(result)),
        charts=_charts(result),
        details=to_builtins(result),
    )


# ---------------------------------------------------------------- the tables


def _parts(result: SoakResult) -> Iterator[str | Table]:
    yield Table("", ("", ""), list(_verdict(result.verdict)))
    made: list[tuple[str, ...]] = []
    for kind, what in WHAT.items():
        own = [fault.recovered_s for fault in result.faults if fault.kind is kind]
        known = [recovered_s for recovered_s in own if recovered_s is not None]
        repairs = f"{statistics.median(known):.1f}, {max(known):.1f}" if known else ""
        if own:
            made.append((kind.value, str(len(own)), repairs, what))
    yield Table("", ("fault", "times", "until repaired, s: median, most", "what"), made)
    columns: list[tuple[str, Callable[[Fault], str]]] = [
        ("fault of everybody", lambda each: each.kind.value),
        ("at", lambda each: f"{int(each.began_s) // 60}:{int(each.began_s) % 60:02d}"),
        ("kept up, s", lambda each: f"{each.pause_s:.0f}" if each.pause_s else ""),
        ("until repaired, s", lambda each: "" if each.recovered_s is None else f"{each.recovered_s:.1f}"),
        ("", lambda each: each.note),
    ]
    yield tabulated("", _of_everybody(result), columns)
    who = "process" if result.plan.workers is None else "with its workers,"
    rows = [
        (name, *(f"{mib:,.0f}" for mib in (memory.settled, memory.peak, memory.final)))
        for each in result.memory
        for name, memory in (
            (f"gateway {who} {each.number}", each.gateway),
            ("its engine", each.engine),
            ("its store", each.store),
        )
        if memory.peak or memory is not each.store
    ]
    yield Table("", ("memory, MiB", "a minute after it was ready", "peak", "final"), rows)
    yield Table(
        "",
        ("at the end, with everybody gone", ""),
        [(f"`{name}`", "missing" if value is None else f"{value:g}") for name, value in result.gauges.items()],
    )
    yield from _notes(result)
    if result.verdict.problems:
        yield "What went wrong, the first of each kind:"
        yield "\n".join(f"- {problem}" for problem in result.verdict.problems)
    if result.first_traceback:
        yield f"The first traceback:\n\n```\n{result.first_traceback}\n```"


def _verdict(verdict: Verdict) -> Iterator[tuple[str, str]]:
    for name, words in WORDS.items():
        found = getattr(verdict, name)
        if isinstance(found, dict):
            value = ", ".join(f"`{code}` {count:,}" for code, count in sorted(found.items())) or "0"
        else:
            value = f"{found:,}"
        yield words, f"**{value}**" if words.startswith("**") else value


def _of_everybody(result: SoakResult) -> list[Fault]:
    return [fault for fault in result.faults if fault.kind in OF_EVERYBODY]


def _notes(result: SoakResult) -> Iterator[str]:
    plan, per_s = result.plan, result.verdict.accepted / max(result.load_s, 1.0)
    yield (
        f"Seed {plan.seed}: {plan.sessions} sessions, {plan.utterances_per_minute:g} utterances a minute offered, "
        f"{per_s * 60:.0f} accepted; {result.load_s / 60:.1f} minutes of load."
    )
    workers = "" if plan.workers is None else f", {plan.workers} workers with a store of their own"
    workers += f", to and from which {plan.loss:g} % of packets are lost" if plan.loss else ""
    yield f"Gateway, engine and clients share the machine's cores. Engine {plan.engine}{workers}."
    settings = ", ".join(f"`{name}={value}`" for name, value in result.settings.items())
    yield f"Settings: {settings}."


def _charts(result: SoakResult) -> list[Chart]:
    """The run over time; a line for each fault of everybody."""
    minutes = [sample.at_s / 60 for sample in result.samples]
    faults = [(fault.began_s / 60, fault.kind.value) for fault in _of_everybody(result)]

    def chart(title: str, y_label: str, naming: bool = False, **lines: Callable[[Sample], float | None]) -> Chart:
        return Chart(
            title=title,
            x_label="minutes",
            y_label=y_label,
            series=[
                Series(name, minutes, list(map(value, result.samples)), markers=False)
                for name, value in lines.items()
            ],
            marks=[(kind if naming else "", at) for at, kind in faults],
        )

    return [
        chart("Sessions", "sessions", connected=lambda each: each.sessions, kept=lambda each: each.away),
        chart("Translations in the engine", "translations", naming=True, running=lambda each: each.running),
        chart("Delivered to readers", "captions and translations", delivered=lambda each: each.delivered),
        chart("Memory of the gateway", "MiB", gateway=lambda each: each.gateway_mib),
        chart("Memory of the store", "MiB", store=lambda each: each.store_mib),
        chart("Memory of the engine", "MiB", engine=lambda each: each.engine_mib),
    ]

"""What a soak shows: its verdict, faults and memory as tables, and the run over time as charts.

Knows: what a result means to people. Must not know: how it was found, how a table or a chart is drawn.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator

from msgspec import to_builtins

from loadtest.options import model_name
from loadtest.soak.faults import OF_EVERYBODY, Fault, FaultKind
from loadtest.soak.result import Sample, SoakResult
from loadtest.trial.content import Chart, Mark, Series, Table
from loadtest.trial.values import Finding, Results

_WHAT = {
    FaultKind.ABORT: "connection reset",
    FaultKind.HALF_OPEN: "client silent on an open connection, then back on another",
    FaultKind.ABSENCE: "connection reset, back within the keep time",
    FaultKind.LONG_ABSENCE: "connection reset, back after the keep time",
    FaultKind.CLIENT_STOP: "SIGSTOP of a client process, then SIGCONT",
    FaultKind.ENGINE_KILL: "SIGKILL of the engine's process",
    FaultKind.ENGINE_STOP: "SIGSTOP of the engine's process",
    FaultKind.RESTART: "SIGTERM of the gateway, and a new one",
    FaultKind.WORKER_KILL: "SIGKILL of one of the gateway's workers",
    FaultKind.WORKER_STOP: "SIGSTOP of one of the gateway's workers, then SIGCONT",
    FaultKind.RELOAD: "SIGHUP of the gateway, which replaces its workers one after another",
    FaultKind.STORE_KILL: "SIGKILL of the store; repaired once a final is accepted",
}


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
    yield Table("", ("", ""), list(_verdict(result)))
    counts = Counter(fault.kind for fault in result.faults)
    made = [
        (kind.value, str(counts[kind]), _repairs(result, kind), what)
        for kind, what in _WHAT.items()
        if counts[kind]
    ]
    yield Table("", ("fault", "times", "until repaired, s: median, most", "what"), made)
    yield Table(
        "",
        ("fault of everybody", "at", "kept up, s", "until repaired, s", ""),
        [
            (
                fault.kind.value,
                f"{int(fault.began_s) // 60}:{int(fault.began_s) % 60:02d}",
                f"{fault.pause_s:.0f}" if fault.pause_s else "",
                "" if fault.recovered_s is None else f"{fault.recovered_s:.1f}",
                fault.note,
            )
            for fault in _of_everybody(result)
        ],
    )
    rows = []
    for each in result.memory:
        gateway = (each.gateway_settled, each.gateway_peak, each.gateway_final)
        engine = (each.engine_settled, each.engine_peak, each.engine_final)
        who = "process" if result.plan.workers is None else "with its workers,"
        rows.append((f"gateway {who} {each.number}", *(f"{mib:,.0f}" for mib in gateway)))
        rows.append(("its engine", *(f"{mib:,.0f}" for mib in engine)))
        if each.store_peak:
            store = (each.store_settled, each.store_peak, each.store_final)
            rows.append(("its store", *(f"{mib:,.0f}" for mib in store)))
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


def _verdict(result: SoakResult) -> Iterator[tuple[str, str]]:
    verdict = result.verdict
    yield "utterances said", f"{verdict.said:,}"
    yield "accepted", f"{verdict.accepted:,}"
    yield "refused for good", _codes(verdict.refused)
    yield "neither accepted nor refused", str(verdict.unanswered)
    yield "captions and translations owed to readers", f"{verdict.owed:,}"
    yield "delivered", f"{verdict.delivered:,}"
    yield "**lost**", f"**{verdict.lost}**"
    yield "**duplicates seen by readers**", f"**{verdict.duplicates}**"
    yield "duplicates on the wire, within a session", str(verdict.wire_duplicates)
    yield "out of order", str(verdict.out_of_order)
    yield "translated twice in a log", str(verdict.twice_in_log)
    yield "contradictions between clients", str(verdict.conflicts)
    yield "not in the transcript, or twice", f"{verdict.transcript_missing}, {verdict.transcript_twice}"
    yield "outcomes that a reader got, and not in the transcript", str(verdict.outcome_missing)
    yield "`translation.failed`", _codes(verdict.failed)
    yield "of those not caused by a cancellation", str(verdict.failed_unexpectedly)
    yield "clients, one after the other in each seat", f"{verdict.clients:,}"
    yield "sessions resumed with all that was missed", f"{verdict.resumed:,}"
    yield "sessions begun again after too long an absence", f"{verdict.not_resumed:,}"
    yield "of those though they came back in time", str(verdict.unrecovered)
    yield "newest utterances not shown to a newcomer", str(verdict.not_shown)
    yield "clients that gave up", str(verdict.gave_up)
    yield "errors that clients were told", _codes(verdict.told)


def _repairs(result: SoakResult, kind: FaultKind) -> str:
    known = [fault.recovered_s for fault in result.faults if fault.kind is kind and fault.recovered_s is not None]
    return f"{statistics.median(known):.1f}, {max(known):.1f}" if known else ""


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


def _codes(counts: dict[str, int]) -> str:
    return ", ".join(f"`{code}` {count:,}" for code, count in sorted(counts.items())) or "0"


# ---------------------------------------------------------------- the charts


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
            marks=[Mark(kind if naming else "", at, "x") for at, kind in faults],
        )

    return [
        chart("Sessions", "sessions", connected=lambda each: each.sessions, kept=lambda each: each.away),
        chart("Translations in the engine", "translations", naming=True, running=lambda each: each.running),
        chart("Delivered to readers", "captions and translations", delivered=lambda each: each.delivered),
        chart("Memory of the gateway", "MiB", gateway=lambda each: each.gateway_mib),
        chart("Memory of the store", "MiB", store=lambda each: each.store_mib),
        chart("Memory of the engine", "MiB", engine=lambda each: each.engine_mib),
    ]

"""What a soak shows: its verdict, faults and memory as tables, and the run over time as charts.

Knows: what a result means to people. Must not know: how it was found, how a table or a chart is drawn.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from loadtest.report.content import Chart, Mark, Series, Shown, Table
from loadtest.soak.faults import FaultKind, Suffered
from loadtest.soak.result import Sample, SoakResult

__all__ = ["shown"]

# These concern everybody: each has a row and a line in the charts.
_OF_EVERYBODY = (FaultKind.ENGINE_KILL, FaultKind.ENGINE_STOP, FaultKind.RESTART, FaultKind.CLIENT_STOP)

_WHAT = {
    FaultKind.ABORT: "connection reset",
    FaultKind.HALF_OPEN: "client silent on an open connection, then back on another",
    FaultKind.ABSENCE: "connection reset, back within the keep time",
    FaultKind.LONG_ABSENCE: "connection reset, back after the keep time",
    FaultKind.CLIENT_STOP: "SIGSTOP of a client process, then SIGCONT",
    FaultKind.ENGINE_KILL: "SIGKILL of the engine's process",
    FaultKind.ENGINE_STOP: "SIGSTOP of the engine's process",
    FaultKind.RESTART: "SIGTERM of the gateway, and a new one",
}


def shown(result: SoakResult) -> Shown:
    """The whole report."""
    verdict = result.verdict
    title = (
        f"{result.plan.sessions} sessions, {verdict.accepted:,} utterances accepted, "
        f"{verdict.delivered:,} deliveries, {verdict.lost} lost, {verdict.duplicates} duplicates"
    )
    return Shown(list(_parts(result)), title, _charts(result))


# ---------------------------------------------------------------- the tables


def _parts(result: SoakResult) -> Iterator[str | Table]:
    if failures := list(result.failures()):
        yield "**Not every promise was kept:** " + "; ".join(failures) + "."
    else:
        yield "**Every promise was kept.**"
    yield Table("", ("", ""), list(_verdict(result)))
    yield Table(
        "", ("fault", "times", "what", "until repaired, s: median (longest)"), list(_fault_rows(result.faults))
    )
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
    yield Table("", ("memory, MiB", "a minute after it was ready", "peak", "final"), list(_memory(result)))
    yield Table(
        "",
        ("at the end, with everybody gone", ""),
        [(f"`{name}`", "missing" if value is None else f"{value:g}") for name, value in result.gauges.items()]
        + [(f"`{name}`, all processes together", f"{value:,.0f}") for name, value in result.counters.items()],
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
    yield "`translation.failed`", _codes(verdict.failed)
    yield "of those not caused by a cancellation", str(verdict.failed_unexpectedly)
    yield "clients, one after the other in each seat", f"{verdict.clients:,}"
    yield "sessions resumed with all that was missed", f"{verdict.resumed:,}"
    yield "sessions begun again after too long an absence", f"{verdict.not_resumed:,}"
    yield "of those though they came back in time", str(verdict.unrecovered)
    yield "newest utterances not shown to a newcomer", str(verdict.not_shown)
    yield "clients that gave up", str(verdict.gave_up)
    yield "errors that clients were told", _codes(verdict.told)


def _memory(result: SoakResult) -> Iterator[tuple[str, ...]]:
    for each in result.memory:
        gateway = (each.gateway_settled, each.gateway_peak, each.gateway_final)
        yield f"gateway process {each.number}", *(f"{mib:,.0f}" for mib in gateway)
        engine = (each.engine_settled, each.engine_peak, each.engine_final)
        yield "its engine", *(f"{mib:,.0f}" for mib in engine)


def _fault_rows(faults: Sequence[Suffered]) -> Iterator[tuple[str, str, str, str]]:
    mended: defaultdict[FaultKind, list[float]] = defaultdict(list)
    for fault in faults:
        if fault.recovered_s is not None:
            mended[fault.kind].append(fault.recovered_s)
    for kind, what in _WHAT.items():
        count = sum(fault.kind is kind for fault in faults)
        times = mended[kind]
        spread = f"{statistics.median(times):.1f} ({max(times):.1f})" if times else ""
        if count:
            yield kind.value, str(count), what, spread


def _of_everybody(result: SoakResult) -> list[Suffered]:
    return sorted(
        (fault for fault in result.faults if fault.kind in _OF_EVERYBODY), key=lambda fault: fault.began_s
    )


def _notes(result: SoakResult) -> Iterator[str]:
    machine, plan = result.machine, result.plan
    per_s = result.verdict.accepted / max(result.load_s, 1.0)
    tokens = result.counters.get("gateway_tokens_total", 0.0) / max(result.load_s, 1.0)
    yield (
        f"`{result.command}`, {result.began}, revision {machine.revision or 'unknown'}, seed {plan.seed}: "
        f"{plan.sessions} sessions, {plan.utterances_per_minute:g} utterances a minute offered, "
        f"{per_s * 60:.0f} accepted, {tokens:.0f} tokens/s; {result.load_s / 60:.1f} minutes of load."
    )
    yield f"On {machine.in_words()}; gateway, engine and clients share its cores. Engine {plan.engine}."
    settings = ", ".join(f"`{name}={value}`" for name, value in result.settings.items())
    yield f"Settings: {settings}."


def _codes(counts: dict[str, int]) -> str:
    return ", ".join(f"`{code}` {count:,}" for code, count in sorted(counts.items())) or "0"


# ---------------------------------------------------------------- the charts


# In this chart the lines of the faults have words.
_NAMING = "Translations under way"


def _charts(result: SoakResult) -> list[Chart]:
    """The run over time; a line for each fault of everybody."""
    minutes = [sample.at_s / 60 for sample in result.samples]
    faults = [(fault.began_s / 60, fault.kind.value) for fault in _of_everybody(result)]

    def chart(title: str, y_label: str, **lines: Callable[[Sample], float | None]) -> Chart:
        return Chart(
            title=title,
            x_label="minutes",
            y_label=y_label,
            series=[
                Series(name.replace("_", " "), minutes, list(map(value, result.samples)), markers=False)
                for name, value in lines.items()
            ],
            marks=[Mark(kind if title == _NAMING else "", at, "x") for at, kind in faults],
        )

    return [
        chart(
            "Sessions", "sessions", connected=lambda each: each.sessions, without_connection=lambda each: each.away
        ),
        chart(_NAMING, "translations", under_way=_under_way),
        chart("Utterances accepted", "utterances", accepted=lambda each: each.accepted),
        chart("Delivered to readers", "captions and translations", delivered=lambda each: each.delivered),
        chart("Memory of the gateway", "MiB", gateway=lambda each: each.gateway_mib),
        chart("Memory of the engine", "MiB", engine=lambda each: each.engine_mib),
    ]


def _under_way(sample: Sample) -> float | None:
    if sample.waiting is None or sample.running is None:
        return None
    return sample.waiting + sample.running

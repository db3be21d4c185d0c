"""What a soak shows: its verdict, faults and memory as tables, and the run over time as charts.

Knows: what a result means to people. Must not know: how it was found, how a table or a chart is drawn.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator

from msgspec import to_builtins

from loadtest.options import model_name
from loadtest.soak.faults import OF_EVERYBODY, WHAT, Fault, FaultKind
from loadtest.soak.result import WORDS, Sample, SoakResult, Verdict
from loadtest.trial.content import Chart, Mark, Series, Table, tabulated
from loadtest.trial.values import Finding, Results


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
    counts = Counter(fault.kind for fault in result.faults)
    made = [
        (kind.value, str(counts[kind]), _repairs(result, kind), what)
        for kind, what in WHAT.items()
        if counts[kind]
    ]
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


def _verdict(verdict: Verdict) -> Iterator[tuple[str, str]]:
    for name, words in WORDS.items():
        found = getattr(verdict, name)
        value = _codes(found) if isinstance(found, dict) else f"{found:,}"
        yield words, f"**{value}**" if words.startswith("**") else value


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

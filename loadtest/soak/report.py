"""The result of a soak as tables for people, a plot, and JSON; written to a folder.

Knows: how a result looks. Must not know: how it was found.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from loadtest.report_folder import write_report
from loadtest.soak.faults import FaultKind, Suffered
from loadtest.soak.result import SoakResult

__all__ = ["as_json", "plot", "table", "write"]

# Those that concern everybody are drawn.
_DRAWN = {
    FaultKind.ENGINE_KILL: ("#c0392b", "-"),
    FaultKind.ENGINE_STOP: ("#c0392b", "--"),
    FaultKind.RESTART: ("#1f5fa8", "-"),
    FaultKind.CLIENT_STOP: ("#b7791f", ":"),
}
_GREY, _BLUE, _GREEN = "#9aa5b1", "#1f5fa8", "#2f855a"


def write(result: SoakResult, folder: Path) -> None:
    """`result.json`, `table.md` and `plot.png` in `folder`, which is made when it is missing."""
    write_report(folder, result=as_json(result), table=table(result), plot=partial(plot, result))


def as_json(result: SoakResult) -> str:
    """The whole result, indented, with each fault and each sample on one line."""
    built = msgspec.to_builtins(result)
    text = json.dumps(built, indent=1, ensure_ascii=False)
    # What has no list or object in it is one line.
    return re.sub(r"\{[^{}\[\]]*\}", lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n"


def table(result: SoakResult) -> str:
    """Markdown: the verdict, the faults, latency, memory, and what it was measured on."""
    return "\n\n".join(_parts(result)) + "\n"


def _parts(result: SoakResult) -> Iterator[str]:
    failures = list(result.failures())
    yield (
        "**Every promise was kept.**"
        if not failures
        else "**Not every promise was kept:** " + "; ".join(failures) + "."
    )
    yield _rows(("", ""), _verdict(result))
    yield _rows(("fault", "times", "what", "until mended, s: median (longest)"), _faults(result.faults))
    yield _rows(
        ("fault of everybody", "at", "kept up, s", "until mended, s", ""),
        [
            (
                fault.kind.value,
                _clock(fault.began_s),
                f"{fault.pause_s:.0f}" if fault.pause_s else "",
                "" if fault.recovered_s is None else f"{fault.recovered_s:.1f}",
                fault.note,
            )
            for fault in sorted(result.faults, key=lambda fault: fault.began_s)
            if fault.kind in _DRAWN
        ],
    )
    yield _rows(
        (
            "translations to readers who were connected",
            "how many",
            "first text p50 / p99, ms",
            "whole p50 / p99 / max",
        ),
        [
            (
                row.name,
                f"{row.readings:,}",
                _ms(row.first_p50, row.first_p99),
                _ms(row.total_p50, row.total_p99, row.total_max),
            )
            for row in result.latency
        ],
    )
    yield _rows(
        ("memory, MiB", "a minute after it was ready", "peak", "final"),
        list(_memory(result)),
    )
    yield _rows(
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
    yield "sessions begun anew after too long an absence", f"{verdict.not_resumed:,}"
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


def _faults(faults: Sequence[Suffered]) -> Iterator[tuple[str, str, str, str]]:
    words = {
        FaultKind.ABORT: "connection reset",
        FaultKind.HALF_OPEN: "client silent on an open connection, then back on another",
        FaultKind.ABSENCE: "connection reset, back within the keep time",
        FaultKind.LONG_ABSENCE: "connection reset, back after the keep time",
        FaultKind.CLIENT_STOP: "SIGSTOP of a client process, then SIGCONT",
        FaultKind.ENGINE_KILL: "SIGKILL of the engine's process",
        FaultKind.ENGINE_STOP: "SIGSTOP of the engine's process",
        FaultKind.RESTART: "SIGTERM of the gateway, and a new one",
    }
    mended: defaultdict[FaultKind, list[float]] = defaultdict(list)
    for fault in faults:
        if fault.recovered_s is not None:
            mended[fault.kind].append(fault.recovered_s)
    for kind, what in words.items():
        count = sum(fault.kind is kind for fault in faults)
        times = mended[kind]
        spread = f"{statistics.median(times):.1f} ({max(times):.1f})" if times else ""
        if count:
            yield kind.value, str(count), what, spread


def _notes(result: SoakResult) -> Iterator[str]:
    machine, plan = result.machine, result.plan
    versions = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    per_s = result.verdict.accepted / max(result.load_s, 1.0)
    tokens = result.counters.get("gateway_tokens_total", 0.0) / max(result.load_s, 1.0)
    yield (
        f"`{result.command}`, {result.began}, revision {machine.revision or 'unknown'}, seed {plan.seed}: "
        f"{plan.sessions} sessions, {plan.utterances_per_minute:g} utterances a minute offered, "
        f"{per_s * 60:.0f} accepted, {tokens:.0f} tokens/s; {result.load_s / 60:.1f} minutes of load."
    )
    yield (
        f"On {machine.cpu}, {machine.cores} cores, {machine.memory_gib:g} GiB, which gateway, engine and clients "
        f"share; {machine.system}, Python {machine.python}; {versions}. Engine {plan.engine}."
    )
    settings = ", ".join(f"`{name}={value}`" for name, value in result.settings.items())
    yield f"Settings: {settings}."


def _rows(head: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _codes(counts: dict[str, int]) -> str:
    return ", ".join(f"`{code}` {count:,}" for code, count in sorted(counts.items())) or "0"


def _ms(*values: float | None) -> str:
    return " / ".join("–" if value is None else f"{value:,.0f}" for value in values)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


# ---------------------------------------------------------------- the plot


def plot(result: SoakResult, file: Path) -> None:
    """Over time: sessions and what waits, accepted and delivered, memory; faults of everybody as lines."""
    # Imported here: a second that a client process and a wrong option need not wait.
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (people, words, memory) = pyplot.subplots(3, 1, figsize=(11, 9), sharex=True, layout="constrained")
    minutes = [sample.at_s / 60 for sample in result.samples]
    _line(people, minutes, [sample.sessions for sample in result.samples], "connected", _BLUE)
    _line(people, minutes, [sample.away for sample in result.samples], "kept, without connection", _GREY)
    people.set(ylabel="sessions")
    waiting = people.twinx()
    under_way = [
        None if sample.waiting is None or sample.running is None else sample.waiting + sample.running
        for sample in result.samples
    ]
    _line(waiting, minutes, under_way, "translations under way", _GREEN)
    waiting.set(ylabel="translations")
    _legend(people, waiting)
    _line(words, minutes, [float(sample.accepted) for sample in result.samples], "utterances accepted", _BLUE)
    words.set(ylabel="utterances")
    delivered = words.twinx()
    _line(delivered, minutes, [float(sample.delivered) for sample in result.samples], "delivered", _GREEN)
    delivered.set(ylabel="captions and translations")
    _legend(words, delivered)
    _line(memory, minutes, [sample.gateway_mib for sample in result.samples], "gateway", _BLUE)
    memory.set(ylabel="gateway, MiB", xlabel="minutes")
    engine = memory.twinx()
    _line(engine, minutes, [sample.engine_mib for sample in result.samples], "engine", _GREY)
    engine.set(ylabel="engine, MiB")
    _legend(memory, engine)
    for axes in (people, waiting, words, delivered, memory, engine):
        axes.set_ylim(bottom=0)
        axes.spines[["top"]].set_visible(False)
    _faults_on((people, words, memory), result.faults)
    figure.suptitle(
        f"{result.plan.sessions} sessions, {result.verdict.accepted:,} utterances accepted, "
        f"{result.verdict.delivered:,} deliveries, {result.verdict.lost} lost, "
        f"{result.verdict.duplicates} duplicates",
        fontsize=12,
    )
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def _line(axes: Any, minutes: Sequence[float], values: Sequence[float | None], label: str, colour: str) -> None:
    numbers = [float("nan") if value is None else value for value in values]
    axes.plot(minutes, numbers, color=colour, linewidth=1.3, label=label)


def _legend(axes: Any, other: Any) -> None:
    (lines, labels), (others, more) = axes.get_legend_handles_labels(), other.get_legend_handles_labels()
    axes.legend(lines + others, labels + more, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)


def _faults_on(rows: Sequence[Any], faults: Sequence[Suffered]) -> None:
    drawn: dict[FaultKind, Any] = {}
    for fault in faults:
        if fault.kind in _DRAWN:
            colour, style = _DRAWN[fault.kind]
            for axes in rows:
                drawn[fault.kind] = axes.axvline(fault.began_s / 60, color=colour, linestyle=style, linewidth=0.9)
    if drawn:
        labels = [kind.value for kind in drawn]
        rows[-1].figure.legend(list(drawn.values()), labels, loc="outside lower center", ncols=4, frameon=False)

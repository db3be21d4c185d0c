"""A result as a table for people, a plot, and JSON; written to a folder.

Knows: how results look. Must not know: how they were measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from loadtest.direct import DirectResult, Level
from loadtest.report_folder import write_report
from loadtest.results import Latency, RouteSummary, Spread

__all__ = ["as_json", "plot", "table", "write"]

_HEAD = (
    "in flight",
    "route",
    "requests/s",
    "tokens/s (range)",
    "WebSocket / direct (range)",
    "first token p50 / p99, ms",
    "whole p50 / p99, ms",
    "gateway CPU s per 1,000 tokens",
    "client CPU s per 1,000 tokens",
    "failed",
)

# Told apart in grey too.
_COLOURS = {"direct": "#9aa5b1", "websocket": "#1f5fa8"}


def write(result: DirectResult, folder: Path) -> None:
    """`result.json`, `table.md` and `plot.png` in `folder`, which is made when it is missing."""
    write_report(folder, result=as_json(result), table=table(result), plot=partial(plot, result))


def as_json(result: DirectResult) -> str:
    """The whole result, indented, with each list of numbers on one line."""
    text = json.dumps(msgspec.to_builtins(result), indent=1, ensure_ascii=False)
    return re.sub(r"\[[-\d.,\s]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n"


def table(result: DirectResult) -> str:
    """Markdown: what was measured on what, one row for each route and number in flight, how to read it."""
    rows = [row for level in result.levels for row in _rows(level)]
    machine, plan = result.machine, result.plan
    versions = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    on = f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib:g} GiB"
    if machine.gpus:
        on += f", {len(machine.gpus)} × {machine.gpus[0]}"
    summaries = [summary for level in result.levels for summary in (level.direct, level.websocket)]
    others = max(summary.other_cores.high for summary in summaries)
    notes = [
        f"`{result.command}`, {result.began}, revision {machine.revision or 'unknown'}.",
        f"On {on}; {machine.system}, Python {machine.python}; {versions}.",
        f"Engine {plan.engine}, model {result.model}, dtype {result.dtype}, `max_num_seqs` {plan.max_num_seqs}, "
        "prefix cache off, because every repetition says the same.",
        f"Utterances from {plan.workload.source} to {plan.workload.target}, seed {plan.workload.seed}: "
        + "; ".join(_lengths(level) for level in result.levels)
        + ".",
        f"Load average before: {' '.join(f'{load:g}' for load in machine.load_average)}; other processes used at "
        f"most {others:.2f} of a core on average over a round.",
        "Medians over "
        + f"{plan.repetitions} repetitions with the lowest and highest in brackets; latency counts from when the "
        "utterance was sent, percentiles are over all repetitions. Same words on both routes: "
        + ", ".join(f"{level.same_text:.1%} at {level.in_flight}" for level in result.levels)
        + ".",
    ]
    return "\n\n".join(["\n".join([_row(_HEAD), _row(["---"] * len(_HEAD)), *map(_row, rows)]), *notes]) + "\n"


def _rows(level: Level) -> list[list[str]]:
    return [
        _cells(level.direct, "direct", ""),
        _cells(level.websocket, "WebSocket", _spread(level.tokens_ratio, "{:.2f}")),
    ]


def _cells(summary: RouteSummary, route: str, ratio: str) -> list[str]:
    client = summary.client_cpu_s_per_1000_tokens.median
    return [
        str(summary.in_flight),
        route,
        f"{summary.requests_per_s.median:.1f}",
        _spread(summary.tokens_per_s, "{:,.0f}"),
        ratio,
        _latency(summary.first_token),
        _latency(summary.total),
        f"{summary.serving_cpu_s_per_1000_tokens.median:.3f}",
        f"{client:.3f}" if client else "",
        str(summary.failed),
    ]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _spread(spread: Spread, form: str) -> str:
    return f"{form.format(spread.median)} ({form.format(spread.low)}–{form.format(spread.high)})"


def _latency(latency: Latency) -> str:
    return " / ".join("–" if ms is None else f"{ms:,.0f}" for ms in (latency.p50_ms, latency.p99_ms))


def _lengths(level: Level) -> str:
    own = level.lengths
    shares = ", ".join(f"{count} in {share:.0%}" for count, share in own.shares.items())
    return (
        f"at {level.in_flight} in flight {own.utterances} of them, sentences {shares}, "
        f"{own.chars_mean:.0f} characters on average (median {own.chars_p50:.0f}, longest {own.chars_max:.0f}), "
        f"{level.tokens_per_utterance:g} tokens of translation"
    )


def plot(result: DirectResult, file: Path) -> None:
    """Bars of both routes side by side: throughput, first token, CPU of the serving process."""
    # Imported here: a second that the client process and a wrong option need not wait.
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (speed, first, cpu) = pyplot.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    _bars(speed, result, lambda summary: summary.tokens_per_s, "{:,.0f}")
    speed.set(title="Generated tokens per second", ylabel="tokens/s")
    _bars(first, result, lambda summary: _up_to_p99(summary.first_token), "{:.0f} / {:.0f}")
    first.set(title="First token: p50 / p99", ylabel="ms after it was sent")
    _bars(cpu, result, lambda summary: summary.serving_cpu_s_per_1000_tokens, "{:.2f}")
    cpu.set(title="CPU of the serving process", ylabel="seconds per 1,000 tokens")
    speed.legend(loc="upper left", frameon=False)
    figure.suptitle(
        f"{result.model} on {result.machine.cpu}, {result.machine.cores} cores, {result.dtype}: "
        "through the WebSocket and directly",
        fontsize=12,
    )
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def _up_to_p99(latency: Latency) -> Spread:
    median, high = latency.p50_ms or 0.0, latency.p99_ms or 0.0
    return Spread(median, median, high)


def _bars(axes: Any, result: DirectResult, value: Callable[[RouteSummary], Spread], form: str) -> None:
    width = 0.38
    for offset, name in ((-width / 2, "direct"), (width / 2, "websocket")):
        spreads = [value(level.direct if name == "direct" else level.websocket) for level in result.levels]
        heights = [spread.median for spread in spreads]
        errors = [[s.median - s.low for s in spreads], [s.high - s.median for s in spreads]]
        places = [number + offset for number in range(len(spreads))]
        axes.bar(places, heights, width, color=_COLOURS[name], label={"websocket": "WebSocket"}.get(name, name))
        axes.errorbar(places, heights, errors, fmt="none", ecolor="#222222", elinewidth=1, capsize=3)
        for place, spread in zip(places, spreads, strict=True):
            label = form.format(spread.median, spread.high)
            axes.annotate(
                label,
                (place, spread.high),
                (0, 4),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=9,
            )
    axes.set_xticks(range(len(result.levels)), [str(level.in_flight) for level in result.levels])
    axes.set_xlabel("utterances in flight")
    axes.margins(y=0.15)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)

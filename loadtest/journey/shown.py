"""What people see of a journey besides its trials: a table beside the reports' own, curves, the machine over time.

Knows: what an outcome holds. Must not know: how tables and charts are drawn, how anything was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from loadtest.journey.outcome import Busy, Outcome, Point, Row
from loadtest.journey.stages import BASELINE, BATCHING, RECOMMENDED
from loadtest.report.content import Chart, Series, Table
from loadtest.trial.report import Extras
from loadtest.trial.values import Report, Sample, Trial

__all__ = ["extras", "figures", "tables"]

_NONE = "–"
_WATCHED = (BASELINE, BATCHING, RECOMMENDED)


def extras(report: Report) -> Extras:
    """All of it, for `report` to make it again."""
    return Extras(figures(report), tables(report))


def tables(report: Report) -> list[Table]:
    """From `details` of a report that this load test made."""
    found = _outcome(report)
    busy = "GPU busy" if found.gpu else "cores in use by engines"
    head = (
        *("architecture", "reports: requests/s", "reports: × one worker"),
        *("requests/s", "× one worker", "latency p50 / p99, ms", "first token p50 / p99, ms"),
        *("time in queues", f"{busy}, mean ± deviation", "failed"),
    )
    shown = [
        Table(
            title=f"The journey, {found.concurrency} requests at a time",
            head=head,
            rows=[_row(row, found.most(row.key), found.gpu) for row in found.rows],
            caption="The reports measured another model on another GPU: compare how many times one worker's "
            "requests/s an architecture reaches. A baseline answers with the whole translation: its first token "
            "is its last. Deviation is the standard deviation over samples: high is spiky, low is steady. An "
            "asterisk: the driver was the limit.",
        )
    ]
    if any(row.open for row in found.rows):
        shown.append(_open_table(found))
    return shown


def figures(report: Report) -> list[Chart]:
    """Requests/s and latency over concurrency, and the machine over time at the highest."""
    found = _outcome(report)
    measured = [row for row in found.rows if row.closed]
    shown: list[Chart] = [
        Chart(
            title="Requests a second over concurrency",
            caption="Closed loop: as many requests in flight as the axis says, the next when one is done.",
            x_label="requests at a time",
            y_label="requests/s",
            series=_series(measured, lambda point: point.requests_per_s),
        ),
        Chart(
            title="Latency of the slowest in a hundred over concurrency",
            caption="p99 of whole translations, from when they were asked for.",
            x_label="requests at a time",
            y_label="ms, p99",
            series=_series(measured, lambda point: point.p99_ms),
            log_y=True,
        ),
        *_ratios(found),
    ]
    shown.extend(_timeline(report, found))
    return shown


def _outcome(report: Report) -> Outcome:
    return msgspec.convert(report.details, Outcome)


# ---------------------------------------------------------------- tables


def _row(row: Row, most: Point | None, gpu: bool) -> list[str]:
    """most: at the concurrency that the table is of; null where it was not measured there."""
    told = row.told
    reports = [
        row.title,
        _NONE if told is None else f"{told.requests_per_s:g}" + (f" ({told.note})" if told.note else ""),
        _number(row.told_ratio, "{:.1f}"),
    ]
    if most is None:
        return [*reports, *[_NONE] * 7]
    return [
        *reports,
        f"{most.requests_per_s:.1f}" + ("*" if most.driver_was_the_limit else ""),
        _number(row.ratio, "{:.1f}"),
        _pair(most.p50_ms, most.p99_ms),
        _pair(most.first_p50_ms, most.first_p99_ms),
        _number(most.queued, "{:.0%}"),
        _busy(most.busy, gpu),
        str(most.failed),
    ]


def _open_table(found: Outcome) -> Table:
    head = (
        "architecture",
        "offered/s",
        "requests/s",
        "latency p50 / p99, ms",
        "first token p50 / p99, ms",
        "failed",
    )
    rows = [
        [
            row.title,
            _number(point.offered_per_s, "{:g}"),
            f"{point.requests_per_s:.1f}" + ("*" if point.driver_was_the_limit else ""),
            _pair(point.p50_ms, point.p99_ms),
            _pair(point.first_p50_ms, point.first_p99_ms),
            str(point.failed),
        ]
        for row in found.rows
        for point in row.open
    ]
    return Table(
        title="The same at a given rate",
        head=head,
        rows=rows,
        caption="Open loop: requests come at random times, whatever became of those before; latency counts from "
        "when a request was due. Above what a system can do, its queue grows for as long as the overload lasts, "
        "and its latency with it; such rates are offered for less time, so that the queue can be worked off.",
    )


def _number(value: float | None, form: str) -> str:
    return _NONE if value is None else form.format(value)


def _pair(one: float | None, other: float | None) -> str:
    return f"{_number(one, '{:,.0f}')} / {_number(other, '{:,.0f}')}"


def _busy(busy: Busy | None, gpu: bool) -> str:
    if busy is None:
        return _NONE
    return f"{busy.mean:.0f} ± {busy.deviation:.0f} %" if gpu else f"{busy.mean:.2f} ± {busy.deviation:.2f}"


# ---------------------------------------------------------------- figures


def _series(rows: Sequence[Row], value: Callable[[Point], float | None]) -> list[Series]:
    return [
        Series(row.label, [float(point.concurrency or 0) for point in row.closed], list(map(value, row.closed)))
        for row in rows
    ]


def _ratios(found: Outcome) -> Iterator[Chart]:
    series = []
    for row in found.rows:
        if row.ratio is not None and row.told_ratio is not None and row.key != BASELINE:
            series.append(Series(row.label, [0.0], [row.ratio], colour=0))
            series.append(Series(f"{row.label} (reports)", [0.0], [row.told_ratio], colour=7))
    if series:
        yield Chart(
            title="How many times one worker",
            caption=f"Requests/s {found.concurrency} at a time over those of one worker, here and in the reports.",
            x_label="× one worker",
            series=series,
            bars=True,
        )


def _timeline(report: Report, found: Outcome) -> Iterator[Chart]:
    """One worker, static batching and the gateway at the highest concurrency: spiky against steady."""
    first = {trial.name: trial for trial in reversed(report.trials)}
    series = []
    for row in filter(None, map(found.row, _WATCHED)):
        most = found.most(row.key)
        trial = first.get(most.trial) if most is not None else None
        if trial is not None and (points := _used(trial, found.gpu)):
            x, y = zip(*points, strict=True)
            series.append(Series(row.title, x, y, colour=0, markers=False, panel=row.title))
    if series:
        yield Chart(
            title=f"The machine over time, {found.concurrency} requests at a time",
            caption="Share of the time in which the GPU was busy, as NVML tells it."
            if found.gpu
            else "CPU cores in use by the engines; there is no GPU.",
            x_label="seconds after the trial's beginning",
            y_label="GPU busy, %" if found.gpu else "cores",
            series=series,
        )


def _used(trial: Trial, gpu: bool) -> list[tuple[float, float]]:
    def value(sample: Sample) -> float | None:
        return sample.gpu if gpu else sample.cores.get("engine")

    return [(sample.at_s, used) for sample in trial.samples if (used := value(sample)) is not None]

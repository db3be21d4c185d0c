"""What people see of a journey besides its trials: a table beside the reports' own, curves, the machine over time.

Knows: what an outcome holds. Must not know: how tables and charts are drawn, how anything was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from loadtest.journey.outcome import Outcome, Point, Row
from loadtest.journey.stages import BASELINE, BATCHING, RECOMMENDED
from loadtest.report.content import Chart, Series, Table
from loadtest.trial.report import Extras
from loadtest.trial.values import Report

__all__ = ["extras", "figures", "tables"]

_NONE = "–"
_MEASURED = ("requests/s", "latency p50 / p99, ms", "first token p50 / p99, ms", "failed")


def extras(report: Report) -> Extras:
    """All of it, for `report` to make it again."""
    return Extras(figures(report), tables(report))


def tables(report: Report) -> list[Table]:
    """From `details` of a report that this load test made."""
    found = msgspec.convert(report.details, Outcome)
    busy = "GPU busy" if found.gpu else "cores in use by engines"
    told = ("architecture", "reports: requests/s", "reports: × one worker", "× one worker")
    shown = [
        Table(
            title=f"The journey, {found.concurrency} requests at a time",
            head=(*told, *_MEASURED, "time in queues", f"{busy}, mean ± deviation"),
            rows=[_row(row, found.most(row.key), found.gpu) for row in found.rows],
            caption="The reports measured another model on another GPU: compare how many times one worker's "
            "requests/s an architecture reaches. A baseline answers with the whole translation: its first token "
            "is its last. Deviation is the standard deviation over samples: high is spiky, low is steady. An "
            "asterisk: the driver was the limit.",
        )
    ]
    opened = [
        [row.title, _number(point.offered_per_s, "{:g}"), *_measured(point)]
        for row in found.rows
        for point in row.open
    ]
    if opened:
        caption = (
            "Open loop: requests come at random times, whatever became of those before; latency counts from when "
            "a request was due. Above what a system can do, its queue grows for as long as the overload lasts, "
            "and its latency with it; such rates are offered for less time, so that the queue can be worked off."
        )
        head = ("architecture", "offered/s", *_MEASURED)
        shown.append(Table("The same at a given rate", head, opened, caption))
    return shown


def figures(report: Report) -> list[Chart]:
    """Requests/s and latency over concurrency, and the machine over time at the highest."""
    found = msgspec.convert(report.details, Outcome)

    def series(value: Callable[[Point], float | None]) -> list[Series]:
        return [
            Series(row.label, [float(each.concurrency or 0) for each in row.closed], list(map(value, row.closed)))
            for row in found.rows
            if row.closed
        ]

    return [
        Chart(
            title="Requests a second over concurrency",
            caption="Closed loop: as many requests in flight as the axis says, the next when one is done.",
            x_label="requests at a time",
            y_label="requests/s",
            series=series(lambda point: point.requests_per_s),
        ),
        Chart(
            title="Latency of the slowest in a hundred over concurrency",
            caption="p99 of whole translations, from when they were asked for.",
            x_label="requests at a time",
            y_label="ms, p99",
            series=series(lambda point: point.p99_ms),
            log_y=True,
        ),
        *_timeline(report, found),
    ]


def _row(row: Row, most: Point | None, gpu: bool) -> Sequence[str]:
    """most: at the concurrency that the table is of; None where it was not measured there."""
    told = row.told
    reports = [
        row.title,
        _NONE if told is None else f"{told.requests_per_s:g}" + (f" ({told.note})" if told.note else ""),
        _number(row.told_ratio, "{:.1f}"),
    ]
    if most is None:
        return [*reports, *[_NONE] * 7]
    form = "{:.0f} ± {:.0f} %" if gpu else "{:.2f} ± {:.2f}"
    busy = form.format(most.busy.mean, most.busy.deviation) if most.busy else _NONE
    return [*reports, _number(row.ratio, "{:.1f}"), *_measured(most), _number(most.queued, "{:.0%}"), busy]


def _measured(point: Point) -> list[str]:
    return [
        f"{point.requests_per_s:.1f}" + ("*" if point.driver_was_the_limit else ""),
        f"{_number(point.p50_ms, '{:,.0f}')} / {_number(point.p99_ms, '{:,.0f}')}",
        f"{_number(point.first_p50_ms, '{:,.0f}')} / {_number(point.first_p99_ms, '{:,.0f}')}",
        str(point.failed),
    ]


def _number(value: float | None, form: str) -> str:
    return _NONE if value is None else form.format(value)


def _timeline(report: Report, found: Outcome) -> Iterator[Chart]:
    """One worker, static batching and the gateway at the highest concurrency: spiky against steady."""
    series = []
    for row in filter(None, map(found.row, (BASELINE, BATCHING, RECOMMENDED))):
        most = found.most(row.key)
        trial = next((each for each in report.trials if most is not None and each.name == most.trial), None)
        used = [
            (sample.at_s, value)
            for sample in (trial.samples if trial is not None else ())
            if (value := sample.gpu if found.gpu else sample.cores.get("engine")) is not None
        ]
        if used:
            x, y = zip(*used, strict=True)
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

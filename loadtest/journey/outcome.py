"""What the journey found: a row for each stage beside the reports' own, and what is said of all of them.

Knows: rounds, stages, summaries, the arithmetic on them. Must not know: how anything was measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from loadtest.journey.run import Round
from loadtest.journey.stages import BASELINE, RECOMMENDED, Stage, Told
from loadtest.trial.content import NONE, Table
from loadtest.trial.summary import Summary
from loadtest.trial.values import Closed, Finding, Trial

# What the reports got in production over one worker.
_BAR = 7.5


class Busy(Struct, frozen=True):
    """How much of the machine was in use, over all samples: percent of the GPU, or CPU cores of the engines."""

    mean: float
    # The standard deviation.
    deviation: float


class Point(Struct, frozen=True):
    """One load of one stage, all repetitions: what its summary does not say."""

    # The name of its trials and of their summary.
    trial: str
    # Requests at a time.
    concurrency: int | None
    # Part of the time spent in queues.
    queued: float | None
    busy: Busy | None


class Row(Struct, frozen=True):
    """One stage."""

    key: str
    title: str
    # None where the reports have no such number.
    told: Told | None
    points: list[Point]


class Outcome(Struct, frozen=True):
    """What `details` of the report holds."""

    # Whether `busy` is of a GPU.
    gpu: bool
    # The highest that was measured.
    concurrency: int
    # All stages, also those that were not measured.
    rows: list[Row]

    def row(self, key: str) -> Row | None:
        return next((row for row in self.rows if row.key == key), None)

    def most(self, key: str) -> Point | None:
        """A stage at the highest concurrency; None where it was not measured there."""
        row = self.row(key)
        return next((each for each in row.points if each.concurrency == self.concurrency), None) if row else None


def outcome(stages: Sequence[Stage], rounds: Sequence[Round]) -> Outcome:
    """rounds: of these stages, of all loads or only some."""
    rows = [
        Row(stage.key, stage.title, stage.told, _points(each for each in rounds if each.stage == stage.key))
        for stage in stages
    ]
    concurrency = max((point.concurrency or 0 for row in rows for point in row.points), default=0)
    gpu = any(sample.gpu is not None for each in rounds for sample in each.trial.samples)
    return Outcome(gpu, concurrency, rows)


def _points(rounds: Iterable[Round]) -> list[Point]:
    by_name: dict[str, list[Round]] = {}
    for each in rounds:
        by_name.setdefault(each.trial.name, []).append(each)
    points: list[Point] = []
    for name, own in by_name.items():
        load, queued = own[0].trial.load, [each.queued for each in own if each.queued is not None]
        points.append(
            Point(
                trial=name,
                concurrency=load.in_flight if isinstance(load, Closed) else None,
                queued=round(statistics.fmean(queued), 4) if queued else None,
                busy=_busy([each.trial for each in own]),
            )
        )
    return points


def _busy(trials: Iterable[Trial]) -> Busy | None:
    samples = [sample for trial in trials for sample in trial.samples]
    values = [sample.gpu for sample in samples if sample.gpu is not None]
    values = values or [cores for sample in samples if (cores := sample.cores.get("engine")) is not None]
    return Busy(round(statistics.fmean(values), 3), round(statistics.pstdev(values), 3)) if values else None


# ---------------------------------------------------------------- findings


class _Told:
    """An outcome with the summaries of its trials. Ratios are requests a second over those of one worker, at the
    highest concurrency; None where one of them is not known."""

    def __init__(self, found: Outcome, summaries: Iterable[Summary]) -> None:
        self.found = found
        self._summaries = {summary.name: summary for summary in summaries}

    def most(self, key: str) -> Summary | None:
        """A stage at the highest concurrency; None where it was not measured there."""
        point = self.found.most(key)
        return self._summaries.get(point.trial) if point is not None else None

    def ratio(self, key: str, base: str = BASELINE) -> float | None:
        own, other = self.most(key), self.most(base)
        if own is None or other is None:
            return None
        return own.requests_per_s.median / max(other.requests_per_s.median, 1e-9)

    def told_ratio(self, key: str, base: str = BASELINE) -> float | None:
        """In the reports."""
        own, other = self._told(key), self._told(base)
        return None if own is None or other is None else own.requests_per_s / other.requests_per_s

    def in_the_reports(self, key: str, base: str) -> str:
        """A sentence, or nothing."""
        own, other, ratio = self._told(key), self._told(base), self.told_ratio(key, base)
        if own is None or other is None or ratio is None:
            return ""
        return f"In the reports {own.requests_per_s:g} / {other.requests_per_s:g} = {ratio:.1f} ×."

    def _told(self, key: str) -> Told | None:
        row = self.found.row(key)
        return row.told if row is not None else None


def findings(
    found: Outcome, summaries: Iterable[Summary], missing: Mapping[str, str], *, bars: bool
) -> list[Finding]:
    """summaries: of the trials. missing: key of a stage → why it was not measured, or not under all loads. bars:
    whether the ratio that the reports reached has to be reached."""
    said = [
        Finding(
            row.title,
            "not under all loads" if row.points else "missing",
            "under all loads",
            False,
            missing[row.key],
        )
        for row in found.rows
        if row.key in missing
    ]
    told, at = _Told(found, summaries), f"{found.concurrency} at a time"
    best, one, ratio = told.most(RECOMMENDED), told.most(BASELINE), told.ratio(RECOMMENDED)
    if best is not None and one is not None and ratio is not None:
        note = told.in_the_reports(RECOMMENDED, BASELINE)
        # Held back, the gateway would reach more; a worker that is held back makes it look better than it is.
        if best.limited:
            note += " The driver held the gateway back."
        if one.limited:
            note += " The driver held one worker back: the ratio says nothing."
        name, passed = f"recommended gateway over one worker, requests/s, {at}", ratio >= _BAR and not one.limited
        said.append(
            Finding(name, f"{ratio:.2f} ×", bar=f"≥ {_BAR:g} ×" * bars, passed=passed if bars else None, note=note)
        )
    queued = found.most(BASELINE)
    if queued is not None and queued.queued is not None:
        name = f"one worker, time spent in queues, {at}"
        said.append(Finding(name, f"{queued.queued:.0%}", note="In the reports 97 %."))
    uniform_per_natural = told.ratio("gateway-64-uniform", "gateway-64")
    if uniform_per_natural is not None:
        note = told.in_the_reports("gateway-64-uniform", "gateway-64")
        note += " Test data of one length promised what talk did not keep."
        name = f"64 sequences, uniform data over natural, requests/s, {at}"
        said.append(Finding(name, f"{uniform_per_natural:.2f} ×", note=note))
    return said


# ---------------------------------------------------------------- the table


def table(found: Outcome, summaries: Iterable[Summary]) -> Table:
    """Each stage beside the reports' own. summaries: of the trials."""
    told = _Told(found, summaries)
    busy = "GPU busy" if found.gpu else "cores in use by engines"
    head = (
        *("architecture", "reports: requests/s", "reports: × one worker", "× one worker", "requests/s"),
        *("latency p50 / p99, ms", "first token p50 / p99, ms", "failed", "time in queues"),
        f"{busy}, mean ± deviation",
    )
    return Table(
        title=f"The journey, {found.concurrency} requests at a time",
        head=head,
        rows=[_cells(row, told) for row in found.rows],
        caption="The reports measured another model on another GPU: compare how many times one worker's "
        "requests/s an architecture reaches. A baseline answers with the whole translation: its first token "
        "is its last. Deviation is the standard deviation over samples: high is spiky, low is steady. An "
        "asterisk: the driver was the limit.",
    )


def _cells(row: Row, told: _Told) -> list[str]:
    reports = NONE
    if row.told is not None:
        reports = f"{row.told.requests_per_s:g}" + (f" ({row.told.note})" if row.told.note else "")
    beside = [row.title, reports, _number(told.told_ratio(row.key), "{:.1f}")]
    most, point = told.most(row.key), told.found.most(row.key)
    if most is None or point is None:
        return [*beside, *[NONE] * 7]
    form = "{:.0f} ± {:.0f} %" if told.found.gpu else "{:.2f} ± {:.2f}"
    return [
        *beside,
        _number(told.ratio(row.key), "{:.1f}"),
        f"{most.requests_per_s.median:.1f}" + "*" * (most.limited is not None),
        f"{_number(most.total.p50_ms, '{:,.0f}')} / {_number(most.total.p99_ms, '{:,.0f}')}",
        f"{_number(most.first_token.p50_ms, '{:,.0f}')} / {_number(most.first_token.p99_ms, '{:,.0f}')}",
        str(most.failed),
        _number(point.queued, "{:.0%}"),
        form.format(point.busy.mean, point.busy.deviation) if point.busy else NONE,
    ]


def _number(value: float | None, form: str) -> str:
    return NONE if value is None else form.format(value)

"""What the journey found: a row for each stage beside the reports' own, and what is said of all of them.

Knows: rounds, stages, the arithmetic on them. Must not know: how anything was measured, how it looks.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from loadtest.journey.rounds import Round
from loadtest.journey.stages import BASELINE, RECOMMENDED, Stage, Told
from loadtest.measuring.measure import DRIVER_WAS_THE_LIMIT
from loadtest.trial.summary import summarise
from loadtest.trial.values import Closed, Finding, Objective, Trial

__all__ = ["Busy", "Outcome", "Point", "Row", "findings", "outcome"]

# What the reports got in production over one worker.
_BAR = 7.5


class Busy(Struct, frozen=True):
    """How much of the machine was in use, over all samples: percent of the GPU, or CPU cores of the engines."""

    mean: float
    # The standard deviation.
    deviation: float


class Point(Struct, frozen=True):
    """One load of one stage, all repetitions. Latencies count from when a request was due."""

    # The name of its trials.
    trial: str
    # Requests at a time; None in an open loop.
    concurrency: int | None
    # None in a closed loop.
    offered_per_s: float | None
    requests_per_s: float
    tokens_per_s: float
    p50_ms: float | None
    p99_ms: float | None
    first_p50_ms: float | None
    first_p99_ms: float | None
    failed: int
    # Part of the time spent in queues.
    queued: float | None
    busy: Busy | None
    driver_was_the_limit: bool


class Row(Struct, frozen=True):
    """One stage. Ratios are requests a second over those of one worker, at the highest concurrency."""

    key: str
    title: str
    label: str
    shape: str
    told: Told | None
    # In the reports, and here; None where there is no such number.
    told_ratio: float | None
    ratio: float | None
    points: list[Point]

    @property
    def closed(self) -> list[Point]:
        """By rising concurrency."""
        return [point for point in self.points if point.concurrency is not None]

    @property
    def open(self) -> list[Point]:
        """By rising rate."""
        return [point for point in self.points if point.concurrency is None]


class Outcome(Struct, frozen=True):
    """What `details` of the report holds."""

    # Whether `busy` is of a GPU.
    gpu: bool
    # The highest that was measured.
    concurrency: int
    # Of all stages, also of those that were not measured.
    rows: list[Row]

    def row(self, key: str) -> Row | None:
        return next((row for row in self.rows if row.key == key), None)

    def most(self, key: str) -> Point | None:
        """Of a stage at the highest concurrency; None where it was not measured there."""
        row = self.row(key)
        return next((each for each in row.closed if each.concurrency == self.concurrency), None) if row else None


def outcome(stages: Sequence[Stage], rounds: Sequence[Round], objective: Objective) -> Outcome:
    """rounds: of these stages, of all loads or only some."""
    points = {
        stage.key: _points([each for each in rounds if each.stage == stage.key], objective) for stage in stages
    }
    concurrency = max((point.concurrency or 0 for own in points.values() for point in own), default=0)
    per_s = {
        key: point.requests_per_s
        for key, own in points.items()
        for point in own
        if point.concurrency == concurrency
    }
    told = {stage.key: stage.told.requests_per_s for stage in stages if stage.told}
    rows = [
        Row(
            key=stage.key,
            title=stage.title,
            label=stage.label,
            shape=stage.shape,
            told=stage.told,
            told_ratio=_ratio(told.get(stage.key), told.get(BASELINE)),
            ratio=_ratio(per_s.get(stage.key), per_s.get(BASELINE)),
            points=points[stage.key],
        )
        for stage in stages
    ]
    gpu = any(sample.gpu is not None for each in rounds for sample in each.trial.samples)
    return Outcome(gpu, concurrency, rows)


def findings(found: Outcome, missing: Mapping[str, str], *, bars: bool) -> list[Finding]:
    """missing: key of a stage → why it was not measured, or not under all loads. bars: whether the ratio that the
    reports reached has to be reached."""
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
    at = f"{found.concurrency} at a time"
    best, one, best_per_one, note = _over(found, RECOMMENDED, BASELINE)
    if best and one and best_per_one is not None:
        # Held back, the gateway would reach more; a worker that is held back makes it look better than it is.
        if best.driver_was_the_limit:
            note += " The driver held the gateway back."
        if one.driver_was_the_limit:
            note += " The driver held one worker back: the ratio says nothing."
        name, value = f"recommended gateway over one worker, requests/s, {at}", f"{best_per_one:.2f} ×"
        passed = best_per_one >= _BAR and not one.driver_was_the_limit
        said.append(
            Finding(name, value, f"≥ {_BAR:g} ×", passed, note) if bars else Finding(name, value, note=note)
        )
    if one is not None and one.queued is not None:
        name = f"one worker, time spent in queues, {at}"
        said.append(Finding(name, f"{one.queued:.0%}", note="In the reports 97 %."))
    _, _, uniform_per_natural, note = _over(found, "gateway-64-uniform", "gateway-64")
    if uniform_per_natural is not None:
        note += " Test data of one length promised what talk did not keep."
        name = f"64 sequences, uniform data over natural, requests/s, {at}"
        said.append(Finding(name, f"{uniform_per_natural:.2f} ×", note=note))
    sizes = {
        row.title: most.requests_per_s
        for row in found.rows
        if row.key.startswith("gateway-") and row.shape == "natural" and (most := found.most(row.key)) is not None
    }
    if len(sizes) > 1:
        note = ", ".join(f"{title}: {rate:.1f}/s" for title, rate in sizes.items()) + "."
        name = f"batch with the most requests/s on natural data, {at}"
        said.append(Finding(name, max(sizes, key=lambda each: sizes[each]), note=note))
    return said


def _over(found: Outcome, key: str, base_key: str) -> tuple[Point | None, Point | None, float | None, str]:
    """Both at the highest concurrency, the requests a second of one over the other's, and what the reports had."""
    point, base = found.most(key), found.most(base_key)
    row, base_row = found.row(key), found.row(base_key)
    note = ""
    if row and row.told and base_row and base_row.told:
        one, other = row.told.requests_per_s, base_row.told.requests_per_s
        note = f"In the reports {one:g} / {other:g} = {one / other:.1f} ×."
    ratio = _ratio(point.requests_per_s, base.requests_per_s) if point and base else None
    return point, base, ratio, note


# ---------------------------------------------------------------- one stage


def _points(rounds: Sequence[Round], objective: Objective) -> list[Point]:
    """Those in a closed loop by concurrency, then those in an open loop by rate."""
    names = dict.fromkeys(each.trial.name for each in rounds)
    points = [_point([each for each in rounds if each.trial.name == name], objective) for name in names]
    return sorted(points, key=lambda each: (each.concurrency is None, each.concurrency or each.offered_per_s or 0))


def _point(rounds: Sequence[Round], objective: Objective) -> Point:
    trials = [each.trial for each in rounds]
    load, summary = trials[0].load, summarise(trials, objective)
    queued = [each.queued for each in rounds if each.queued is not None]
    return Point(
        trial=summary.name,
        concurrency=load.in_flight if isinstance(load, Closed) else None,
        offered_per_s=summary.offered_per_s,
        requests_per_s=summary.requests_per_s.median,
        tokens_per_s=summary.tokens_per_s.median,
        p50_ms=summary.total.p50_ms,
        p99_ms=summary.total.p99_ms,
        first_p50_ms=summary.first_token.p50_ms,
        first_p99_ms=summary.first_token.p99_ms,
        failed=summary.failed + summary.unfinished,
        queued=round(statistics.fmean(queued), 4) if queued else None,
        busy=_busy(trials),
        driver_was_the_limit=any(DRIVER_WAS_THE_LIMIT in trial.settings for trial in trials),
    )


def _busy(trials: Iterable[Trial]) -> Busy | None:
    samples = [sample for trial in trials for sample in trial.samples]
    values = [sample.gpu for sample in samples if sample.gpu is not None]
    values = values or [cores for sample in samples if (cores := sample.cores.get("engine")) is not None]
    return Busy(round(statistics.fmean(values), 3), round(statistics.pstdev(values), 3)) if values else None


def _ratio(value: float | None, base: float | None) -> float | None:
    return round(value / base, 3) if value is not None and base else None

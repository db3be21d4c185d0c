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
    """How much of the machine was in use, over all samples: percent of the GPU, or CPU cores of the engines where
    there is no GPU. deviation: the standard deviation."""

    mean: float
    deviation: float


class Point(Struct, frozen=True):
    """One load of one stage, all repetitions. trial: its name. concurrency: null in an open loop. offered_per_s:
    null in a closed loop. …_ms: from when a request was due. queued: part of the time spent in queues."""

    trial: str
    concurrency: int | None
    offered_per_s: float | None
    requests_per_s: float
    tokens_per_s: float
    p50_ms: float | None
    p99_ms: float | None
    first_p50_ms: float | None
    first_p99_ms: float | None
    failed: int
    queued: float | None
    busy: Busy | None
    driver_was_the_limit: bool


class Row(Struct, frozen=True):
    """One stage. ratio, told_ratio: requests a second over those of one worker, at the highest concurrency, here
    and in the reports; null where there is no such number."""

    key: str
    title: str
    label: str
    shape: str
    told: Told | None
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
    """What `details` of the report holds. gpu: whether `busy` is of one. concurrency: the highest that was
    measured. rows: of all stages, also of those that were not measured."""

    gpu: bool
    concurrency: int
    rows: list[Row]

    def row(self, key: str) -> Row | None:
        return next((row for row in self.rows if row.key == key), None)

    def most(self, key: str) -> Point | None:
        """Of a stage at the highest concurrency; null where it was not measured there."""
        row = self.row(key)
        closed = row.closed if row is not None else []
        return next((point for point in closed if point.concurrency == self.concurrency), None)


def outcome(stages: Sequence[Stage], rounds: Sequence[Round], objective: Objective) -> Outcome:
    """rounds: of these stages, of all loads or only some; of a stage with `same_as`, under that key."""
    points = {
        stage.key: _points([each for each in rounds if each.stage == stage.key], objective) for stage in stages
    }
    concurrency = max((point.concurrency or 0 for own in points.values() for point in own), default=0)
    per_s = {
        stage.key: point.requests_per_s
        for stage in stages
        for point in points[stage.same_as or stage.key]
        if point.concurrency == concurrency
    }
    told_one = next((stage.told.requests_per_s for stage in stages if stage.key == BASELINE and stage.told), None)
    rows = [
        Row(
            key=stage.key,
            title=stage.title,
            label=stage.label,
            shape=stage.shape,
            told=stage.told,
            told_ratio=_ratio(stage.told.requests_per_s, told_one) if stage.told else None,
            ratio=_ratio(per_s.get(stage.key), per_s.get(BASELINE)),
            points=[p for p in points[stage.same_as] if p.concurrency is not None]
            if stage.same_as
            else points[stage.key],
        )
        for stage in stages
    ]
    gpu = any(sample.gpu is not None for each in rounds for sample in each.trial.samples)
    return Outcome(gpu, concurrency, rows)


def findings(found: Outcome, missing: Mapping[str, str], *, bars: bool) -> list[Finding]:
    """missing: key of a stage → why it was not measured, or not under all loads. bars: whether the ratio that the
    reports reached has to be reached."""
    said = [_missing(row, missing[row.key]) for row in found.rows if row.key in missing]
    one, best = found.row(BASELINE), found.row(RECOMMENDED)
    most_one, most_best = found.most(BASELINE), found.most(RECOMMENDED)
    at = f"{found.concurrency} at a time"
    if best and one and most_best and most_one and best.ratio is not None:
        # Held back, the gateway would reach more; a worker that is held back makes it look better than it is.
        limited = " The driver held the gateway back." if most_best.driver_was_the_limit else ""
        unfair = most_one.driver_was_the_limit
        limited += " The driver held one worker back: the ratio says nothing." if unfair else ""
        said.append(
            Finding(
                name=f"recommended gateway over one worker, requests/s, {at}",
                value=f"{best.ratio:.2f} ×",
                bar=f"≥ {_BAR:g} ×" if bars else "",
                passed=best.ratio >= _BAR and not unfair if bars else None,
                note=_reports(best, one) + limited,
            )
        )
    if most_one is not None and most_one.queued is not None:
        name = f"one worker, time spent in queues, {at}"
        said.append(Finding(name, f"{most_one.queued:.0%}", note="In the reports 97 %."))
    uniform, natural = found.row("gateway-64-uniform"), found.row("gateway-64")
    most_uniform, most_natural = found.most("gateway-64-uniform"), found.most("gateway-64")
    if uniform and natural and most_uniform and most_natural:
        ratio = most_uniform.requests_per_s / max(most_natural.requests_per_s, 1e-9)
        said.append(
            Finding(
                f"64 sequences, uniform data over natural, requests/s, {at}",
                f"{ratio:.2f} ×",
                note=_reports(uniform, natural) + " Test data of one length promised what talk did not keep.",
            )
        )
    natural_sizes = {
        row.title: most.requests_per_s
        for row in found.rows
        if row.key.startswith("gateway-") and row.shape == "natural" and (most := found.most(row.key)) is not None
    }
    if len(natural_sizes) > 1:
        title = max(natural_sizes, key=lambda each: natural_sizes[each])
        said.append(
            Finding(
                f"batch with the most requests/s on natural data, {at}",
                title,
                note=", ".join(f"{each}: {rate:.1f}/s" for each, rate in natural_sizes.items()) + ".",
            )
        )
    return said


def _missing(row: Row, why: str) -> Finding:
    return Finding(row.title, "not under all loads" if row.points else "missing", "under all loads", False, why)


def _reports(row: Row, base: Row) -> str:
    if row.told is None or base.told is None:
        return ""
    one, other = row.told.requests_per_s, base.told.requests_per_s
    return f"In the reports {one:g} / {other:g} = {one / other:.1f} ×."


# ---------------------------------------------------------------- one stage


def _points(rounds: Sequence[Round], objective: Objective) -> list[Point]:
    """Those in a closed loop by concurrency, then those in an open loop by rate."""
    names = dict.fromkeys(each.trial.name for each in rounds)
    points = [_point([each for each in rounds if each.trial.name == name], objective) for name in names]
    return sorted(
        points, key=lambda point: (point.concurrency is None, point.concurrency or point.offered_per_s or 0)
    )


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
    if not values:
        values = [cores for sample in samples if (cores := sample.cores.get("engine")) is not None]
    if not values:
        return None
    return Busy(round(statistics.fmean(values), 3), round(statistics.pstdev(values), 3))


def _ratio(value: float | None, base: float | None) -> float | None:
    return round(value / base, 3) if value is not None and base else None

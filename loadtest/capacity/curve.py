"""Loads on one gateway that become one report: `sweep` and `capacity`.

Knows: what is found on a curve, and what people are told of it. Must not know: how a run is made, how a report
looks.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from msgspec import Struct, to_builtins

from loadtest.capacity.bench import Bench, Followed, follow
from loadtest.capacity.offer import Offer, Unit, described
from loadtest.capacity.points import Point, driver_limit, points_table, there, too_few
from loadtest.capacity.search import Bounds, Ended, Found, capacity_search, given_loads
from loadtest.commands import Say
from loadtest.results import LoadtestError
from loadtest.systems.running import Running
from loadtest.trial.content import number
from loadtest.trial.values import Finding, Results

HEADROOM = 0.3
"""What is kept free of a capacity: for a busier hour, a gateway that is being restarted, talk that differs."""

_KNEE = "the knee: all up to it kept the objective"
_INCOMPLETE = {
    Ended.RUNS: "The runs were used up before all of it was measured (--runs).",
    Ended.TIME: "There was no time for all of it (--time-limit-s).",
}
_UNDONE = {Ended.FAILED: "ended by an error", Ended.INTERRUPTED: "interrupted"}


class Plan(Struct, frozen=True, kw_only=True):
    """What is searched for."""

    offer: Offer
    # For people.
    model: str
    # Client processes.
    processes: int = 1
    # For everything, seconds.
    time_limit_s: float = 1_800.0
    # The first load that is tried.
    start: float = 4.0
    bounds: Bounds = Bounds()
    # Loads to offer, in order; None finds them.
    loads: tuple[float, ...] | None = None


async def curve(kind: str, plan: Plan, system: AbstractAsyncContextManager[Running], say: Say) -> Results:
    """Search on one gateway, and report all runs, also those before an error or an interruption.

    Raises `LoadtestError`, also without time for a single run, and `CancelledError` before the first one is over.
    """
    until_s = time.monotonic() + plan.time_limit_s
    search = capacity_search(plan.start, plan.bounds) if plan.loads is None else given_loads(plan.loads)
    async with system as running:
        bench = Bench(running, plan.offer, say, processes=plan.processes)
        followed = await follow(search, bench.measure, bench.takes_s, until_s)
        settings = dict(running.settings)
    measured = followed.measured
    if not measured:
        raise _without_a_run(followed)
    points = [each.point for each in measured]
    found = findings(points, followed.found, plan.offer, kind)
    if followed.stopped in _UNDONE:
        # The findings tell what else may have stopped it.
        note = f"{followed.why} What was measured before stands.".strip()
        found.append(Finding("the search", _UNDONE[followed.stopped], passed=False, note=note))
    return Results(
        model=plan.model,
        settings={"gateway": settings, kind: described(plan)},
        objective=plan.offer.objective,
        findings=found,
        trials=[each.trial for each in sorted(measured, key=lambda each: each.point.load)],
        parts=[points_table(points, plan.offer.unit)],
        details={
            "unit": plan.offer.unit.value,
            "found": to_builtins(followed.found),
            "points": to_builtins(points),
        },
    )


def _without_a_run(followed: Followed) -> BaseException:
    if followed.stopped is Ended.INTERRUPTED:
        return asyncio.CancelledError()
    none = "There was no time for a single run: allow more (--time-limit-s) or shorter steps."
    return LoadtestError(followed.why if followed.stopped is Ended.FAILED else none)


# ---------------------------------------------------------------- findings


def findings(points: Sequence[Point], found: Found, offer: Offer, kind: str = "capacity") -> list[Finding]:
    """The answer, what came out there, what was full above it. points: at least one."""
    unit, best = offer.unit, at_capacity(points, found)
    lost = sorted((each for each in points if not each.kept and each.driver is None), key=lambda each: each.load)
    driver = next((each for each in points if each.driver is not None), None)
    if best is None:
        note = f"Not even {unit.words(min(each.load for each in points))} kept the objective."
        sweeps = kind == "sweep"
        told = [Finding(_KNEE if sweeps else "capacity", "none", passed=None if sweeps else False, note=note)]
    elif kind == "sweep":
        told = [_knee(points, best, lost, offer), *there(best, points, offer)]
    else:
        above = "" if found.at_most is None else f"{unit.words(found.at_most)} did not keep it."
        told = [*capacity_findings("capacity", found, best, offer, above), *there(best, points, offer)]
    if lost:
        note = f"At {unit.words(lost[0].load)}."
        told.append(Finding("what was full above it", lost[0].limit, note=note))
    if lost and kind == "sweep":
        told += _overload(points, lost, best)
    if driver is not None:
        told.append(driver_limit(driver))
    elif kind == "sweep" and (why := _INCOMPLETE.get(found.ended)) is not None:
        told.append(Finding("the curve", "incomplete", note=why))
    return told


def _overload(points: Sequence[Point], lost: Sequence[Point], best: Point | None) -> list[Finding]:
    """Whether as much is finished above the knee as at most, and how long those wait that are accepted."""
    most = max(each.summary.requests_per_s.median for each in points)
    if not most:
        return []
    told = [
        Finding(
            "finished above it, beside the most",
            ", ".join(f"{each.summary.requests_per_s.median / most:.2f} at {each.load:g}" for each in lost),
            note=f"The most: {number(most)}/s.",
        )
    ]
    waits = [each for each in lost if each.summary.since_sent.count]
    if waits:
        note = "Of those that were accepted, since they were sent for the last time."
        if best is not None and best.summary.since_sent.count:
            note += f" At the knee {number(best.summary.since_sent.p99_ms)} ms."
        value = ", ".join(f"{number(each.summary.since_sent.p99_ms)} ms at {each.load:g}" for each in waits)
        told.append(Finding("first token p99 above it", value, note=note))
    return told


def _knee(points: Sequence[Point], best: Point, lost: Sequence[Point], offer: Offer) -> Finding:
    unit = offer.unit
    note = "No larger one failed: the limit is above."
    if lost:
        within = f"{lost[0].summary.within:.1%} within {offer.objective.first_token_ms:g} ms"
        if offer.objective.first_words_ms is not None:
            within += f"; not kept: {', '.join(lost[0].summary.missed)}"
        note = f"The next one, {unit.words(lost[0].load)}, did not keep it: {within}."
        if again := [each.load for each in points if each.kept and each.load > lost[0].load]:
            note += f" Yet {unit.words(max(again))} kept it again: use longer steps (--step-s)."
    return Finding(_KNEE, unit.words(best.load), note=f"{note} {too_few(best, offer)}".strip())


def capacity_findings(name: str, found: Found, best: Point, offer: Offer, above: str = "") -> list[Finding]:
    """A capacity that was not confirmed is nothing to plan with, and fails. best: the run that says most of it."""
    unit, confirmed = offer.unit, found.ended.confirmed
    note = " ".join(filter(None, [f"{found.ended.value.capitalize()}.", above, too_few(best, offer)]))
    planned = unit.words(with_headroom(best.load, unit))
    return [
        Finding(
            name,
            unit.words(best.load),
            bar="" if confirmed else "confirmed",
            passed=None if confirmed else False,
            note=note,
        ),
        Finding(f"with {HEADROOM:.0%} kept free", planned, note="What to plan with."),
    ]


def at_capacity(points: Sequence[Point], found: Found | None) -> Point | None:
    """The run that says most of the answer: its confirmation, if there was one."""
    own = [each for each in points if found is not None and each.load == found.capacity and each.kept]
    return max(own, key=lambda each: each.long, default=None)


def with_headroom(load: float, unit: Unit) -> float:
    """What to plan with: whole meetings, or two digits of a rate."""
    left = load * (1 - HEADROOM)
    return float(math.floor(left + 1e-9)) if unit is Unit.MEETINGS else float(f"{left:.2g}")

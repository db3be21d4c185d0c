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

from loadtest.capacity.bench import Bench, Deadline, Stopped, follow, stopped_finding
from loadtest.capacity.offer import Offer, Unit, described
from loadtest.capacity.points import Point, driver_limit, there, too_few
from loadtest.capacity.search import Bounds, Ended, Found, Stop, capacity_search, given_loads
from loadtest.commands import Say
from loadtest.machine import describe
from loadtest.results import LoadtestError
from loadtest.systems.running import Running
from loadtest.trial.values import Finding, Report

__all__ = [
    "HEADROOM",
    "CurvePlan",
    "Plan",
    "at_capacity",
    "capacity_finding",
    "curve",
    "findings",
    "with_headroom",
]

HEADROOM = 0.3
"""What is kept free of a capacity: for a busier hour, a gateway that is being restarted, talk that differs."""

_KNEE = "the knee: all up to it kept the objective"
_INCOMPLETE = {
    Ended.RUNS: "The runs were used up before all of it was measured (--runs).",
    Ended.TIME: "There was no time for all of it (--time-limit-s).",
}


class Plan(Struct, frozen=True, kw_only=True):
    """What all searches have in common."""

    offer: Offer
    # For people.
    model: str
    # Of clients.
    processes: int = 1
    # Of everything, seconds.
    time_limit_s: float = 1_800.0
    # The first load that is tried.
    start: float = 4.0
    bounds: Bounds = Bounds()


class CurvePlan(Plan, frozen=True, kw_only=True):
    # Those to offer, in order; None finds them.
    loads: tuple[float, ...] | None = None


async def curve(
    kind: str, plan: CurvePlan, system: AbstractAsyncContextManager[Running], command: str, say: Say
) -> Report:
    """Search on one gateway, and report all runs, also those before an error or an interruption.

    Raises `LoadtestError`, also without time for a single run, and `CancelledError` before the first one is over.
    """
    began, machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), describe()
    deadline = Deadline(plan.time_limit_s)
    search = capacity_search(plan.start, plan.bounds) if plan.loads is None else given_loads(plan.loads)
    async with system as running:
        bench = Bench(running, plan.offer, say, processes=plan.processes)
        followed = await follow(search, bench.measure, bench.takes_s, deadline)
        settings = dict(running.settings)
    found, measured, stopped = followed.answer, followed.measured, followed.stopped
    if not measured:
        raise _without_a_run(stopped)
    points = [each.point for each in measured]
    undone = stopped_finding(stopped) if stopped is not None else None
    return Report(
        kind=kind,
        command=command,
        began=began,
        model=plan.model,
        machine=machine,
        settings={"gateway": settings, kind: described(plan)},
        objective=plan.offer.objective,
        findings=[*findings(points, found, plan.offer, kind), *([undone] if undone is not None else [])],
        trials=[each.trial for each in sorted(measured, key=lambda each: each.point.load)],
        details={"unit": plan.offer.unit.value, "found": to_builtins(found), "points": to_builtins(points)},
    )


def _without_a_run(stopped: Stopped | None) -> BaseException:
    match stopped:
        case Stopped(by=Stop.FAILED, why=why):
            return LoadtestError(why)
        case Stopped(by=Stop.INTERRUPTED):
            return asyncio.CancelledError()
    return LoadtestError("There was no time for a single run: allow more (--time-limit-s) or shorter steps.")


# ---------------------------------------------------------------- findings


def findings(points: Sequence[Point], found: Found, offer: Offer, kind: str = "capacity") -> list[Finding]:
    """The answer, what came out there, what was full above it. points: at least one."""
    best = at_capacity(points, found)
    lost = sorted((each for each in points if not each.kept and each.driver is None), key=lambda each: each.load)
    driver = next((each for each in points if each.driver is not None), None)
    told = (_knee if kind == "sweep" else _capacity)(points, found, best, lost, offer)
    if best is not None:
        told += there(best, points, offer)
    if lost:
        note = f"At {offer.unit.words(lost[0].load)}."
        told.append(Finding("what was full above it", lost[0].limit, note=note))
    if driver is not None:
        told.append(driver_limit(driver))
    elif kind == "sweep" and (why := _INCOMPLETE.get(found.ended)) is not None:
        told.append(Finding("the curve", "incomplete", note=why))
    return told


def _knee(
    points: Sequence[Point], found: Found, best: Point | None, lost: Sequence[Point], offer: Offer
) -> list[Finding]:
    unit = offer.unit
    if best is None:
        return [Finding(_KNEE, "none", note=_nothing(points, unit))]
    note = "No larger one failed: the limit is above."
    if lost:
        within = f"{lost[0].within:.1%} within {offer.objective.first_token_ms:g} ms"
        note = f"The next one, {unit.words(lost[0].load)}, did not keep it: {within}."
        if again := [each.load for each in points if each.kept and each.load > lost[0].load]:
            note += f" Yet {unit.words(max(again))} kept it again: use longer steps (--step-s)."
    return [Finding(_KNEE, unit.words(best.load), note=f"{note} {too_few(best, offer)}".strip())]


def _capacity(
    points: Sequence[Point], found: Found, best: Point | None, _lost: Sequence[Point], offer: Offer
) -> list[Finding]:
    unit = offer.unit
    if best is None:
        return [Finding("capacity", "none", passed=False, note=_nothing(points, unit))]
    above = f" {unit.words(found.at_most)} did not keep it." if found.at_most is not None else ""
    note = f"{found.ended.value.capitalize()}.{above} {too_few(best, offer)}".strip()
    planned = unit.words(with_headroom(best.load, unit))
    return [
        capacity_finding("capacity", found, unit, note),
        Finding(f"with {HEADROOM:.0%} kept free", planned, note="What to plan with."),
    ]


def _nothing(points: Sequence[Point], unit: Unit) -> str:
    return f"Not even {unit.words(min(each.load for each in points))} kept the objective."


def capacity_finding(name: str, found: Found, unit: Unit, note: str) -> Finding:
    """Of a capacity that is not None. One that was not confirmed is nothing to plan with, and fails."""
    assert found.capacity is not None  # noqa: S101 -- as it says
    value = unit.words(found.capacity)
    if found.ended.confirmed:
        return Finding(name, value, note=note)
    return Finding(name, value, bar="confirmed", passed=False, note=note)


def at_capacity(points: Sequence[Point], found: Found) -> Point | None:
    """The run that says most of the answer: its confirmation, if there was one."""
    own = [each for each in points if each.load == found.capacity and each.kept]
    return max(own, key=lambda each: each.long, default=None)


def with_headroom(load: float, unit: Unit) -> float:
    """What to plan with: whole meetings, or two digits of a rate."""
    left = load * (1 - HEADROOM)
    return float(math.floor(left + 1e-9)) if unit is Unit.MEETINGS else float(f"{left:.2g}")

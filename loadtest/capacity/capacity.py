"""The largest load that one gateway carries under an objective.

Knows: what a search for it finds. Must not know: how a run is made, how a report looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from msgspec import to_builtins

from loadtest.capacity.bench import Bench, Deadline, Followed, follow
from loadtest.capacity.curve import Plan, curve
from loadtest.capacity.offer import Offer, Unit
from loadtest.capacity.points import Point, driver_limit, there, too_few
from loadtest.capacity.search import Bounds, Found, capacity_search
from loadtest.commands import Say
from loadtest.systems.running import Running
from loadtest.trial.values import Finding, Report

__all__ = [
    "HEADROOM",
    "CapacityPlan",
    "at_capacity",
    "capacity",
    "capacity_finding",
    "findings",
    "look_for",
    "with_headroom",
]

HEADROOM = 0.3
"""What is kept free of a capacity: for a busier hour, a gateway that is being restarted, talk that differs."""


class CapacityPlan(Plan, frozen=True, kw_only=True):
    """start: the first load that is tried."""

    start: float = 4.0
    bounds: Bounds = Bounds(both_sides=True)


async def capacity(
    plan: CapacityPlan, system: AbstractAsyncContextManager[Running], command: str, say: Say
) -> Report:
    """Find it. Raises `LoadtestError`, also where there was no time for a single run."""
    return await curve(
        "capacity",
        plan,
        system,
        command,
        say,
        search=lambda bench, deadline: look_for(bench, plan.start, plan.bounds, deadline),
        findings=findings,
        details=lambda found: {"found": to_builtins(found)},
    )


async def look_for(
    bench: Bench, start: float, bounds: Bounds, deadline: Deadline, worth: float = 0.0
) -> Followed[Found]:
    """The capacity of one gateway, and all runs that were made for it."""
    return await follow(capacity_search(start, bounds, worth), bench.measure, bench.takes_s, deadline)


def at_capacity(points: Sequence[Point], found: Found) -> Point | None:
    """The run that says most of the answer: its confirmation, if there was one."""
    own = [each for each in points if each.load == found.capacity and each.kept]
    return max(own, key=lambda each: each.long, default=None)


def with_headroom(load: float, unit: Unit) -> float:
    """What to plan with: whole meetings, or two digits of a rate."""
    left = load * (1 - HEADROOM)
    return float(math.floor(left + 1e-9)) if unit is Unit.MEETINGS else float(f"{left:.2g}")


def capacity_finding(name: str, found: Found, unit: Unit, note: str) -> Finding:
    """Of a capacity that is not null. One that was not confirmed is nothing to plan with, and fails."""
    assert found.capacity is not None  # noqa: S101 -- as it says
    value = unit.words(found.capacity)
    if found.ended.confirmed:
        return Finding(name, value, note=note)
    return Finding(name, value, bar="confirmed", passed=False, note=note)


def findings(points: Sequence[Point], found: Found, offer: Offer) -> list[Finding]:
    """The answer, what came out there, how sure it is: one that is not confirmed fails. points: at least one."""
    unit, best = offer.unit, at_capacity(points, found)
    told: list[Finding] = []
    if best is None or found.capacity is None:
        least = min(each.load for each in points)
        note = f"Not even {unit.words(least)} kept the objective."
        told.append(Finding("capacity", "none", passed=False, note=note))
    else:
        above = f" {unit.words(found.at_most)} did not keep it." if found.at_most is not None else ""
        note = f"{found.ended.value.capitalize()}.{above} {too_few(best, offer)}".strip()
        told += [
            capacity_finding("capacity", found, unit, note),
            Finding(
                f"with {HEADROOM:.0%} kept free",
                unit.words(with_headroom(found.capacity, unit)),
                note="What to plan with.",
            ),
            *there(best, points, offer),
        ]
    lost = [each for each in points if not each.kept and each.driver is None]
    if lost:
        first = min(lost, key=lambda each: each.load)
        told.append(Finding("what was full above it", first.limit, note=f"At {unit.words(first.load)}."))
    if (driver := next((each for each in points if each.driver is not None), None)) is not None:
        told.append(driver_limit(driver))
    return told

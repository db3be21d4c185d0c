"""Runs on one gateway that become one report: what `sweep` and `capacity` have in common.

Knows: the bench, what such a report holds. Must not know: which loads are tried, what is concluded from them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from msgspec import Struct, to_builtins

from loadtest.capacity.bench import Bench, Deadline
from loadtest.capacity.offer import Offer, described
from loadtest.capacity.points import Measured, Point
from loadtest.commands import Say
from loadtest.machine import describe
from loadtest.results import LoadtestError
from loadtest.systems.running import Running
from loadtest.trial.values import Finding, Report

__all__ = ["Plan", "curve"]

_Found = TypeVar("_Found")


class Plan(Struct, frozen=True, kw_only=True):
    """model: for people. processes: of clients. time_limit_s: of everything, seconds."""

    offer: Offer
    model: str
    processes: int = 1
    time_limit_s: float = 1_800.0


async def curve(
    kind: str,
    plan: Plan,
    system: AbstractAsyncContextManager[Running],
    command: str,
    say: Say,
    *,
    search: Callable[[Bench, Deadline], Awaitable[tuple[_Found, list[Measured]]]],
    findings: Callable[[Sequence[Point], _Found, Offer], list[Finding]],
    details: Callable[[_Found], dict[str, Any]] = lambda _: {},
) -> Report:
    """Search on one gateway, and report all runs. Raises `LoadtestError`, also without time for a single run."""
    began, machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), describe()
    deadline = Deadline(plan.time_limit_s)
    async with system as running:
        bench = Bench(running, plan.offer, say, processes=plan.processes)
        found, measured = await search(bench, deadline)
        settings = dict(running.settings)
    if not measured:
        raise LoadtestError("There was no time for a single run: allow more (--time-limit-s) or shorter steps.")
    points = [each.point for each in measured]
    return Report(
        kind=kind,
        command=command,
        began=began,
        model=plan.model,
        machine=machine,
        settings={"gateway": settings, kind: described(plan)},
        objective=plan.offer.objective,
        findings=findings(points, found, plan.offer),
        trials=[each.trial for each in sorted(measured, key=lambda each: each.point.load)],
        details={"unit": plan.offer.unit.value, **details(found), "points": to_builtins(points)},
    )

"""Runs on one gateway that become one report: what `sweep` and `capacity` have in common.

Knows: the bench, what such a report holds. Must not know: which loads are tried, what is concluded from them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from msgspec import Struct, to_builtins

from loadtest.capacity.bench import Bench, Deadline, Followed, Stopped, stopped_finding
from loadtest.capacity.offer import Offer, described
from loadtest.capacity.points import Point
from loadtest.capacity.search import Stop
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
    search: Callable[[Bench, Deadline], Awaitable[Followed[_Found]]],
    findings: Callable[[Sequence[Point], _Found, Offer], list[Finding]],
    details: Callable[[_Found], dict[str, Any]] = lambda _: {},
) -> Report:
    """Search on one gateway, and report all runs, also those before an error or an interruption.

    Raises `LoadtestError`, also without time for a single run, and `CancelledError` before the first one is over.
    """
    began, machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), describe()
    deadline = Deadline(plan.time_limit_s)
    async with system as running:
        bench = Bench(running, plan.offer, say, processes=plan.processes)
        followed = await search(bench, deadline)
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
        findings=[*findings(points, found, plan.offer), *([undone] if undone is not None else [])],
        trials=[each.trial for each in sorted(measured, key=lambda each: each.point.load)],
        details={"unit": plan.offer.unit.value, **details(found), "points": to_builtins(points)},
    )


def _without_a_run(stopped: Stopped | None) -> BaseException:
    match stopped:
        case Stopped(by=Stop.FAILED, why=why):
            return LoadtestError(why)
        case Stopped(by=Stop.INTERRUPTED):
            return asyncio.CancelledError()
    return LoadtestError("There was no time for a single run: allow more (--time-limit-s) or shorter steps.")

"""A gateway to which one load after the other is offered, searches that are played on it, and what becomes one
report of them: `sweep`.

Knows: drivers, when a gateway has nothing left to do, how much time there is; what is found on a curve, and what
people are told of it. Must not know: which load is tried next, how a report looks.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct, to_builtins

from loadtest.capacity.points import (
    Cores,
    Measured,
    Offer,
    Point,
    described,
    driver_limit,
    judge,
    points_table,
    too_few,
)
from loadtest.capacity.search import Bounds, Ended, Found, Run, capacity_search, given_loads
from loadtest.driving.driver import driver
from loadtest.measuring import measure
from loadtest.options import Say
from loadtest.results import LoadtestError, go_on
from loadtest.systems.server import Running, until_idle
from loadtest.trial.values import Finding, Results

_LOOK_S = 0.2

# Seconds that a gateway may take to finish what it accepted under an overload.
_SETTLE_S = 120.0

# A run of translations that never end is given up: so many times as long as lines were due, and this much more.
_LIMIT_TIMES = 3.0
_LIMIT_S = 30.0

# Seconds of a run besides the time in which lines are due: client processes, what is left in the queue.
_BESIDES_S = 3.0

# A run that was lost by the driver alone is repeated so often.
_AGAIN = 2


class Bench:
    """One gateway. label: put before the load in the names of trials, where several gateways are compared."""

    def __init__(self, running: Running, offer: Offer, say: Say, *, processes: int, label: str = "") -> None:
        self._running = running
        self._offer = offer
        self._say = say
        self._processes = processes
        self._label = label
        self._runs = 0

    def takes_s(self, run: Run) -> float:
        """About how long a run takes."""
        return self._offer.seconds(run.long) + _BESIDES_S

    async def measure(self, run: Run) -> Measured:
        """Offer this load, in words that this gateway has not heard yet. Raises `LoadtestError`."""
        number, self._runs = self._runs, self._runs + 1
        lines, load = await asyncio.to_thread(self._offer.at, run.load, number, run.long)
        if self._running.metrics_url is not None:
            await until_idle(self._running.metrics_url, _SETTLE_S, _LOOK_S, self._say)
        name = self._label + self._offer.unit.words(run.load) + (", confirmation" if run.long else "")
        async with driver(self._running.address, load, processes=self._processes, say=self._say) as playing:
            trial = await measure(
                self._running,
                playing,
                lines,
                load,
                name=name,
                repetition=1,
                workload=self._offer.workload,
                say=self._say,
                limit_s=_LIMIT_TIMES * self._offer.seconds(run.long) + _LIMIT_S,
                discard_s=self._offer.beginning_s,
                allow_bottleneck=True,
            )
        cores = Cores(own=len(os.sched_getaffinity(0)), machine=os.cpu_count() or 1)
        batches = slots(self._running.settings)
        seed = self._offer.seed(number)
        return Measured(judge(trial, run, self._offer, seed=seed, slots=batches, cores=cores), trial)


def slots(settings: dict[str, Any]) -> int | None:
    """Sequences in all batches of a gateway with these settings; None for one that runs elsewhere."""
    if "url" in settings:
        return None
    count = 0
    for engine in settings.get("engines") or [settings.get("engine", {})]:
        if engine.get("kind") == "simulated":
            script = engine.get("script", {})
            own = 1 if script.get("shared", True) else settings.get("workers", 1)
            count += script.get("max_running", 16) * own
        else:
            count += engine.get("max_num_seqs", 16)
    return count


class Followed(Struct, frozen=True):
    """The answer of a search, and all that was measured for it."""

    found: Found
    measured: list[Measured]
    # Why it got no further answers, with a sentence where there is more to say; None where it went to its end.
    stopped: Ended | None = None
    why: str = ""


async def follow(search: Generator[Run, bool | Ended, Found], bench: Bench, until_s: float) -> Followed:
    """Play a search to its end.

    It ends early where there is no time for the next run until `until_s`, by the monotonic clock; where a run
    fails; when it is interrupted; and where the objective was lost by the driver alone, also when the run was
    repeated: what it says of the gateway is nothing. What was measured until then is there in each case; a
    cancellation is taken note of and goes no further.
    """
    measured: list[Measured] = []
    stopped, why = None, ""

    def is_time() -> bool:
        return bench.takes_s(run) <= until_s - time.monotonic()

    async def told() -> tuple[bool | Ended, str]:
        """Whether a run kept the objective; it is added to those that were measured."""
        if not is_time():
            return Ended.TIME, ""
        try:
            one, again = await bench.measure(run), _AGAIN
            while one.point.driver is not None and again and is_time():
                # A moment in which the machine did something else? What stays like that is the driver's limit.
                one, again = await bench.measure(run), again - 1
        except LoadtestError as error:
            return Ended.FAILED, str(error)
        except asyncio.CancelledError:
            go_on()
            return Ended.INTERRUPTED, ""
        measured.append(one)
        return (one.point.kept, "") if one.point.driver is None else (Ended.DRIVER, one.point.driver)

    run = next(search)
    while True:
        answer, sentence = await told()
        if isinstance(answer, Ended):
            stopped, why = answer, sentence
        try:
            run = search.send(answer)
        except StopIteration as stop:
            return Followed(stop.value, measured, stopped, why)


_KNEE = "the knee: all up to it kept the objective"
_INCOMPLETE = {
    Ended.RUNS: "The runs were used up before all of it was measured (--runs).",
    Ended.TIME: "There was no time for all of it (--time-limit-s).",
}
_UNDONE = {Ended.FAILED: "ended by an error", Ended.INTERRUPTED: "interrupted"}


class Plan(Struct, frozen=True, kw_only=True):
    """What is searched for."""

    offer: Offer
    # Name of the model for people.
    model: str
    # Client processes.
    processes: int = 1
    # Seconds for everything.
    time_limit_s: float = 1_800.0
    # The first load that is tried.
    start: float = 4.0
    bounds: Bounds = Bounds()
    # Loads to offer, in order; None finds them.
    loads: tuple[float, ...] | None = None


async def curve(plan: Plan, system: AbstractAsyncContextManager[Running], say: Say) -> Results:
    """Search on one gateway, and report all runs, also those before an error or an interruption.

    Raises `LoadtestError`, also without time for a single run, and `CancelledError` before the first one is over.
    """
    until_s = time.monotonic() + plan.time_limit_s
    search = capacity_search(plan.start, plan.bounds) if plan.loads is None else given_loads(plan.loads)
    async with system as running:
        bench = Bench(running, plan.offer, say, processes=plan.processes)
        followed = await follow(search, bench, until_s)
        settings = dict(running.settings)
    measured = followed.measured
    if not measured:
        if followed.stopped is Ended.INTERRUPTED:
            raise asyncio.CancelledError
        none = "There was no time for a single run: allow more (--time-limit-s) or shorter steps."
        raise LoadtestError(followed.why if followed.stopped is Ended.FAILED else none)
    points = [each.point for each in measured]
    found = findings(points, followed.found, plan.offer)
    if followed.stopped in _UNDONE:
        # The findings tell what else may have stopped it.
        note = f"{followed.why} What was measured before stands.".strip()
        found.append(Finding("the search", _UNDONE[followed.stopped], passed=False, note=note))
    return Results(
        model=plan.model,
        settings={"gateway": settings, "sweep": described(plan)},
        objective=plan.offer.objective,
        findings=found,
        trials=[each.trial for each in sorted(measured, key=lambda each: each.point.load)],
        parts=[points_table(points, plan.offer.unit)],
        details=to_builtins({"unit": plan.offer.unit, "found": followed.found, "points": points}),
    )


# ---------------------------------------------------------------- findings


def findings(points: Sequence[Point], found: Found, offer: Offer) -> list[Finding]:
    """The answer, and what was full above it; all else is in the tables. points: at least one."""
    unit, best = offer.unit, at_capacity(points, found)
    lost = sorted((each for each in points if not each.kept and each.driver is None), key=lambda each: each.load)
    driver = next((each for each in points if each.driver is not None), None)
    if best is None:
        note = f"Not even {unit.words(min(each.load for each in points))} kept the objective."
        told = [Finding(_KNEE, "none", note=note)]
    else:
        told = [_knee(points, best, lost, offer)]
    if lost:
        note = f"At {unit.words(lost[0].load)}."
        told.append(Finding("what was full above it", lost[0].limit, note=note))
    if driver is not None:
        told.append(driver_limit(driver))
    elif (why := _INCOMPLETE.get(found.ended)) is not None:
        told.append(Finding("the curve", "incomplete", note=why))
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


def at_capacity(points: Sequence[Point], found: Found | None) -> Point | None:
    """The run that says most of the answer: its confirmation, if there was one."""
    own = [each for each in points if found is not None and each.load == found.capacity and each.kept]
    return max(own, key=lambda each: each.long, default=None)

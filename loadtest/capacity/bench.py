"""A gateway to which one load after the other is offered, and searches that are played on it.

Knows: drivers, when a gateway has nothing left to do, how much time there is. Must not know: which load is tried
next, or what is concluded.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from loadtest.capacity.offer import Offer
from loadtest.capacity.points import Measured, judge
from loadtest.capacity.recorded import Recorded, Scrape, compare, parse
from loadtest.capacity.search import Run, Seen
from loadtest.commands import Say
from loadtest.driving.driver import driver
from loadtest.results import LoadtestError
from loadtest.systems.metrics import get, metric
from loadtest.systems.running import Running
from loadtest.trial.measure import measure

__all__ = ["Bench", "Deadline", "follow", "slots"]

_Answer = TypeVar("_Answer")

_LOOK_S = 0.2

# What a gateway may take to finish what it accepted under an overload.
_SETTLE_S = 120.0

# A run of translations that never end is given up: so many times as long as lines were due, and this much more.
_LIMIT_TIMES = 3.0
_LIMIT_S = 30.0

# What a run takes besides the time in which lines are due: client processes, what is left in the queue.
_BESIDES_S = 3.0


# A run that was lost by the driver alone is repeated so often.
_AGAIN = 2


class Deadline:
    """When everything has to be over. limit_s: from now on."""

    def __init__(self, limit_s: float) -> None:
        self._end_s = time.monotonic() + limit_s

    @property
    def left_s(self) -> float:
        return self._end_s - time.monotonic()


class Bench:
    """One gateway. label: put before the load in the names of trials, where several gateways are compared."""

    def __init__(self, running: Running, offer: Offer, say: Say, *, processes: int, label: str = "") -> None:
        self._running = running
        self._offer = offer
        self._say = say
        self._processes = processes
        self._label = label

    def takes_s(self, run: Run) -> float:
        """About how long a run takes."""
        return self._offer.seconds(run.long) + _BESIDES_S

    async def measure(self, run: Run) -> Measured:
        """Offer this load, and let the gateway finish. Raises `LoadtestError`."""
        offered = await asyncio.to_thread(self._offer.at, run.load, run.seed, run.long)
        await self._settled()
        before = await self._scrape()
        name = self._label + self._offer.unit.words(run.load) + (", confirmation" if run.long else "")
        async with driver(
            self._running.address, offered.load, processes=self._processes, say=self._say
        ) as playing:
            trial = await measure(
                self._running,
                playing,
                offered.lines,
                offered.load,
                name=name,
                repetition=1,
                workload=self._offer.workload,
                say=self._say,
                limit_s=_LIMIT_TIMES * offered.seconds + _LIMIT_S,
                discard_s=offered.beginning_s,
                allow_bottleneck=True,
            )
        cores = len(os.sched_getaffinity(0))
        point = judge(trial, run, self._offer, slots=slots(self._running.settings), cores=cores)
        return Measured(point, trial, _counted(before, await self._scrape()))

    async def _scrape(self) -> Scrape | None:
        if self._running.metrics_url is None:
            return None
        try:
            return parse((await asyncio.to_thread(get, self._running.metrics_url))[1])
        except LoadtestError:
            return None  # no gateway of ours

    async def _settled(self) -> None:
        """Wait until nothing runs; what the run before left behind would be counted as this one's."""
        url = self._running.metrics_url
        if url is None:
            return
        deadline = Deadline(_SETTLE_S)
        while True:
            _, text = await asyncio.to_thread(get, url)
            names = ("gateway_translations_waiting", "gateway_translations_running")
            if not sum(metric(text, name) or 0.0 for name in names):
                return
            if deadline.left_s <= 0:
                raise LoadtestError(
                    f"Within {_SETTLE_S:g} s the gateway did not finish what it had accepted; is it in use?"
                )
            self._say("waiting: the gateway finishes what it accepted")
            await asyncio.sleep(_LOOK_S)


def _counted(before: Scrape | None, after: Scrape | None) -> Recorded | None:
    if before is None or after is None:
        return None
    try:
        return compare(before, after)
    except LoadtestError:
        return None  # nothing was translated


def slots(settings: dict[str, Any]) -> int | None:
    """Sequences in the batch of a gateway with these settings; null for one of somebody else's."""
    if "url" in settings:
        return None
    engine = settings.get("engine", {})
    if engine.get("kind") == "simulated":
        return int(engine.get("script", {}).get("max_running", 16))
    return int(engine.get("max_num_seqs", 16))


async def follow(
    search: Generator[Run, Seen | None, _Answer],
    measure_one: Callable[[Run], Awaitable[Measured]],
    takes_s: Callable[[Run], float],
    deadline: Deadline,
) -> tuple[_Answer, list[Measured]]:
    """Play a search to its end: its answer and all that was measured.

    It ends early where there is no time for the next run, and where the objective was lost by the driver alone,
    also when the run was repeated: what it says of the gateway is nothing.
    """
    measured: list[Measured] = []
    run = next(search)
    while True:
        seen: Seen | None = None
        if takes_s(run) <= deadline.left_s:
            one = await measure_one(run)
            again = _AGAIN
            while one.point.driver is not None and again and takes_s(run) <= deadline.left_s:
                # A moment in which the machine did something else? What stays like that is the driver's limit.
                one, again = await measure_one(run), again - 1
            measured.append(one)
            if one.point.driver is None:
                seen = one.point.seen
        try:
            run = search.send(seen)
        except StopIteration as stop:
            return stop.value, measured

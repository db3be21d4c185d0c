"""A gateway to which one load after the other is offered, and searches that are played on it.

Knows: drivers, when a gateway has nothing left to do, how much time there is. Must not know: which load is tried
next, or what is concluded.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any

from msgspec import Struct

from loadtest.capacity.offer import Offer
from loadtest.capacity.points import Cores, Measured, judge
from loadtest.capacity.search import Ended, Found, Run
from loadtest.commands import Say
from loadtest.driving.driver import driver
from loadtest.measuring.measure import measure
from loadtest.results import LoadtestError, go_on
from loadtest.systems.metrics import get, metric
from loadtest.systems.running import Running

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
        offered = await asyncio.to_thread(self._offer.at, run.load, number, run.long)
        await self._settled()
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
        cores = Cores(own=len(os.sched_getaffinity(0)), machine=os.cpu_count() or 1)
        full = slots(self._running.settings)
        point = judge(trial, run, self._offer, seed=offered.seed, slots=full, cores=cores)
        return Measured(point, trial)

    async def _settled(self) -> None:
        """Wait until nothing runs; what the run before left behind would be counted as this one's."""
        url = self._running.metrics_url
        if url is None:
            return
        until_s = time.monotonic() + _SETTLE_S
        names = ("gateway_translations_waiting", "gateway_translations_running")
        while True:
            _, text = await asyncio.to_thread(get, url)
            if not sum(metric(text, name) or 0.0 for name in names):
                return
            if time.monotonic() > until_s:
                raise LoadtestError(
                    f"Within {_SETTLE_S:g} s the gateway did not finish what it had accepted; is it in use?"
                )
            self._say("waiting: the gateway finishes what it accepted")
            await asyncio.sleep(_LOOK_S)


def slots(settings: dict[str, Any]) -> int | None:
    """Sequences in all batches of a gateway with these settings; None for one that runs elsewhere."""
    if "url" in settings:
        return None
    workers = settings.get("workers", 1)
    return sum(_slots_of(engine, workers) for engine in settings.get("engines") or [settings.get("engine", {})])


def _slots_of(engine: Mapping[str, Any], workers: int) -> int:
    if engine.get("kind") == "simulated":
        script = engine.get("script", {})
        return int(script.get("max_running", 16)) * (1 if script.get("shared", True) else workers)
    return int(engine.get("max_num_seqs", 16))


class Followed(Struct, frozen=True):
    """The answer of a search, and all that was measured for it."""

    found: Found
    measured: list[Measured]
    # Why it got no further answers, with a sentence where there is more to say; None where it went to its end.
    stopped: Ended | None = None
    why: str = ""


async def follow(
    search: Generator[Run, bool | Ended, Found],
    measure_one: Callable[[Run], Awaitable[Measured]],
    takes_s: Callable[[Run], float],
    until_s: float,
) -> Followed:
    """Play a search to its end.

    It ends early where there is no time for the next run until `until_s`, by the monotonic clock; where a run
    fails; when it is interrupted; and where the objective was lost by the driver alone, also when the run was
    repeated: what it says of the gateway is nothing. What was measured until then is there in each case; a
    cancellation is taken note of and goes no further.
    """
    measured: list[Measured] = []
    stopped, why = None, ""

    def is_time() -> bool:
        return takes_s(run) <= until_s - time.monotonic()

    async def told() -> tuple[bool | Ended, str]:
        """Whether a run kept the objective; it is added to those that were measured."""
        if not is_time():
            return Ended.TIME, ""
        try:
            one = await measure_one(run)
            again = _AGAIN
            while one.point.driver is not None and again and is_time():
                # A moment in which the machine did something else? What stays like that is the driver's limit.
                one, again = await measure_one(run), again - 1
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

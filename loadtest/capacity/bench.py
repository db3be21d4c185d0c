"""A gateway to which one load after the other is offered, and searches that are played on it.

Knows: drivers, when a gateway has nothing left to do, how much time there is. Must not know: which load is tried
next, or what is concluded.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

from msgspec import Struct

from loadtest.capacity.offer import Offer
from loadtest.capacity.points import Measured, judge
from loadtest.capacity.search import Run, Seen, Stop
from loadtest.commands import Say
from loadtest.driving.driver import driver
from loadtest.measuring.measure import measure
from loadtest.results import LoadtestError, go_on
from loadtest.systems.metrics import get, metric
from loadtest.systems.running import Running
from loadtest.trial.values import Finding

__all__ = ["Bench", "Deadline", "Followed", "Stopped", "follow", "slots", "stopped_finding"]

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
        cores = len(os.sched_getaffinity(0))
        full = slots(self._running.settings)
        point = judge(trial, run, self._offer, seed=offered.seed, slots=full, cores=cores)
        return Measured(point, trial)

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


def slots(settings: dict[str, Any]) -> int | None:
    """Sequences in the batch of a gateway with these settings; None for one of somebody else's."""
    if "url" in settings:
        return None
    engine = settings.get("engine", {})
    if engine.get("kind") == "simulated":
        return int(engine.get("script", {}).get("max_running", 16))
    return int(engine.get("max_num_seqs", 16))


class Stopped(Struct, frozen=True):
    """Why a search got no further answers. why: one sentence, or nothing more than the reason."""

    by: Stop
    why: str = ""


class Followed(Struct, Generic[_Answer], frozen=True):
    """The answer of a search, and all that was measured for it. stopped: None where it went on to its end."""

    answer: _Answer
    measured: list[Measured]
    stopped: Stopped | None = None


async def follow(
    search: Generator[Run, Seen | Stop, _Answer],
    measure_one: Callable[[Run], Awaitable[Measured]],
    takes_s: Callable[[Run], float],
    deadline: Deadline,
) -> Followed[_Answer]:
    """Play a search to its end.

    It ends early where there is no time for the next run; where a run fails; when it is interrupted; and where the
    objective was lost by the driver alone, also when the run was repeated: what it says of the gateway is nothing.
    What was measured until then is there in each case; a cancellation is taken note of and goes no further.
    """
    measured: list[Measured] = []
    stopped: Stopped | None = None
    run = next(search)
    while True:
        told = await _told(run, measure_one, takes_s, deadline, measured)
        if isinstance(told, Stopped):
            stopped = told
        try:
            run = search.send(told.by if isinstance(told, Stopped) else told)
        except StopIteration as stop:
            return Followed(stop.value, measured, stopped)


async def _told(
    run: Run,
    measure_one: Callable[[Run], Awaitable[Measured]],
    takes_s: Callable[[Run], float],
    deadline: Deadline,
    measured: list[Measured],
) -> Seen | Stopped:
    """What a run showed; it is added to those that were measured."""
    if takes_s(run) > deadline.left_s:
        return Stopped(Stop.TIME)
    try:
        one = await measure_one(run)
        again = _AGAIN
        while one.point.driver is not None and again and takes_s(run) <= deadline.left_s:
            # A moment in which the machine did something else? What stays like that is the driver's limit.
            one, again = await measure_one(run), again - 1
    except LoadtestError as error:
        return Stopped(Stop.FAILED, str(error))
    except asyncio.CancelledError:
        go_on()
        return Stopped(Stop.INTERRUPTED)
    measured.append(one)
    return one.point.seen if one.point.driver is None else Stopped(Stop.DRIVER, one.point.driver)


def stopped_finding(stopped: Stopped) -> Finding | None:
    """What an error or an interruption left undone; of the others the findings of each search tell."""
    match stopped.by:
        case Stop.FAILED:
            return Finding("the search", stopped.by.value, passed=False, note=f"{stopped.why} {_STANDS}")
        case Stop.INTERRUPTED:
            return Finding("the search", stopped.by.value, passed=False, note=_STANDS)
        case _:
            return None


_STANDS = "What was measured before stands."

"""The journey: systems are started in groups and measured one at a time.

Knows: the order. Must not know: how a round is played, what the results look like.

The recommended gateway comes first and stays, idle, while the others change. It is measured in turn with the first
of them, one worker, so that what else happens on the machine falls on both; the rates of the open loop are parts
of what these two do at best.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from msgspec import Struct

from loadtest.baselines.system import baseline
from loadtest.commands import Say
from loadtest.journey.rounds import Round, Rounds, best_per_s
from loadtest.journey.stages import BASELINE, RECOMMENDED, STAYS, Stage, System
from loadtest.results import LoadtestError
from loadtest.systems.gateway import gateway
from loadtest.systems.running import Running
from loadtest.systems.start import together

__all__ = ["Plan", "journey"]

# Of what a system does at best in a closed loop.
_PARTS = (0.5, 0.8, 1.2)


class Plan(Struct, frozen=True, kw_only=True):
    """concurrency: requests at a time, one level each. rates: requests a second; null takes parts of what was
    found, an empty list measures no open loop."""

    stages: Sequence[Stage]
    groups: Sequence[Sequence[System]]
    concurrency: Sequence[int]
    rates: Sequence[float] | None
    rounds: Rounds
    time_limit_s: float


async def journey(plan: Plan) -> list[Round]:
    """Every round, in the order of the stages. Raises `LoadtestError`."""
    travelling = _Journey(plan)
    try:
        async with asyncio.timeout(plan.time_limit_s):
            await travelling.go(list(plan.groups), {})
    except TimeoutError:
        raise LoadtestError("The journey took longer than its time limit allows.") from None
    order = [stage.key for stage in plan.stages]
    return sorted(travelling.rounds, key=lambda each: order.index(each.stage))


class _Journey:
    def __init__(self, plan: Plan) -> None:
        self.rounds: list[Round] = []
        self._plan = plan
        # Keys of the stages that were measured so.
        self._closed_keys: set[str] = set()
        self._opened: set[str] = set()

    async def go(self, groups: Sequence[Sequence[System]], stays: Mapping[str, Running]) -> None:
        """Measure a group, and then those behind it."""
        if not groups:
            return
        group, *others = groups
        async with together(*(_start(system, self._plan.rounds.say) for system in group)) as started:
            running = dict(zip((system.name for system in group), started, strict=True))
            if group[0].name == STAYS and others:
                await self.go(others, running)
                return
            await self._closed({**stays, **running})
            await self._open({**stays, **running})
        await self.go(others, stays)

    async def _closed(self, running: Mapping[str, Running]) -> None:
        stages = [
            stage
            for stage in self._plan.stages
            if stage.system in running and not stage.same_as and stage.key not in self._closed_keys
        ]
        # Level by level, so that what drifts falls on all of them.
        for in_flight in self._plan.concurrency:
            for stage in stages:
                self.rounds += await self._plan.rounds.closed(stage, running[stage.system], in_flight)
        self._closed_keys |= {stage.key for stage in stages}

    async def _open(self, running: Mapping[str, Running]) -> None:
        if (rates := self._rates()) is None:
            return
        for stage in self._plan.stages:
            if stage.open and stage.key not in self._opened and stage.system in running:
                self._opened.add(stage.key)
                most_per_s = self._best(stage.key)
                for per_s in rates:
                    self.rounds += await self._plan.rounds.open(stage, running[stage.system], per_s, most_per_s)

    def _rates(self) -> list[float] | None:
        """Null while what they are parts of is not known."""
        if self._plan.rates is not None:
            return list(self._plan.rates)
        ends = [stage.key for stage in self._plan.stages if stage.key in (BASELINE, RECOMMENDED)]
        bests = [self._best(key) for key in ends]
        if not all(bests):
            return None
        return sorted({round(part * best, 1 if part * best >= 1 else 3) for best in bests for part in _PARTS})

    def _best(self, key: str) -> float:
        return best_per_s(each for each in self.rounds if each.stage == key)


def _start(system: System, say: Say) -> AbstractAsyncContextManager[Running]:
    if system.architecture is None:
        return gateway(system.settings, say, name=system.name)
    return baseline(system.architecture, system.settings, say, name=system.name)

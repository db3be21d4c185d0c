"""The journey: systems are started in groups and measured one at a time.

Knows: the order. Must not know: how a round is played, what the results look like.

A system that cannot start, or cannot go on, is left out; so is what there is no time for. The recommended gateway
comes first and stays, idle, while the others change. It is measured in turn with the first
of them, one worker, so that what else happens on the machine falls on both; the rates of the open loop are parts
of what these two do at best.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager

from msgspec import Struct

from loadtest.baselines.architecture import baseline
from loadtest.commands import Say
from loadtest.interruption import INTERRUPTED, go_on
from loadtest.journey.rounds import Round, Rounds, best_per_s
from loadtest.journey.stages import BASELINE, RECOMMENDED, STAYS, Stage, System
from loadtest.results import LoadtestError
from loadtest.systems.gateway import gateway
from loadtest.systems.running import Running
from loadtest.systems.start import attempted, together

__all__ = ["Plan", "Played", "journey"]

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


class Played(Struct, frozen=True):
    """rounds: in the order of the stages. missing: key of a stage → why it was not measured, or not under all
    loads; one that has its measurements from another is as complete as that."""

    rounds: list[Round]
    missing: dict[str, str]


async def journey(plan: Plan) -> Played:
    """Every round that can be played, and that there is time for, until it is interrupted.

    Raises `CancelledError` when that is before the first round is over.
    """
    travelling = _Journey(plan)
    why = "There was no time for all of it (--time-limit-s)."
    try:
        async with asyncio.timeout(plan.time_limit_s):
            await travelling.go(list(plan.groups), {})
    except TimeoutError:
        pass
    except asyncio.CancelledError:
        if not travelling.rounds:
            raise
        go_on()
        why = INTERRUPTED
    order = [stage.key for stage in plan.stages]
    rounds = sorted(travelling.rounds, key=lambda each: order.index(each.stage))
    return Played(rounds, travelling.missing(why))


class _Journey:
    def __init__(self, plan: Plan) -> None:
        self.rounds: list[Round] = []
        self._plan = plan
        # Keys of the stages that were measured so, to the end.
        self._closed_keys: set[str] = set()
        self._opened: set[str] = set()
        # Keys of the stages that cannot go on, and why.
        self._failed: dict[str, str] = {}

    def missing(self, why: str) -> dict[str, str]:
        """As in `Played`. why: there is nothing of what did not fail."""
        missing: dict[str, str] = {}
        for stage in self._plan.stages:
            key = stage.same_as or stage.key
            opened = not stage.open or key in self._opened or self._rates() == []
            if key in self._failed:
                missing[stage.key] = self._failed[key]
            elif key not in self._closed_keys or not opened:
                missing[stage.key] = why
        return missing

    async def go(self, groups: Sequence[Sequence[System]], stays: Mapping[str, Running]) -> None:
        """Measure a group, and then those behind it."""
        if not groups:
            return
        group, *others = groups
        async with together(*(attempted(_start(system, self._plan.rounds.say)) for system in group)) as started:
            running = self._standing(group, started)
            if group[0].name == STAYS and others:
                await self.go(others, running)
                return
            await self._closed({**stays, **running})
            await self._open({**stays, **running})
        await self.go(others, stays)

    def _standing(self, group: Sequence[System], started: Sequence[Running | LoadtestError]) -> dict[str, Running]:
        """Those that could start, by name; the stages of the others have failed."""
        standing: dict[str, Running] = {}
        for system, each in zip(group, started, strict=True):
            if isinstance(each, LoadtestError):
                for stage in self._plan.stages:
                    if stage.system == system.name:
                        self._fails(stage, each)
            else:
                standing[system.name] = each
        return standing

    @contextmanager
    def _until_it_fails(self, stage: Stage) -> Iterator[None]:
        try:
            yield
        except LoadtestError as error:
            self._fails(stage, error)

    def _fails(self, stage: Stage, error: LoadtestError) -> None:
        self._failed[stage.key] = str(error)
        self._plan.rounds.say(f"going on without {stage.title}: {error}")

    async def _closed(self, running: Mapping[str, Running]) -> None:
        stages = [
            stage
            for stage in self._plan.stages
            if stage.system in running and not stage.same_as and stage.key not in self._closed_keys
        ]
        # Level by level, so that what drifts falls on all of them.
        for in_flight in self._plan.concurrency:
            for stage in stages:
                if stage.key not in self._failed:
                    with self._until_it_fails(stage):
                        await self._plan.rounds.closed(stage, running[stage.system], in_flight, self.rounds)
        self._closed_keys |= {stage.key for stage in stages}

    async def _open(self, running: Mapping[str, Running]) -> None:
        if (rates := self._rates()) is None:
            return
        for stage in self._plan.stages:
            if stage.open and stage.key not in {*self._opened, *self._failed} and stage.system in running:
                most_per_s = self._best(stage.key)
                with self._until_it_fails(stage):
                    for per_s in rates:
                        await self._plan.rounds.open(stage, running[stage.system], per_s, most_per_s, self.rounds)
                self._opened.add(stage.key)

    def _rates(self) -> list[float] | None:
        """Null while what they are parts of is not known; of two ends of which one failed, the other is enough."""
        if self._plan.rates is not None:
            return list(self._plan.rates)
        ends = [stage.key for stage in self._plan.stages if stage.key in (BASELINE, RECOMMENDED)]
        if not self._closed_keys.issuperset(key for key in ends if key not in self._failed):
            return None
        bests = [self._best(key) for key in ends if key not in self._failed]
        return sorted({round(part * best, 1 if part * best >= 1 else 3) for best in bests for part in _PARTS})

    def _best(self, key: str) -> float:
        return best_per_s(each for each in self.rounds if each.stage == key)


def _start(system: System, say: Say) -> AbstractAsyncContextManager[Running]:
    if system.architecture is None:
        return gateway(system.settings, say, name=system.name)
    return baseline(system.architecture, system.settings, say, name=system.name)

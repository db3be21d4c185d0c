"""The journey: systems are started in groups and measured one at a time.

Knows: the order. Must not know: how a round is played, what the results look like.

A system that cannot start, or cannot go on, is left out; so is what there is no time for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager

from msgspec import Struct

from loadtest.baselines.architecture import baseline
from loadtest.commands import Say
from loadtest.journey.rounds import Round, Rounds
from loadtest.journey.stages import Stage, System
from loadtest.results import LoadtestError, until_it_ends
from loadtest.systems.gateway import gateway
from loadtest.systems.running import Running, attempted, together


class Plan(Struct, frozen=True, kw_only=True):
    stages: Sequence[Stage]
    # Of systems that are started together.
    groups: Sequence[Sequence[System]]
    # Requests at a time, one level each.
    concurrency: Sequence[int]
    rounds: Rounds
    time_limit_s: float


class Played(Struct, frozen=True):
    # In the order of the stages.
    rounds: list[Round]
    # Key of a stage → why it was not measured, or not under all loads.
    missing: dict[str, str]


async def journey(plan: Plan) -> Played:
    """Every round that can be played, and that there is time for, until it is interrupted.

    Raises `CancelledError` when that is before the first round is over.
    """
    travelling = _Journey(plan)
    why = await until_it_ends(travelling.go(), plan.time_limit_s, lambda: bool(travelling.rounds))
    order = [stage.key for stage in plan.stages]
    missing = {key: travelling.failed.get(key, why) for key in order if key not in travelling.complete}
    return Played(sorted(travelling.rounds, key=lambda each: order.index(each.stage)), missing)


class _Journey:
    def __init__(self, plan: Plan) -> None:
        self.rounds: list[Round] = []
        # Keys of the stages that were measured under all loads.
        self.complete: set[str] = set()
        # Key of a stage that cannot go on → why.
        self.failed: dict[str, str] = {}
        self._plan = plan

    async def go(self) -> None:
        for group in self._plan.groups:
            async with together(*(attempted(_start(each, self._plan.rounds.say)) for each in group)) as started:
                running = self._standing(group, started)
                stages = [stage for stage in self._plan.stages if stage.system in running]
                await self._measure(stages, running)

    async def _measure(self, stages: Sequence[Stage], running: Mapping[str, Running]) -> None:
        rounds = self._plan.rounds
        # Level by level, so that what drifts falls on all of them.
        for in_flight in self._plan.concurrency:
            for stage in self._able(stages):
                with self._until_it_fails(stage):
                    await rounds.closed(stage, running[stage.system], in_flight, self.rounds)
        self.complete.update(stage.key for stage in self._able(stages))

    def _able(self, stages: Sequence[Stage]) -> Iterator[Stage]:
        return (stage for stage in stages if stage.key not in self.failed)

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
        self.failed[stage.key] = str(error)
        self._plan.rounds.say(f"going on without {stage.title}: {error}")


def _start(system: System, say: Say) -> AbstractAsyncContextManager[Running]:
    if system.architecture is None:
        return gateway(system.settings, say, name=system.name)
    return baseline(system.architecture, system.settings, say, name=system.name)

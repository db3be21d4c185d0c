"""The journey: the architectures of the reports in their order, and the systems that stand for them, which are
started in groups and measured one at a time, in rounds of so many requests at a time.

Knows: what the reports measured, the order, drivers, lines, how many of them a round needs. Must not know: what is
concluded.

A system that cannot start, or cannot go on, is left out; so is what there is no time for.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from loadtest.baselines.workers import ARCHITECTURES, baseline
from loadtest.driving.driver import Driver, driver
from loadtest.measuring import measure
from loadtest.options import Say, merged, with_batch, with_share
from loadtest.results import LoadtestError, until_it_ends
from loadtest.systems.gateway import gateway
from loadtest.systems.server import Running, attempted, get, metric, standing, together
from loadtest.talk.scenario import Scenario, Shape, request_lines
from loadtest.trial.summary import requests_per_s
from loadtest.trial.values import Closed, Http, Trial

_SEQUENCES = (64, 32, 16, 8)

BASELINE, RECOMMENDED = "one-worker", "recommended"


class Told(Struct, frozen=True):
    """What the reports measured at 25 requests at a time."""

    requests_per_s: float
    # Where, if not in the same test as the others.
    note: str = ""


class System(Struct, frozen=True):
    """What is started for one stage, or for two."""

    name: str
    # A baseline's; None for the gateway.
    architecture: str | None
    # A gateway's, sections nested.
    settings: dict[str, Any]

    @property
    def engines(self) -> int:
        return 2 if self.architecture == "two-workers" else 1


class Stage(Struct, frozen=True):
    """One row of the table."""

    # In options and results.
    key: str
    title: str
    # The name of its system.
    system: str
    shape: Shape = "natural"
    told: Told | None = None


_TOLD = {
    "one-worker": Told(2.2),
    "two-workers": Told(2.0),
    "static-batching": Told(5.9),
    "gateway-64-uniform": Told(15.0, "uniform test data"),
    "gateway-64": Told(3.5, "staging"),
    "gateway-16": Told(10.7, "staging"),
    RECOMMENDED: Told(16.4, "production, 9 before"),
}


def stages(
    settings: Mapping[str, Any], recommended: Mapping[str, Any], only: Sequence[str] = ()
) -> tuple[list[Stage], list[System]]:
    """All rows, and the systems that they need, each once. only: keys of the rows that are wanted; empty: all.

    settings: what every system has. recommended: what the last gateway has besides. Raises `LoadtestError` for a
    key that does not exist.
    """
    made = {name: System(name.replace("-", " "), name, dict(settings)) for name in ARCHITECTURES}
    for count in _SEQUENCES:
        made[f"gateway-{count}"] = System(f"gateway, {count} sequences", None, with_batch(settings, count))
    made[RECOMMENDED] = System("gateway, recommended", None, merged(settings, recommended))
    keys = list(made)
    keys.insert(keys.index("gateway-64"), "gateway-64-uniform")
    if unknown := [key for key in only if key not in keys]:
        raise LoadtestError(f"There is no stage {unknown[0]!r}; there are {', '.join(keys)}.")
    rows: list[Stage] = []
    systems: dict[str, System] = {}
    for key in (key for key in keys if not only or key in only):
        uniform = key.endswith("-uniform")
        system = made[key.removesuffix("-uniform")]
        title = system.name + (", uniform data" if uniform else "")
        shape: Shape = "uniform" if uniform else "natural"
        rows.append(Stage(key, title, system.name, shape, _TOLD.get(key)))
        systems[system.name] = system
    return rows, list(systems.values())


def groups(systems: Sequence[System], gpu_mib: float | None) -> list[list[System]]:
    """Systems that run at the same time, each engine with the same share of a GPU's memory.

    First one worker and the recommended gateway: what else happens on the machine falls on both. The others one by
    one.
    """
    first = [system for system in systems if system.architecture == BASELINE or system.name.endswith(RECOMMENDED)]
    others = [system for system in systems if system not in first]
    made = [*filter(None, [first]), *([system] for system in others)]
    engines = max(sum(system.engines for system in group) for group in made)
    return [
        [System(each.name, each.architecture, with_share(each.settings, engines, gpu_mib)) for each in group]
        for group in made
    ]


# ---------------------------------------------------------------- how rounds are played


# No two levels or repetitions say the same, and none what was said while warming up.
_WARM_UP_SEED, _SEEDS_APART = 900_000, 1_000

_LEAST_WARM_UP = 4

# The part of a round that a warm-up takes.
_WARM_UP_PART = 0.2

# A round is never shorter than so many for each one that is in flight. At its end fewer and fewer are: to a queue
# in front of a worker that makes no difference, to a batch it does.
_LEAST_TURNS_QUEUED, _LEAST_TURNS = 2, 8

# Beyond which what is not done has failed.
_LIMIT_TIMES, _LIMIT_S = 4.0, 30.0


# What the systems call the time in their own queues and in the engine's, and the time altogether.
_QUEUES_S = ("gateway_queue_seconds_sum", "vllm:request_queue_time_seconds_sum", "baseline_queue_seconds_total")
_TOTALS_S = ("gateway_translation_seconds_sum", "baseline_response_seconds_total")


class Round(Struct, frozen=True):
    stage: str
    trial: Trial
    # What part of the time its translations spent in queues; None where that is not told.
    queued: float | None

    # Requests at a time.
    in_flight: int


class Rounds(Struct, frozen=True, kw_only=True):
    """How rounds are played. scenario: its shape is the stage's. round_s: about how long one takes, seconds."""

    scenario: Scenario
    round_s: float
    repetitions: int
    processes: int
    say: Say

    async def closed(self, stage: Stage, running: Running, in_flight: int, played: list[Round]) -> None:
        """All repetitions with so many requests at a time, after a short one that is not kept.

        Each is added to `played` once it is over, so that it is there whatever becomes of the next. Raises
        `LoadtestError`.
        """
        load = Closed(in_flight)
        async with driver(running.address, load, processes=self.processes, say=self.say) as playing:
            per_s = await self._warm_up(stage, playing, in_flight)
            turns = _LEAST_TURNS_QUEUED if isinstance(running.address, Http) else _LEAST_TURNS
            for repetition in range(1, self.repetitions + 1):
                # What the last ones take is no part of the round.
                count = max(math.ceil(per_s * self.round_s), turns * in_flight) + in_flight
                lines = request_lines(self._scenario(stage, in_flight + repetition * _SEEDS_APART), count)
                queued = await asyncio.to_thread(_queued, running.metrics_url)
                trial = await measure(
                    running,
                    playing,
                    lines,
                    load,
                    name=f"{stage.title}: {in_flight} at a time",
                    repetition=repetition,
                    workload=f"{stage.shape} data",
                    say=self.say,
                    limit_s=_LIMIT_TIMES * max(self.round_s, count / per_s) + _LIMIT_S,
                    allow_bottleneck=True,
                )
                queued_then = await asyncio.to_thread(_queued, running.metrics_url)
                played.append(Round(stage.key, trial, share_in_queues(queued, queued_then), in_flight))
                per_s = max(requests_per_s(trial), per_s / 2)

    async def _warm_up(self, stage: Stage, playing: Driver, in_flight: int) -> float:
        """How many it translates a second with so many at a time, roughly.

        A pass that is over at once tells little of that: most of it is its end, where fewer and fewer are in
        flight. Then there is a longer one.
        """
        scenario = self._scenario(stage, _WARM_UP_SEED + in_flight)
        count, said, per_s = max(in_flight, _LEAST_WARM_UP), 0, 0.0
        for _ in range(2):
            lines = request_lines(scenario, said + count)[said:]
            title = f"{stage.title}: {in_flight} at a time, warming up"
            driven = await playing.play(lines, limit_s=_LIMIT_TIMES * self.round_s + _LIMIT_S, stage=title)
            per_s = max(sum(each.done_s is not None for each in driven.records), 1) / max(driven.elapsed_s, 0.001)
            if driven.elapsed_s > _WARM_UP_PART * self.round_s:
                break
            said, count = said + count, math.ceil(2 * _WARM_UP_PART * self.round_s * per_s)
        return per_s

    def _scenario(self, stage: Stage, seed: int) -> Scenario:
        return replace(self.scenario, shape=stage.shape, seed=self.scenario.seed + seed)


def _queued(metrics_url: str | None) -> tuple[float, float]:
    """Seconds in queues and altogether, of all translations so far; zeros where it is not told. Blocks."""
    text = get(metrics_url)[1] if metrics_url is not None else ""
    queues_s, totals_s = (sum(metric(text, name) or 0.0 for name in names) for names in (_QUEUES_S, _TOTALS_S))
    return queues_s, totals_s


def share_in_queues(before: tuple[float, float], after: tuple[float, float]) -> float | None:
    """Part of the time between two readings that went by in queues; None when nothing was translated."""
    total_s = after[1] - before[1]
    return round((after[0] - before[0]) / total_s, 4) if total_s > 0 else None


# ---------------------------------------------------------------- the journey


class Plan(Struct, frozen=True, kw_only=True):
    stages: Sequence[Stage]
    # Systems that are started together.
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
                running = standing([each.name for each in group], started, self._cannot_start)
                stages = [stage for stage in self._plan.stages if stage.system in running]
                await self._measure(stages, running)

    async def _measure(self, stages: Sequence[Stage], running: Mapping[str, Running]) -> None:
        rounds = self._plan.rounds
        # Level by level, so that what drifts falls on all of them.
        for in_flight in self._plan.concurrency:
            for stage in self._able(stages):
                try:
                    await rounds.closed(stage, running[stage.system], in_flight, self.rounds)
                except LoadtestError as error:
                    self._fails(stage, str(error))
        self.complete.update(stage.key for stage in self._able(stages))

    def _able(self, stages: Sequence[Stage]) -> Iterator[Stage]:
        return (stage for stage in stages if stage.key not in self.failed)

    def _cannot_start(self, system: str, why: str) -> None:
        for stage in self._plan.stages:
            if stage.system == system:
                self._fails(stage, why)

    def _fails(self, stage: Stage, why: str) -> None:
        self.failed[stage.key] = why
        self._plan.rounds.say(f"going on without {stage.title}: {why}")


def _start(system: System, say: Say) -> AbstractAsyncContextManager[Running]:
    if system.architecture is None:
        return gateway(system.settings, say, name=system.name)
    return baseline(system.architecture, system.settings, say, name=system.name)

"""`python -m loadtest direct`: the same utterances through the WebSocket and straight into the engine, in one run.

Knows: the order of rounds, how one is measured on either route. Must not know: how results look (`report`).

One process holds the gateway with its engine. Direct rounds call `Engine.generate` in it; WebSocket rounds come
from a client process. Closed loop: so many utterances are always in flight, the next is sent when one is done.
The routes take turns as direct, WebSocket, WebSocket, direct, …, so that what drifts falls on both.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from gateway.config import BUNDLED_MODEL, EngineSettings, Settings
from gateway.errors import GatewayError
from gateway.events import TranslationRequest
from gateway.ports import Engine
from loadtest.machine import Machine, describe, read_cpu
from loadtest.results import (
    LoadtestError,
    Outcome,
    Round,
    Route,
    RouteSummary,
    Spread,
    first_error,
    ratios,
    summarise,
)
from loadtest.serving import engine_dtype, serving
from loadtest.speakers import Speakers, speakers
from loadtest.workload import Lengths, Utterance, Workload, lengths, utterances

__all__ = ["DirectResult", "Level", "Plan", "measure", "summarise_levels"]

# Utterances a round has for each one in flight at least, so that its end, where fewer and fewer are in flight,
# stays a small part of it.
_ROUNDS_OF_SPEAKERS = 16

# Cores that others may use in a quiet moment.
_QUIET_CORES = 0.1

# The list that warms up must not be the one that is measured.
_WARM_UP_SEED_STEP = 1_000_003


class Plan(Struct, frozen=True, kw_only=True):
    """What to run.

    in_flight: utterances in flight, one level each. utterances: in a round, or 16 for each one in flight where
    that is more. repetitions: rounds of each route and level. quiet_wait_s: patience before each round with
    other processes that use the CPU, seconds; it begins anyway after that. round_limit_s, time_limit_s: bounds of
    one round and of everything, seconds.
    """

    engine: Literal["vllm", "simulated"] = "vllm"
    model: str | None = None
    max_num_seqs: int = 16
    dtype: str = "auto"
    in_flight: tuple[int, ...] = (1, 4, 16)
    utterances: int = 64
    repetitions: int = 4
    workload: Workload = Workload(seed=1, source="en", target="de")
    quiet_wait_s: float = 0.0
    round_limit_s: float = 300.0
    time_limit_s: float = 1_500.0


class Level(Struct, frozen=True):
    """One number in flight, both routes.

    tokens_ratio: tokens/s through the WebSocket over tokens/s directly, of neighbouring rounds.
    same_text: part of the utterances whose translation was the same on both routes.
    """

    in_flight: int
    lengths: Lengths
    tokens_per_utterance: float
    direct: RouteSummary
    websocket: RouteSummary
    tokens_ratio: Spread
    same_text: float


class DirectResult(Struct, frozen=True):
    """Everything that `result.json` holds. dtype: as the engine was told."""

    command: str
    began: str
    model: str
    dtype: str
    plan: Plan
    machine: Machine
    levels: list[Level]
    rounds: list[Round]


async def measure(plan: Plan, command: str, say: Callable[[str], object]) -> DirectResult:
    """Run the plan. `say` is told what is going on, one short line at a time. Raises `LoadtestError`."""
    machine = describe()
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    said = {level: utterances(plan.workload, _count(plan, level)) for level in plan.in_flight}
    rounds: list[Round] = []
    same_text: dict[int, float] = {}
    settings = _settings(plan)
    try:
        async with asyncio.timeout(plan.time_limit_s), serving(settings, say) as (gateway, url):
            profile = gateway.engine.profile()
            for level in plan.in_flight:
                async with speakers(url, level, plan.workload.source, plan.workload.target) as crowd:
                    runner = _Runner(plan, level, gateway.engine, crowd, say)
                    fresh, same = await runner.run(said[level])
                    rounds += fresh
                    same_text[level] = same
    except TimeoutError:
        raise LoadtestError("The load test took longer than its time limit allows.") from None
    except ExceptionGroup as errors:
        # The server's task group wraps what its block raises.
        raise first_error(errors) from None
    return DirectResult(
        command=command,
        began=began,
        model=profile.model,
        dtype=engine_dtype(settings),
        plan=_without_paths(plan),
        machine=machine,
        levels=summarise_levels(rounds, said, same_text),
        rounds=rounds,
    )


def summarise_levels(
    rounds: Sequence[Round], said: dict[int, list[Utterance]], same_text: dict[int, float]
) -> list[Level]:
    """One entry for each number in flight, in the order of `said`."""
    levels: list[Level] = []
    for in_flight, texts in said.items():
        here = [each for each in rounds if each.in_flight == in_flight]
        direct = [each for each in here if each.route is Route.DIRECT]
        websocket = [each for each in here if each.route is Route.WEBSOCKET]
        tokens = sum(each.tokens for each in here) / max(sum(each.utterances - each.failed for each in here), 1)
        levels.append(
            Level(
                in_flight=in_flight,
                lengths=lengths(texts),
                tokens_per_utterance=round(tokens, 1),
                direct=summarise(direct),
                websocket=summarise(websocket),
                tokens_ratio=ratios(direct, websocket),
                same_text=round(same_text[in_flight], 4),
            )
        )
    return levels


class _Runner:
    """All rounds at one number in flight."""

    def __init__(
        self, plan: Plan, in_flight: int, engine: Engine, crowd: Speakers, say: Callable[[str], object]
    ) -> None:
        self._plan = plan
        self._in_flight = in_flight
        self._engine = engine
        self._crowd = crowd
        self._say = say
        self._done = 0
        self._serial = itertools.count()

    async def run(self, said: list[Utterance]) -> tuple[list[Round], float]:
        """The measured rounds, and the part of the utterances that both routes translated in the same words."""
        workload = self._plan.workload
        other = Workload(workload.seed + _WARM_UP_SEED_STEP, workload.source, workload.target)
        warm_up = utterances(other, max(2 * self._in_flight, 8))
        for route in Route:
            await self._round(route, 0, warm_up)
        rounds: list[Round] = []
        texts: dict[Route, dict[str, str]] = {}
        for repetition in range(1, self._plan.repetitions + 1):
            order = list(Route) if repetition % 2 else list(reversed(Route))
            for route in order:
                measured, outcomes = await self._round(route, repetition, said)
                rounds.append(measured)
                texts.setdefault(route, {each.id: each.text.strip() for each in outcomes})
        same = sum(texts[Route.DIRECT][each.id] == texts[Route.WEBSOCKET][each.id] for each in said)
        return rounds, same / len(said)

    async def _round(self, route: Route, repetition: int, said: list[Utterance]) -> tuple[Round, list[Outcome]]:
        self._done = self._crowd.done = 0
        title = f"{self._in_flight} in flight, {route.value}, "
        title += f"repetition {repetition} of {self._plan.repetitions}" if repetition else "warming up"
        await self._quiet(title)
        before = read_cpu()
        try:
            async with asyncio.timeout(self._plan.round_limit_s), asyncio.TaskGroup() as tasks:
                showing = tasks.create_task(self._show(title, len(said)))
                if route is Route.DIRECT:
                    elapsed_s, outcomes = await self._play(said)
                    client_cpu_s = 0.0
                else:
                    played = await self._crowd.play(said)
                    elapsed_s, outcomes, client_cpu_s = played.elapsed_s, played.outcomes, played.cpu_s
                used = read_cpu().since(before)
                showing.cancel()
        except TimeoutError:
            raise LoadtestError(f"A round did not end within {self._plan.round_limit_s:g} s ({title}).") from None
        translated = [each for each in outcomes if each.failed is None]
        if not translated:
            raise LoadtestError(f"No utterance was translated: {outcomes[0].failed} ({title}).")
        return Round(
            route=route,
            in_flight=self._in_flight,
            repetition=repetition,
            elapsed_s=round(elapsed_s, 4),
            utterances=len(outcomes),
            failed=len(outcomes) - len(translated),
            tokens=sum(each.tokens for each in translated),
            serving_cpu_s=round(used.serving_s, 4),
            engine_cpu_s=round(max(used.below_s - client_cpu_s, 0.0), 2),
            client_cpu_s=round(client_cpu_s, 4),
            other_cpu_s=round(max(used.everything_s - used.serving_s - used.below_s, 0.0), 2),
            first_token_ms=[round(ms, 2) for each in translated if (ms := each.first_token_ms) is not None],
            total_ms=[round(each.total_ms, 2) for each in translated],
        ), outcomes

    async def _quiet(self, title: str) -> None:
        """Wait for a second in which other processes let the CPU alone, within the plan's patience."""
        until_s = time.monotonic() + self._plan.quiet_wait_s
        while time.monotonic() < until_s:
            before, began_s = read_cpu(), time.monotonic()
            await asyncio.sleep(1)
            used = read_cpu().since(before)
            other_s = used.everything_s - used.serving_s - used.below_s
            if other_s < _QUIET_CORES * (time.monotonic() - began_s):
                return
            self._say(f"{title}: waiting for other processes to leave the CPU alone")

    async def _show(self, title: str, count: int) -> None:
        while True:
            self._say(f"{title}: {max(self._done, self._crowd.done)} of {count} utterances")
            await asyncio.sleep(1)

    # ------------------------------------------------------------ the direct route

    async def _play(self, said: list[Utterance]) -> tuple[float, list[Outcome]]:
        outcomes: list[Outcome] = []
        left = iter(said)
        began_s = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._in_flight):
                tasks.create_task(self._generate(left, outcomes))
        return time.perf_counter() - began_s, outcomes

    async def _generate(self, left: Iterator[Utterance], outcomes: list[Outcome]) -> None:
        for utterance in left:
            outcomes.append(await self._generate_one(utterance))
            self._done = len(outcomes)

    async def _generate_one(self, utterance: Utterance) -> Outcome:
        request = TranslationRequest(
            id=f"direct-{self._in_flight}-{next(self._serial)}",
            text=utterance.text,
            source=utterance.source,
            target=utterance.target,
        )
        text: list[str] = []
        tokens = 0
        first_token_ms: float | None = None
        began_s = time.perf_counter()
        try:
            async with aclosing(self._engine.generate(request)) as events:
                async for event in events:
                    tokens += event.tokens
                    text.append(event.text)
                    # The gateway sends nothing before there is something to read.
                    if first_token_ms is None and event.text.lstrip():
                        first_token_ms = (time.perf_counter() - began_s) * 1000
        except GatewayError as error:
            total_ms = (time.perf_counter() - began_s) * 1000
            return Outcome(utterance.id, first_token_ms, total_ms, 0, failed=error.code)
        return Outcome(utterance.id, first_token_ms, (time.perf_counter() - began_s) * 1000, tokens, "".join(text))


def _count(plan: Plan, in_flight: int) -> int:
    return max(plan.utterances, _ROUNDS_OF_SPEAKERS * in_flight)


def _settings(plan: Plan) -> Settings:
    engine = EngineSettings(
        kind=plan.engine,
        model=str(BUNDLED_MODEL) if plan.model is None else plan.model,
        max_num_seqs=plan.max_num_seqs,
        dtype=plan.dtype,
        # Every repetition says the same; with the cache, all but the first would cost less than fresh speech does.
        extra={"enable_prefix_caching": False},
    )
    return Settings(engine=engine)


def _without_paths(plan: Plan) -> Plan:
    return replace(plan, model=None if plan.model is None else plan.model.rstrip("/").rpartition("/")[2])

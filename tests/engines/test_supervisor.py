"""An engine that dies or hangs is replaced, and what waited for it learns that at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from gateway import metrics
from gateway.domain.engine import EngineHealth, EngineState, OnEvent, TokenEvent, TranslationRequest
from gateway.domain.errors import EngineFailed, EngineRestarting, EngineUnavailable, StartupError
from gateway.engines import supervisor
from gateway.engines.simulated import Rule, Script, SimulatedEngine, simulated_engines
from gateway.engines.supervisor import RestartPolicy, Supervisor
from gateway.translation.scheduling.scheduler import Scheduler, Throttle
from tests.clocks import swiftly
from tests.generations import events_of
from tests.usual import usual

READY, RESTARTING, FAILED, STOPPED = (
    EngineState.READY,
    EngineState.RESTARTING,
    EngineState.FAILED,
    EngineState.STOPPED,
)
FAST = Script(first_token_s=0, token_s=0)
# Says the first word and then nothing more.
SILENT = Script(first_token_s=0, token_s=0, rules=(Rule(match="hush", stall_after=1),))


class Workshop:
    """Makes the engines for a supervisor, and keeps them; writes down every state that is told."""

    def __init__(self, *scripts: Script, build: Callable[[], SimulatedEngine] | None = None) -> None:
        self.engines: list[SimulatedEngine] = []
        self.stopped: list[SimulatedEngine] = []
        self.told: list[EngineHealth] = []
        self.telling = asyncio.Event()
        self.broken = 0
        self._scripts = scripts
        self._build = build

    def build(self) -> SimulatedEngine:
        if self.broken:
            self.broken -= 1
            raise StartupError("The model is gone.")
        if self._build is not None:
            engine = self._build()
        else:
            engine = SimulatedEngine(self._scripts[min(len(self.engines), len(self._scripts) - 1)])
        self.engines.append(engine)
        return engine

    def tell(self, health: EngineHealth) -> None:
        self.told.append(health)
        self.telling.set()

    @property
    def states(self) -> list[EngineState]:
        return [health.state for health in self.told]

    async def until(self, *states: EngineState) -> None:
        """Wait until these states were told, one after the other, and nothing else."""
        while self.states != list(states):
            assert len(self.states) < len(states), self.told
            self.telling.clear()
            await self.telling.wait()

    @asynccontextmanager
    async def supervised(
        self, *, stall_s: float = 60.0, max_restarts: int = 5, backoff_s: float = 0.0, backoff_max_s: float = 0.001
    ) -> AsyncIterator[Supervisor]:
        policy = usual(
            RestartPolicy,
            stall_s=stall_s,
            max_restarts=max_restarts,
            restart_backoff_s=backoff_s,
            restart_backoff_max_s=backoff_max_s,
        )
        engine = usual(Supervisor, self.build, policy, on_change=self.tell)
        await engine.start()
        try:
            yield engine
        finally:
            await engine.stop()


@asynccontextmanager
async def supervised(
    *scripts: Script, build: Callable[[], SimulatedEngine] | None = None, **policy: Any
) -> AsyncIterator[tuple[Workshop, Supervisor]]:
    workshop = Workshop(*scripts, build=build)
    async with workshop.supervised(**policy) as engine:
        yield workshop, engine


def request(text: str, request_id: str = "r") -> TranslationRequest:
    return TranslationRequest(id=request_id, text=text, source="en", target="de")


async def generate(engine: Supervisor, text: str) -> str:
    given: list[TokenEvent] = []
    await engine.generate(request(text), given.append)
    return "".join(event.text for event in given)


async def test_it_passes_on_what_the_engine_says() -> None:
    async with supervised(FAST) as (workshop, engine):
        assert engine.health() == EngineHealth(READY)
        assert await generate(engine, "one two") == "[de] one two"
        assert engine.profile() == workshop.engines[0].profile()
        assert engine.capacity() == workshop.engines[0].capacity()
    await workshop.until(READY, STOPPED)
    assert workshop.engines[0].health().state is STOPPED
    with pytest.raises(EngineUnavailable):
        await generate(engine, "more")


async def test_before_start_it_takes_nothing() -> None:
    engine = usual(Supervisor, Workshop(FAST).build)
    assert engine.health().state is EngineState.STARTING
    assert engine.capacity().max_running == 0
    with pytest.raises(EngineUnavailable):
        engine.profile()
    with pytest.raises(EngineUnavailable):
        await generate(engine, "early")
    await engine.stop()
    assert engine.health().state is STOPPED


async def test_failed_first_start_is_raised() -> None:
    class Unstartable(SimulatedEngine):
        async def start(self) -> None:
            raise StartupError("There is no model.")

    workshop = Workshop(build=Unstartable)
    engine = usual(Supervisor, workshop.build, on_change=workshop.tell)
    with pytest.raises(StartupError, match="There is no model"):
        await engine.start()
    assert engine.health() == EngineHealth(FAILED, "There is no model")
    await engine.stop()
    assert (workshop.states, len(workshop.engines)) == ([FAILED, STOPPED], 1)


async def test_a_dead_engine_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    workshop = Workshop(Script(token_s=60), FAST)
    restarts = metrics.ENGINE_RESTARTS.labels("default", "crash")._value.get()
    async with workshop.supervised() as engine:
        profile = engine.profile()
        running = [asyncio.create_task(generate(engine, f"text {n}")) for n in range(3)]
        while engine.capacity().running < 3:
            await asyncio.sleep(0)
        workshop.engines[0].fail("killed")
        assert engine.health().state is RESTARTING
        for outcome in await asyncio.gather(*running, return_exceptions=True):
            assert isinstance(outcome, EngineUnavailable)
        # The first generation that broke said so; nobody waited for the next look.
        assert workshop.states == [READY, RESTARTING]
        assert "killed" in caplog.text
        assert workshop.told[1].reason == "The engine died and is being started again."
        with pytest.raises(EngineRestarting):
            await generate(engine, "meanwhile")
        assert engine.profile() == profile
        assert engine.capacity().max_running == 16
        await workshop.until(READY, RESTARTING, READY)
        assert await generate(engine, "again") == "[de] again"
        assert workshop.engines[0].health().state is STOPPED
    assert metrics.ENGINE_RESTARTS.labels("default", "crash")._value.get() == restarts + 1
    assert len(workshop.engines) == 2


@swiftly
async def test_an_idle_engine_that_dies_is_replaced() -> None:
    async with supervised(FAST, stall_s=0.01) as (workshop, engine):
        workshop.engines[0].fail("killed")
        await workshop.until(READY, RESTARTING, READY)
        assert await generate(engine, "again") == "[de] again"


@swiftly
async def test_silent_engine_is_replaced() -> None:
    async with supervised(SILENT, FAST, stall_s=0.02) as (workshop, engine):
        with pytest.raises(EngineUnavailable):
            await generate(engine, "hush now")
        await workshop.until(READY, RESTARTING, READY)
        assert workshop.told[1].reason == "The engine hung and is being started again."
        assert await generate(engine, "hush now") == "[de] hush now"


@swiftly
async def test_one_slow_generation_is_not_a_stall() -> None:
    async with supervised(replace(SILENT, token_s=0.01), stall_s=0.2) as (workshop, engine):
        silent = asyncio.create_task(generate(engine, "hush now"))
        loop = asyncio.get_running_loop()
        until_s = loop.time() + 0.5
        while loop.time() < until_s:
            assert await generate(engine, "some words") == "[de] some words"
        assert workshop.states == [READY]
        silent.cancel()
        await asyncio.wait([silent])
        assert silent.cancelled()


@swiftly
async def test_those_who_come_and_go_hide_no_stall() -> None:
    mute = replace(FAST, rules=(Rule(match="hush", stall_after=0),))
    async with supervised(mute, FAST, stall_s=2) as (workshop, engine):

        async def come_and_go() -> None:
            while workshop.states == [READY]:
                coming = asyncio.create_task(generate(engine, "hush now"))
                await asyncio.sleep(0.3)
                coming.cancel()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(come_and_go())
            with pytest.raises(EngineUnavailable):
                await generate(engine, "hush now")
        await workshop.until(READY, RESTARTING, READY)


@swiftly
async def test_to_be_given_up_at_once_is_not_a_stall() -> None:
    async with supervised(Script(first_token_s=0.5), stall_s=2) as (workshop, engine):
        for _ in range(20):
            given_up = asyncio.create_task(generate(engine, "never mind"))
            await asyncio.sleep(0.3)
            given_up.cancel()
        assert workshop.states == [READY]


@swiftly
async def test_late_end_of_old_generation_spares_new_engine() -> None:
    class Slow(SimulatedEngine):
        async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
            try:
                await super().generate(request, on_event)
            finally:
                await replaced.wait()

    replaced = asyncio.Event()
    async with supervised(build=lambda: Slow(Script(token_s=60))) as (workshop, engine):
        late = asyncio.create_task(generate(engine, "one two three"))
        await asyncio.sleep(1)
        engine._died("crash", "killed")
        await workshop.until(READY, RESTARTING, READY)
        replaced.set()
        with pytest.raises(EngineUnavailable):
            await late
        await asyncio.sleep(1)
        assert workshop.states == [READY, RESTARTING, READY]


async def test_death_ends_generations_and_spares_new_engine() -> None:
    async with supervised(Script(token_s=60), FAST) as (workshop, engine):
        generation = events_of(engine, request("one two three"))
        await anext(generation)
        workshop.engines[0].fail("killed")
        with pytest.raises(EngineUnavailable):
            await anext(generation)
        await workshop.until(READY, RESTARTING, READY)
        left = events_of(workshop.engines[0], request("one"))
        with pytest.raises(EngineUnavailable):
            await anext(left)
        assert workshop.states == [READY, RESTARTING, READY]


@swiftly
async def test_one_long_text_is_not_a_stall() -> None:
    # Several looks at the engine fall between two tokens.
    async with supervised(Script(first_token_s=0, token_s=0.6), stall_s=1.2) as (workshop, engine):
        assert await generate(engine, "word " * 6)
        assert workshop.states == [READY]


class Sticky(SimulatedEngine):
    """Knows nothing of its own generations, and takes for ever to stop, the first time."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.stopping = asyncio.Event()

    async def stop(self) -> None:
        if not self.stopping.is_set():
            self.stopping.set()
            await asyncio.Event().wait()
        await super().stop()


async def test_stall_wakes_waiters_before_stop() -> None:
    engines: list[Sticky] = []

    def build() -> Sticky:
        engines.append(Sticky(SILENT))
        return engines[-1]

    async with supervised(build=build, stall_s=0.02) as (workshop, engine):
        with pytest.raises(EngineUnavailable, match="started again"):
            await generate(engine, "hush now")
        await engines[0].stopping.wait()
        assert workshop.states == [READY, RESTARTING]


async def test_stop_wakes_waiters_before_engine_stops() -> None:
    sticky = Sticky(SILENT)
    engine = usual(Supervisor, lambda: sticky)
    await engine.start()
    waiting = asyncio.create_task(generate(engine, "hush now"))
    while not engine.capacity().running:
        await asyncio.sleep(0)
    stopping = asyncio.create_task(engine.stop())
    with pytest.raises(EngineUnavailable, match="was stopped"):
        await waiting
    await sticky.stopping.wait()
    assert sticky.health().state is READY
    stopping.cancel()
    await asyncio.wait([stopping])
    await engine.stop()


async def test_failed_text_is_not_a_crash() -> None:
    script = Script(first_token_s=0, token_s=0, rules=(Rule(match="bad", fail_after=0),))
    async with supervised(script) as (workshop, engine):
        with pytest.raises(EngineFailed):
            await generate(engine, "bad")
        assert await generate(engine, "good") == "[de] good"
        assert workshop.states == [READY]


async def test_cancellation_during_death_stays_a_cancellation() -> None:
    async with supervised(Script(first_token_s=60)) as (workshop, engine):
        task = asyncio.create_task(generate(engine, "x"))
        while not engine.capacity().running:
            await asyncio.sleep(0)
        workshop.engines[0].fail("killed")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


async def test_start_is_tried_until_one_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    workshop = Workshop(FAST)
    failures = metrics.ENGINE_START_FAILURES.labels("default")._value.get()
    async with workshop.supervised(max_restarts=3) as engine:
        workshop.broken = 2
        workshop.engines[0].fail("killed")
        await workshop.until(READY, RESTARTING, READY)
        assert caplog.text.count("The model is gone") == 2
        assert await generate(engine, "again") == "[de] again"
    assert metrics.ENGINE_START_FAILURES.labels("default")._value.get() == failures + 2


async def test_many_failures_are_reported_and_start_is_still_tried() -> None:
    async with supervised(FAST, max_restarts=2) as (workshop, engine):
        workshop.broken = 4
        workshop.engines[0].fail("killed")
        await workshop.until(READY, RESTARTING, FAILED)
        assert "failed 3 times in a row" in workshop.told[2].reason
        with pytest.raises(EngineUnavailable):
            await generate(engine, "meanwhile")
        await workshop.until(READY, RESTARTING, FAILED, READY)
        assert await generate(engine, "again") == "[de] again"
        # It had not been ready for long.
        workshop.engines[-1].fail("killed")
        await workshop.until(READY, RESTARTING, FAILED, READY, FAILED, READY)


async def test_an_engine_that_was_steady_begins_a_new_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STEADY_S", 0.0)
    workshop = Workshop(FAST)
    async with workshop.supervised(max_restarts=1):
        expected = [READY]
        for _ in range(3):
            workshop.engines[-1].fail("killed")
            expected += [RESTARTING, READY]
            await workshop.until(*expected)


async def test_pauses_double_with_jitter_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []

    def uniform(low: float, high: float) -> float:
        drawn.append(high)
        return low

    monkeypatch.setattr("gateway.engines.supervisor.random.uniform", uniform)
    async with supervised(FAST, backoff_s=1.0, backoff_max_s=5.0) as (workshop, engine):
        workshop.broken = 4
        workshop.engines[0].fail("killed")
        await workshop.until(READY, RESTARTING, READY)
        assert drawn == [1.0, 2.0, 4.0, 5.0, 5.0]
        assert engine.health().state is READY


@swiftly
async def test_a_start_that_hangs_counts_as_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "_START_LEAST_S", 0.01)
    monkeypatch.setattr(supervisor, "_START_FACTOR", 0.0)
    workshop = Workshop(FAST, Script(load_s=3_600), FAST)
    async with workshop.supervised():
        workshop.engines[0].fail("killed")
        await workshop.until(READY, RESTARTING, READY)
        assert "took too long" in caplog.text
        assert workshop.engines[1].health().state is STOPPED


async def test_a_listener_that_breaks_does_not_stop_the_supervision() -> None:
    async with supervised(FAST) as (workshop, engine):

        def broken(health: EngineHealth) -> None:
            workshop.tell(health)
            raise RuntimeError("a bug")

        engine.on_change = broken
        workshop.engines[0].fail("killed")
        await workshop.until(READY, RESTARTING, READY)


@pytest.mark.parametrize("stage", ["back-off", "building", "stopping", "ready", "failed"])
async def test_it_stops_at_any_moment(stage: str) -> None:
    class Slow(SimulatedEngine):
        """Takes its time to stop, once."""

        stops = 0

        async def stop(self) -> None:
            await super().stop()
            self.stops += 1
            if stage == "stopping" and self.stops == 1:
                stopping.set()
                await asyncio.Event().wait()

    stopping = asyncio.Event()
    scripts = iter([FAST, Script(load_s=3_600)])
    workshop = Workshop(build=lambda: Slow(next(scripts)))
    wait_s = 3_600.0 if stage in {"back-off", "failed"} else 0.0
    policy = usual(
        RestartPolicy,
        restart_backoff_s=wait_s * 10,
        restart_backoff_max_s=wait_s * 10,
        max_restarts=0 if stage == "failed" else 5,
    )
    engine = usual(Supervisor, workshop.build, policy, on_change=workshop.tell)
    await engine.start()
    if stage != "ready":
        workshop.engines[0].fail("killed")
        await workshop.until(READY, FAILED if stage == "failed" else RESTARTING)
    if stage == "building":
        while len(workshop.engines) < 2:
            await asyncio.sleep(0)
    elif stage == "stopping":
        await stopping.wait()
    await engine.stop()
    await engine.stop()
    assert workshop.states[-1] is STOPPED
    assert [engine.health().state for engine in workshop.engines] == [STOPPED] * len(workshop.engines)
    assert len(asyncio.all_tasks()) == 1


async def test_it_stops_while_the_first_engine_starts() -> None:
    workshop = Workshop(Script(load_s=3_600))
    engine = usual(Supervisor, workshop.build, on_change=workshop.tell)
    starting = asyncio.create_task(engine.start())
    while not workshop.engines:
        await asyncio.sleep(0)
    assert engine.health().reason == "the simulated engine is loading"
    starting.cancel()
    await engine.stop()
    await asyncio.wait([starting])
    assert starting.cancelled()
    assert (workshop.states, workshop.engines[0].health().state) == ([STOPPED], STOPPED)


async def test_start_after_stop_takes_no_work() -> None:
    class Deaf(SimulatedEngine):
        async def start(self) -> None:
            await stopped.wait()
            self._health = EngineHealth(READY)

    stopped = asyncio.Event()
    engine = usual(Supervisor, Deaf)
    starting = asyncio.create_task(engine.start())
    await asyncio.sleep(0)
    await engine.stop()
    stopped.set()
    with pytest.raises(StartupError, match="was stopped"):
        await starting
    assert engine.health().state is STOPPED
    with pytest.raises(EngineUnavailable):
        await generate(engine, "x")


async def test_generations_that_run_when_it_stops_are_told() -> None:
    async with supervised(Script(first_token_s=3_600)) as (_, engine):
        task = asyncio.create_task(generate(engine, "x"))
        while not engine.capacity().running:
            await asyncio.sleep(0)
    with pytest.raises(EngineUnavailable):
        await task


# ---------------------------------------------------------------- with the scheduler


@pytest.mark.parametrize("killers", [1, 3])
async def test_killing_texts_are_found_before_engine_fails(killers: int) -> None:
    rules = tuple(Rule(match=f"killer{n}", crash_after=1, crashes=100) for n in range(killers))
    script = Script(first_token_s=0, token_s=0, rules=rules)
    async with supervised(build=simulated_engines(script)) as (_, engine):
        scheduler = usual(Scheduler, engine, max_waiting=100)
        engine.on_change = lambda _: scheduler.engine_changed()
        texts = [f"killer{n}" for n in range(killers)] + [f"good {n}" for n in range(8)]
        tickets = scheduler.admit("m", [request(text, f"r{n}") for n, text in enumerate(texts)])
        shown = [""] * len(texts)

        async def collect(n: int) -> None:
            def add(piece: str) -> None:
                shown[n] += piece

            await scheduler.collect(tickets[n], Throttle(add, interval_s=0).grow)

        outcomes = await asyncio.gather(*map(collect, range(len(texts))), return_exceptions=True)
        for outcome in outcomes[:killers]:
            assert isinstance(outcome, EngineFailed)
            assert "died on this text" in outcome.message
        assert shown[killers:] == [f"[de] good {n}" for n in range(8)]
        assert (scheduler.running, scheduler.waiting) == (0, 0)
        while engine.health().state is not READY:
            await asyncio.sleep(0)
        assert await generate(engine, "good") == "[de] good"


async def test_single_crash_loses_no_text() -> None:
    script = Script(first_token_s=0, token_s=0, rules=(Rule(match="once", crash_after=2, crashes=1),))
    async with supervised(build=simulated_engines(script)) as (_, engine):
        scheduler = usual(Scheduler, engine, max_waiting=100)
        engine.on_change = lambda _: scheduler.engine_changed()
        (ticket,) = scheduler.admit("m", [request("once upon a time")])
        pieces: list[str] = []
        assert (
            await scheduler.collect(ticket, Throttle(pieces.append, interval_s=0).grow)
        ).text == "[de] once upon a time"
        assert pieces == ["[de]", " once", " upon", " a", " time"]
        assert ticket.crashes == 1


async def test_broken_engine_ends_waiting_texts() -> None:
    async with supervised(Script(first_token_s=3_600), FAST, max_restarts=1) as (workshop, engine):
        scheduler = usual(Scheduler, engine, max_waiting=100)

        def tell(health: EngineHealth) -> None:
            workshop.tell(health)
            scheduler.engine_changed()

        engine.on_change = tell
        tickets = scheduler.admit("m", [request("x", f"r{n}") for n in range(30)])
        tasks = [asyncio.create_task(scheduler.collect(ticket)) for ticket in tickets]
        while not engine.capacity().running:
            await asyncio.sleep(0)
        workshop.broken = 1
        workshop.engines[0].fail("killed")
        await workshop.until(READY, RESTARTING, FAILED, READY)
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(outcome, EngineFailed)
            assert "failed repeatedly" in outcome.message


async def test_stall_of_other_gateways_counts() -> None:
    workshop = Workshop(FAST)
    policy = usual(RestartPolicy, stall_s=0.05, restart_backoff_s=0)
    engine = usual(Supervisor, workshop.build, policy, on_change=workshop.tell, silent_s=lambda: 60.0)
    await engine.start()
    await workshop.until(READY, RESTARTING, READY)
    assert len(workshop.engines) >= 2
    await engine.stop()

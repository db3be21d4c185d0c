"""A worker's engine: the parent says how it is, and the tokens come from its host."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.domain.engine import EngineHealth, EngineState
from gateway.domain.errors import EngineRestarting, EngineUnavailable, StartupError
from gateway.engines.host import sharing
from gateway.engines.host.shared import _AGAIN_S, SharedEngine
from gateway.engines.simulated import Rule, Script, SimulatedEngine, SimulatedModel, Speech
from tests.engines.host.pairs import request, text_of
from tests.engines.host.workers import READY, RESTARTING, shared_engine, worker
from tests.generations import events_of
from tests.patience import until

FAST = Script(first_token_s=0, token_s=0.001, rules=(Rule(match="endless", repeat=20_000),))


async def test_it_shows_what_the_parent_says() -> None:
    async with shared_engine(SimulatedEngine(FAST)) as shared:
        engine = SharedEngine()
        told: list[EngineState] = []
        engine.on_change = lambda health: told.append(health.state)
        starting = asyncio.create_task(engine.start())
        for state in (EngineState.STARTING, EngineState.RESTARTING):
            engine.follow_parent(EngineHealth(state, "loading the weights"), None)
            # Nobody has seen it run here, so it is not started again.
            assert engine.health() == EngineHealth(EngineState.STARTING, "loading the weights")
        with pytest.raises(EngineUnavailable, match="loading the weights"):
            await text_of(engine, "early")
        engine.follow_parent(READY, shared.path)
        await starting
        assert told == [EngineState.READY]
        assert await text_of(engine, "good") == "[de] good"
        assert await engine.metrics() == b""
        await engine.stop()


async def test_worker_moves_to_the_next_host() -> None:
    async with shared_engine(SimulatedEngine(FAST)) as first, worker(first) as engine:
        running = events_of(engine, request("endless"))
        await anext(running)
        await first.die()
        with pytest.raises(EngineUnavailable):
            async for _ in running:
                pass
        assert engine.health().state is EngineState.RESTARTING
        with pytest.raises(EngineRestarting):
            await text_of(engine, "late")
        engine.follow_parent(RESTARTING, None)
        async with shared_engine(SimulatedEngine(FAST)) as second:
            engine.follow_parent(READY, second.path)
            await until(lambda: engine.health().state is EngineState.READY)
            assert await text_of(engine, "good") == "[de] good"


@pytest.mark.parametrize("killed", [False, True])
async def test_crash_counts_only_for_begun_texts(killed: bool) -> None:
    async with shared_engine(SimulatedEngine(FAST)) as shared, worker(shared) as one, worker(shared) as two:
        running = events_of(one, replace(request("endless"), alone=True))
        await anext(running)
        held = [events_of(two, replace(request("good"), alone=alone)) for alone in (True, False)]
        waiting = [asyncio.create_task(anext(generation)) for generation in held]
        while [answer.begun for answer in two._answers.values()] != [False, False]:
            await asyncio.sleep(0.001)
        if killed:
            await shared.die()
        else:
            shared.far.fail("it was told to")
        for task in waiting:
            with pytest.raises(EngineRestarting):
                await task
        with pytest.raises(EngineUnavailable) as died:
            async for _ in running:
                pass
        assert died.type is EngineUnavailable


async def test_parents_word_ends_hung_generations() -> None:
    script = Script(first_token_s=0, token_s=0, rules=(Rule(match="hush", stall_after=1),))
    async with shared_engine(SimulatedEngine(script)) as shared, worker(shared) as engine:
        running = events_of(engine, request("hush"))
        await anext(running)
        waiting = asyncio.create_task(anext(running))
        engine.follow_parent(RESTARTING, None)
        with pytest.raises(EngineUnavailable):
            await waiting
        assert engine.health().state is EngineState.RESTARTING
        engine.follow_parent(EngineHealth(EngineState.FAILED, "It failed six times."), None)
        assert engine.health() == EngineHealth(EngineState.FAILED, "It failed six times.")


async def test_dead_engine_in_a_living_host_is_not_asked() -> None:
    async with shared_engine(SimulatedEngine(FAST)) as shared, worker(shared) as engine:
        running = events_of(engine, request("endless"))
        await anext(running)
        shared.far.fail("it was told to")
        with pytest.raises(EngineUnavailable):
            async for _ in running:
                pass
        # The host still runs, and is asked again, but takes nobody.
        for _ in range(20):
            assert engine.health().state is EngineState.RESTARTING
            await asyncio.sleep(0.01)


async def test_a_connection_that_is_lost_is_made_again() -> None:
    async with shared_engine(SimulatedEngine(FAST)) as shared, worker(shared) as engine:
        channel = engine._channel
        assert channel is not None
        channel.close()
        await until(lambda: engine._channel is not channel and engine.health().state is EngineState.READY)
        assert await text_of(engine, "good") == "[de] good"


async def test_lost_connection_spares_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shared_engine(SimulatedEngine(FAST)) as shared, worker(shared) as engine:
        connect, connected = engine._connect, 0

        async def counted(path: Path) -> None:
            nonlocal connected
            connected += 1
            await connect(path)

        monkeypatch.setattr(engine, "_connect", counted)
        running = events_of(engine, request("endless"))
        await anext(running)
        await asyncio.sleep(2 * _AGAIN_S)  # then it connects again at once
        assert engine._channel is not None
        engine._channel.close()
        with pytest.raises(EngineUnavailable):
            async for _ in running:
                pass
        await until(lambda: engine.health().state is EngineState.READY)
        assert connected == 1


async def test_one_that_is_stopped_does_not_start() -> None:
    engine = SharedEngine()
    starting = asyncio.create_task(engine.start())
    await asyncio.sleep(0)
    await engine.stop()
    with pytest.raises(StartupError, match="stopped"):
        await starting
    with pytest.raises(StartupError, match="stopped"):
        await engine.start()
    assert engine.health().state is EngineState.STOPPED


async def test_worker_is_ready_once_it_can_make_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = threading.Event()
    translator = SimulatedModel.translator

    def slow(model: SimulatedModel) -> Speech:
        prepared.wait()
        return translator(model)

    async with shared_engine(SimulatedEngine(FAST)) as shared:
        monkeypatch.setattr(SimulatedModel, "translator", slow)
        engine = SharedEngine()
        engine.follow_parent(READY, shared.path)
        await until(lambda: engine._model is not None)
        assert engine.health().state is EngineState.STARTING
        prepared.set()
        await engine.start()
        assert await text_of(engine, "good") == "[de] good"
        # The next host has the same model: what was prepared is kept.
        before = engine._translator
        async with shared_engine(SimulatedEngine(FAST)) as second:
            engine.follow_parent(RESTARTING, None)
            engine.follow_parent(READY, second.path)
            await until(lambda: engine.health().state is EngineState.READY)
            assert engine._translator is before
        await engine.stop()


async def test_long_vocabulary_is_not_taken_for_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_UNREAD_BYTES", 10_000)
    languages = tuple(f"{number:05}" for number in range(200_000))
    async with shared_engine(SimulatedEngine(replace(FAST, languages=languages))) as shared, worker(shared) as one:
        assert len(one.profile().languages) == 200_000

"""A hosted engine and its host over a real socket, both in this process: all arrives, and either may go away."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway.domain.engine import EngineHealth, EngineState, TokenEvent
from gateway.domain.errors import EngineUnavailable, StartupError
from gateway.engines.host import processes, proxy
from gateway.engines.host.proxy import Host, HostedEngine
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from tests.engines.host.pairs import Faulty, Pair, hosted_engine, request, text_of
from tests.engines.host.workers import shared_engine, worker
from tests.generations import events_of
from tests.patience import until


async def until_broken(generation: AsyncGenerator[TokenEvent, None], kind: type[Exception]) -> str:
    """What it says before it raises an error of this kind."""
    said = ""
    try:
        async for event in generation:
            said += event.text
    except kind:
        return said
    pytest.fail("it ended")


async def test_metrics_of_a_hung_host_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosted_engine(Faulty()) as pair:
        await pair.near.start()
        assert await pair.near.metrics(["a", "b"]) == b"asked for a,b"
        monkeypatch.setattr(pair.near._questions, "_answer_s", 0.01)
        assert await pair.near.metrics(["never"]) == b""


async def test_the_death_of_the_engine_is_told() -> None:
    rules = (Rule(match="endless", repeat=100_000),)
    async with hosted_engine(SimulatedEngine(Script(first_token_s=0, rules=rules))) as pair:
        await pair.near.start()
        running = events_of(pair.near, request("endless"))
        await anext(running)
        pair.far.fail("it was told to")
        await until_broken(running, EngineUnavailable)
        while pair.near.health().state is not EngineState.FAILED:
            await asyncio.sleep(0.01)
        with pytest.raises(EngineUnavailable):
            await text_of(pair.near, "late")


async def test_the_death_of_the_host_ends_what_runs() -> None:
    rules = (Rule(match="endless", repeat=100_000),)
    pair = Pair(SimulatedEngine(Script(first_token_s=0, rules=rules)))
    serving = asyncio.create_task(pair.serve())
    await pair.near.start()
    running = [events_of(pair.near, request("endless", str(n))) for n in range(3)]
    for generation in running:
        await anext(generation)
    serving.cancel()
    for generation in running:
        await until_broken(generation, EngineUnavailable)
    assert pair.near.health() == EngineHealth(EngineState.FAILED, "the engine's process ended")
    assert await pair.near.metrics() == b""
    await pair.near.stop()


@pytest.mark.parametrize("error", [StartupError("There is no such model."), OSError("no such model")])
async def test_an_engine_that_cannot_start_says_why(error: Exception) -> None:
    far = Faulty()
    far.failing = error
    async with hosted_engine(far) as pair:
        with pytest.raises(StartupError, match="no such model") as refused:
            await pair.near.start()
        assert pair.near.health().state is EngineState.FAILED
        assert "no such model" in pair.near.health().reason
        # Where it came from, for those who ask.
        assert "raise self.failing" in "".join(refused.value.__notes__)


async def test_host_that_ends_while_starting_is_a_failed_start(tmp_path: Path) -> None:
    pair = Pair(SimulatedEngine(Script(load_s=3_600)))
    pair.far.log_path = tmp_path / "engine.log"  # type: ignore[attr-defined]
    serving = asyncio.create_task(pair.serve())
    starting = asyncio.create_task(pair.near.start())
    while pair.near.log_path is None:
        await asyncio.sleep(0.001)
    serving.cancel()
    with pytest.raises(StartupError, match=r"ended while it started \(log: .*engine\.log"):
        await starting
    await pair.near.stop()


async def test_silence_is_that_of_all_gateways() -> None:
    rules = (Rule(match="hush", stall_after=0),)
    async with shared_engine(SimulatedEngine(Script(first_token_s=0, rules=rules))) as shared:
        await until(lambda: shared.parent.silent_s() == 0.0)
        async with worker(shared) as engine:
            silent = asyncio.create_task(text_of(engine, "hush"))
            await until(lambda: 0.0 < shared.parent.silent_s() < math.inf)
            silent.cancel()
            await asyncio.wait([silent])
        await until(lambda: shared.parent.silent_s() == 0.0)
        # Asked again, and not answered yet.
        assert shared.parent.silent_s() == math.inf


async def test_one_that_was_stopped_does_not_start() -> None:
    started = []

    def open() -> Host:
        started.append(True)
        raise OSError("too many open files")

    engine = HostedEngine(open)
    with pytest.raises(StartupError, match="too many open files"):
        await engine.start()
    assert engine.health().state is EngineState.FAILED
    await engine.stop()
    with pytest.raises(StartupError, match="stopped"):
        await engine.start()
    assert started == [True]


async def test_a_scrape_does_not_outlast_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "_METRICS_S", 3_600)
    async with hosted_engine(Faulty()) as pair:
        await pair.near.start()
        scraping = asyncio.create_task(pair.near.metrics(["never"]))
        await asyncio.sleep(0)
        await pair.near.stop()
        assert await scraping == b""


async def test_stop_while_loading_ends_the_start() -> None:
    async with hosted_engine(SimulatedEngine(Script(load_s=3_600))) as pair:
        starting = asyncio.create_task(pair.near.start())
        while pair.near.health().reason == "starting":
            await asyncio.sleep(0.001)
        await pair.near.stop()
        with pytest.raises(StartupError, match="stopped"):
            await starting


UNSTOPPED = """
import asyncio, sys, tempfile
from functools import partial

# Whatever registers first for the interpreter's end runs last.
tempfile.TemporaryDirectory().cleanup()

from gateway.engines.host.proxy import HostedEngine, start_host
from gateway.engines.simulated import Script, SimulatedEngine

engine = HostedEngine(partial(start_host, partial(SimulatedEngine, Script())))

if __name__ == "__main__":
    asyncio.run(engine.start())
    print(engine._host._process.pid)
"""


async def test_host_ends_with_an_unstopped_gateway(tmp_path: Path) -> None:
    script = tmp_path / "unstopped.py"
    script.write_text(UNSTOPPED)
    ran = await asyncio.create_subprocess_exec(sys.executable, str(script), stdout=subprocess.PIPE)
    said, _ = await ran.communicate()
    assert ran.returncode == 0
    assert not processes.with_pids(int(said))

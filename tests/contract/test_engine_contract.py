"""The duties of every adapter of the Engine port; the real one and the simulated one run the same tests."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gateway.config import BUNDLED_MODEL
from gateway.engines import processes
from gateway.engines.processes import Process
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.engines.vllm import VllmEngine, VllmOptions
from gateway.errors import EngineFailed, EngineUnavailable
from gateway.events import EngineState, FinishReason, TokenEvent, TranslationRequest
from gateway.ports import Engine

pytestmark = pytest.mark.asyncio(loop_scope="module")


# A text that takes longer than any test lasts.
ENDLESS = "one two three four five six seven eight nine " * 10
KINDS = ["simulated", pytest.param("vllm", marks=pytest.mark.engine)]


def new_engine(kind: str) -> Engine:
    if kind == "vllm":
        return VllmEngine(VllmOptions(model=str(BUNDLED_MODEL), max_num_seqs=4))
    rules = (Rule(match=ENDLESS, repeat=1_000),)
    return SimulatedEngine(Script(first_token_s=0.001, token_s=0.001, max_running=4, rules=rules))


@pytest.fixture(scope="module", params=KINDS)
def unstarted(request: pytest.FixtureRequest) -> Engine:
    return new_engine(request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(unstarted: Engine) -> AsyncIterator[Engine]:
    assert unstarted.health().state is EngineState.STARTING
    await unstarted.start()
    yield unstarted
    await unstarted.stop()
    assert unstarted.health().state is EngineState.STOPPED


def request(request_id: str, text: str = "Good morning, everyone.", target: str = "de") -> TranslationRequest:
    return TranslationRequest(id=request_id, text=text, source="en", target=target)


async def generate(engine: Engine, req: TranslationRequest) -> list[TokenEvent]:
    return [event async for event in engine.generate(req)]


def joined(events: list[TokenEvent]) -> str:
    return "".join(event.text for event in events)


async def until_idle(engine: Engine) -> None:
    """The suite's timeout is the bound."""
    while engine.capacity().running or engine.capacity().waiting:
        await asyncio.sleep(0.01)


async def test_it_is_ready_and_says_what_it_can_do(engine: Engine) -> None:
    assert engine.health().state is EngineState.READY
    assert {"en", "ja", "es", "de", "fr", "zh"} <= set(engine.profile().languages)
    assert engine.capacity().max_running == 4


async def test_exactly_the_last_event_finishes(engine: Engine) -> None:
    events = await generate(engine, request("finish"))
    assert [event.finish for event in events[:-1]] == [None] * (len(events) - 1)
    assert events[-1].finish is FinishReason.STOP
    assert sum(event.tokens for event in events) >= len(joined(events).split())
    assert events[-1].prompt_tokens > 0


async def test_text_does_not_depend_on_company(engine: Engine) -> None:
    texts = [f"The meeting starts at {hour} o'clock in room {hour}0." for hour in range(2, 12)]
    alone = [joined(await generate(engine, request(f"alone-{n}", text))) for n, text in enumerate(texts)]
    together = await asyncio.gather(
        *(generate(engine, request(f"together-{n}", text)) for n, text in enumerate(texts))
    )
    assert [joined(events) for events in together] == alone
    assert len(set(alone)) == len(texts)


async def test_closing_the_generator_ends_the_generation(engine: Engine) -> None:
    generation = engine.generate(request("close", ENDLESS))
    await anext(generation)
    await generation.aclose()
    await until_idle(engine)


async def test_cancelling_the_reader_ends_the_generation(engine: Engine) -> None:
    first = asyncio.Event()

    async def read() -> None:
        async for _ in engine.generate(request("cancel", ENDLESS)):
            first.set()

    reader = asyncio.create_task(read())
    await first.wait()
    reader.cancel()
    await asyncio.wait([reader])
    assert reader.cancelled()
    await until_idle(engine)


async def test_a_text_that_is_too_long_fails_alone(engine: Engine) -> None:
    good, bad = await asyncio.gather(
        generate(engine, request("good")),
        generate(engine, request("bad", "word " * 3_000)),
        return_exceptions=True,
    )
    assert isinstance(bad, EngineFailed)
    assert not isinstance(good, BaseException)
    assert good[-1].finish is FinishReason.STOP


async def test_more_than_fit_together_all_get_through(engine: Engine) -> None:
    results = await asyncio.gather(*(generate(engine, request(f"many-{n}")) for n in range(12)))
    assert len({joined(events) for events in results}) == 1
    await until_idle(engine)


async def test_before_start_nothing_is_taken() -> None:
    for engine in (SimulatedEngine(), VllmEngine(VllmOptions(model="/nowhere"))):
        with pytest.raises(EngineUnavailable):
            await generate(engine, request("early"))
    with pytest.raises(EngineUnavailable):
        VllmEngine(VllmOptions(model="/nowhere")).profile()


# ---------------------------------------------------------------- death


async def begin(engine: Engine, count: int) -> list[asyncio.Task[list[TokenEvent]]]:
    """So many generations, each past its first token or waiting in the engine."""
    running = [asyncio.create_task(generate(engine, request(f"endless-{n}", ENDLESS))) for n in range(count)]
    while engine.capacity().running < min(count, 4):
        await asyncio.sleep(0.01)
    return running


async def all_unavailable(running: list[asyncio.Task[list[TokenEvent]]]) -> None:
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        assert isinstance(outcome, EngineUnavailable), outcome


async def until_failed(engine: Engine) -> None:
    """The suite's timeout is the bound."""
    while engine.health().state is not EngineState.FAILED:
        await asyncio.sleep(0.01)


def kill(engine: Engine, started: frozenset[Process], number: int) -> None:
    if isinstance(engine, SimulatedEngine):
        engine.fail("killed")
    for process in started:
        os.kill(process.pid, number)


@pytest.mark.parametrize("kind", KINDS)
async def test_engines_die_hang_and_stop_in_one_process(kind: str) -> None:
    """One test for three engines, because each takes half a minute to start."""
    others = processes.children()  # the engine of the tests above may still run
    # It dies.
    dead = new_engine(kind)
    await dead.start()
    started = processes.children() - others
    assert len(started) == (kind == "vllm")
    tree = processes.descendants(started)
    running = await begin(dead, 6)
    kill(dead, started, signal.SIGKILL)
    await all_unavailable(running)
    await until_failed(dead)
    with pytest.raises(EngineUnavailable):
        await generate(dead, request("late"))
    await dead.stop()
    assert processes.children() == others
    assert not processes.descendants(tree)

    # The next one in this process works, and hangs.
    hung = new_engine(kind)
    await hung.start()
    assert joined(await generate(hung, request("good")))
    running = await begin(hung, 6)
    started = processes.children() - others
    tree = processes.descendants(started)
    if kind == "vllm":
        kill(hung, started, signal.SIGSTOP)
    await hung.stop()
    await all_unavailable(running)
    assert processes.children() == others
    assert not processes.descendants(tree)

    # Stopping while it loads.
    loading = new_engine(kind) if kind == "vllm" else SimulatedEngine(Script(load_s=3_600))
    starting = asyncio.create_task(loading.start())
    while kind == "vllm" and processes.children() == others:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0)
    starting.cancel()
    await loading.stop()
    await asyncio.wait([starting])
    assert starting.cancelled()
    assert processes.children() == others
    engines = (dead, hung, loading)
    for engine in engines:
        await engine.stop()
        assert engine.health().state is EngineState.STOPPED
    # The log of the newest that failed is kept, and no other.
    logs = [engine.log_path for engine in engines if isinstance(engine, VllmEngine)]
    assert [log is not None and log.exists() for log in logs] == ([False, True, False] if logs else [])

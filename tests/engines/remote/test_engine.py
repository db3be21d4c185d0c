"""The life of the adapter, on a scripted server; that it is an engine is in `tests/contract`, on a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from demo_model import SMALL_MODEL
from gateway.domain.engine import EngineCapacity, EngineState, FinishReason, TranslationRequest
from gateway.domain.errors import EngineUnavailable, StartupError
from gateway.engines.remote import capabilities
from gateway.engines.remote import engine as module
from gateway.engines.remote.engine import RemoteEngine, RemoteOptions
from tests.engines.remote.scripted import END, ScriptedServer, chunk, refuses, says, scripted, streams
from tests.generations import events_of
from tests.usual import usual

REQUEST = TranslationRequest(id="r", text="Good morning.", source="en", target="de")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    monkeypatch.setattr(module, "_WATCH_S", 0.01)
    monkeypatch.setattr(module, "_PAUSES_S", (0.0,) * 5)


def new_engine(there: ScriptedServer, **options: Any) -> RemoteEngine:
    return RemoteEngine(usual(RemoteOptions, **{"url": there.url, "model": str(SMALL_MODEL), **options}))


@asynccontextmanager
async def started(there: ScriptedServer, **options: Any) -> AsyncIterator[RemoteEngine]:
    engine = new_engine(there, **options)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.stop()
        assert engine.health().state is EngineState.STOPPED


async def refused(there: ScriptedServer, **options: Any) -> str:
    engine = new_engine(there, **options)
    with pytest.raises(StartupError) as error:
        await engine.start()
    assert engine.health().state is EngineState.FAILED
    assert engine.health().reason == error.value.message
    await engine.stop()
    return error.value.message


async def until(engine: RemoteEngine, state: EngineState) -> None:
    """The suite's timeout is the bound."""
    while engine.health().state is not state:
        await asyncio.sleep(0.01)


async def test_it_starts_with_two_translations_and_knows_its_model() -> None:
    async with scripted() as there, started(there, max_num_seqs=3) as engine:
        assert engine.health().state is EngineState.READY
        assert engine.capacity() == EngineCapacity(3, 0, 0)
        profile = engine.profile()
        assert (profile.model, profile.family) == (SMALL_MODEL.name, "bundled")
        # The server has a window of 256 tokens.
        assert profile.max_text_tokens == (256 - 32) // 4
        # The probe of what it can do, a translation, and the probe of a draft, after which nothing is left.
        assert [asked["stream"] for asked in there.asked] == [False, True, False]


async def test_the_shorter_window_counts() -> None:
    async with scripted() as there:
        async with started(there, max_model_len=128) as engine:
            assert engine.profile().max_text_tokens == (128 - 32) // 4
        there.models = [{"id": "model"}]
        assert "set engine.max_model_len" in await refused(there)


async def test_it_waits_for_a_server_that_is_loading() -> None:
    async with scripted() as there:
        there.die()
        engine = new_engine(there)
        starting = asyncio.create_task(engine.start())
        while "waiting for the vLLM server" not in engine.health().reason:
            await asyncio.sleep(0.01)
        assert there.url not in engine.health().reason
        assert engine.health().state is EngineState.STARTING
        with pytest.raises(EngineUnavailable, match="waiting for the vLLM server"):
            await anext(events_of(engine, REQUEST))
        there.live()
        await starting
        assert engine.health().state is EngineState.READY
        await engine.stop()


async def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT_S", 0.05)
    async with scripted() as there:
        there.die()
        assert await refused(there) == (
            f"The server at {there.url} takes no requests: its health page has status 503."
        )


async def test_stopping_ends_the_wait() -> None:
    async with scripted() as there:
        there.die()
        engine = new_engine(there)
        starting = asyncio.create_task(engine.start())
        while "waiting for the vLLM server" not in engine.health().reason:
            await asyncio.sleep(0.01)
        await engine.stop()
        starting.cancel()
        await asyncio.wait([starting])
        assert engine.health().state is EngineState.STOPPED


async def test_dead_replica_does_not_end_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.01)
    async with scripted() as there:
        usual = there.script
        there.script = [refuses(503, "no server"), refuses(500, "EngineCore died"), *usual]
        engine = new_engine(there)
        await engine.start()
        assert engine.health().state is EngineState.READY
        await engine.stop()


async def test_a_server_that_lacks_something_is_refused_at_once() -> None:
    async with scripted() as there:
        there.script = [refuses(400, "Got priority 1 but Priority scheduling is not enabled.")]
        assert "--scheduling-policy priority" in await refused(there)
        there.script = [says([5]), refuses(400, "no")]
        assert "cannot translate: The server refused this text: no (status 400)" in await refused(there)


# ---------------------------------------------------------------- the key


async def test_key_comes_from_file_or_settings(tmp_path: Path) -> None:
    file = tmp_path / "key"
    async with scripted() as there:
        there.key = "secret"
        assert "does not accept the API key" in await refused(there)
        assert "cannot be read: No such file" in await refused(there, api_key_file=str(file))
        file.write_text("\n")
        assert "is empty" in await refused(there, api_key_file=str(file))
        file.write_text("secret\n")
        async with started(there, api_key_file=str(file)):
            pass
        async with started(there, api_key="secret"):
            pass


# ---------------------------------------------------------------- death


async def test_dead_server_ends_the_engine() -> None:
    async with scripted() as there, started(there) as engine:
        hanging = events_of(engine, REQUEST)
        there.script = [streams(chunk([5]), hangs=True)]
        await anext(hanging)
        waiting = asyncio.create_task(anext(hanging))
        there.die()
        with pytest.raises(EngineUnavailable):
            async for _ in events_of(engine, REQUEST):
                pass
        assert engine.health().state is EngineState.FAILED
        assert "is gone" in engine.health().reason
        with pytest.raises(EngineUnavailable):
            await waiting
        with pytest.raises(EngineUnavailable):
            await anext(events_of(engine, REQUEST))
        assert await engine.metrics() == b""


async def test_a_server_that_dies_while_nothing_runs_is_noticed() -> None:
    async with scripted() as there, started(there) as engine:
        there.die()
        await until(engine, EngineState.FAILED)
        assert engine.health().reason == f"the server at {there.url} is gone: its health page has status 503"


async def test_some_looks_without_an_answer_are_no_death(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind one address there may be a dead replica and one that lives."""
    looks = iter([*["no answer"] * 4, None, None, *["no answer"] * 5])

    async def look(_: object) -> str | None:
        return next(looks)

    async with scripted() as there, started(there) as engine:
        monkeypatch.setattr(capabilities, "problem", look)
        await until(engine, EngineState.FAILED)
    assert list(looks) == []


async def test_all_that_were_lost_look_together() -> None:
    async with scripted() as there, started(there) as engine:
        before = len(there.asked)
        there.die()
        assert await asyncio.gather(*(engine._answers() for _ in range(9))) == [False] * 9
        # The watch looks as well, and may begin once more.
        assert len(there.asked) - before <= 2 * len(module._PAUSES_S)


# ---------------------------------------------------------------- metrics

PAGE = b"""# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 3.0
# HELP vllm:num_requests_waiting Number of requests.
vllm:num_requests_waiting{engine="0"} 1.0
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 9.0
"""


async def test_server_metrics_exclude_its_process() -> None:
    async with scripted() as there, started(there) as engine:
        there.page = PAGE
        page = (await engine.metrics()).decode()
        assert "vllm:num_requests_waiting" in page
        assert "\nprocess_cpu" not in page
        some = (await engine.metrics(["vllm:num_requests_running"])).decode().splitlines()
        assert some == PAGE.decode().splitlines()[:3]


async def test_what_it_counts_are_its_own_requests() -> None:
    async with scripted() as there, started(there, max_num_seqs=1) as engine:
        there.script = [streams(chunk([5]), hangs=True)]
        both = [events_of(engine, REQUEST), events_of(engine, REQUEST)]
        for each in both:
            await anext(each)
        assert engine.capacity() == EngineCapacity(1, 1, 1)
        for each in both:
            await each.aclose()
        assert engine.capacity() == EngineCapacity(1, 0, 0)
        there.script = [says([5, END])]
        assert [event async for event in events_of(engine, REQUEST)][-1].finish is FinishReason.STOP

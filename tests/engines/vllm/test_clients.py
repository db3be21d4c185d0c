"""Several clients of one engine of vLLM: of each release whether it can have them, and how it is told."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.engine import EngineHealth, EngineState
from gateway.domain.errors import StartupError
from gateway.engines.vllm.clients import Attachment, attached, launching_for, why_not
from gateway.engines.vllm.engine import VllmEngine
from gateway.engines.vllm.options import VllmOptions
from tests.usual import usual

ONE = Attachment(1, 3, "/run/engine.1", {"model": "m"}, Path("/log"))
TWO = replace(ONE, index=2, at="/run/engine.2")


class AsyncLLM:
    @classmethod
    def from_vllm_config(
        cls,
        vllm_config: Any,
        stat_loggers: Any = None,
        client_addresses: Any = None,
        client_count: int = 1,
        client_index: int = 0,
    ) -> Any:
        return vllm_config, stat_loggers, client_addresses, client_count, client_index


class OlderLLM:
    @classmethod
    def from_vllm_config(cls, vllm_config: Any, stat_loggers: Any = None) -> Any:
        pass


class Addresses:
    """Of an engine's clients."""

    def __init__(self, inputs: list[str], outputs: list[str]) -> None:
        self.inputs = inputs
        self.outputs = outputs


class Api:
    """Of the names of vLLM, those that are needed here."""

    AsyncLLM: Any = AsyncLLM

    class AsyncEngineArgs:
        def __init__(self, **arguments: Any) -> None:
            self._arguments = arguments

        def create_engine_config(self) -> dict[str, Any]:
            return self._arguments


@pytest.fixture
def core_client(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module in which vLLM's client starts its engine."""
    for name in ("vllm", "vllm.v1", "vllm.v1.engine", "vllm.v1.engine.core_client", "vllm.v1.engine.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    engine: Any = sys.modules["vllm.v1.engine"]
    engine.core_client, engine.utils = (sys.modules[f"vllm.v1.engine.{n}"] for n in ("core_client", "utils"))
    engine.utils.EngineZmqAddresses = Addresses

    def launch_core_engines(vllm_config: Any, executor: Any, log_stats: bool, addresses: Any) -> Any:
        return addresses.inputs, addresses.outputs

    engine.core_client.launch_core_engines = launch_core_engines
    return engine.core_client


def test_whether_an_engine_can_have_several(core_client: Any) -> None:
    api: Any = Api()
    assert why_not(api, {}) == ""
    assert "data_parallel_size" in why_not(api, {"data_parallel_size": 2})
    api.AsyncLLM = OlderLLM
    assert why_not(api, {}) == ("this version of vLLM does not know client_addresses, client_count, client_index")
    del core_client.launch_core_engines
    assert "this version of vLLM has another interface (cannot import name" in why_not(api, {})


def test_an_engine_is_told_of_all_that_ask_it(core_client: Any) -> None:
    launch = core_client.launch_core_engines
    with launching_for([ONE, TWO]):
        found = core_client.launch_core_engines("config", "executor", True, Addresses(["own in"], ["own out"]))
    assert found == (
        ["own in", "ipc:///run/engine.1-in", "ipc:///run/engine.2-in"],
        ["own out", "ipc:///run/engine.1-out", "ipc:///run/engine.2-out"],
    )
    assert core_client.launch_core_engines is launch


def test_another_process_attaches_itself_by_its_number() -> None:
    addresses = {"input_address": "ipc:///run/engine.2-in", "output_address": "ipc:///run/engine.2-out"}
    api: Any = Api()
    assert attached(api, TWO, ["logger"]) == ({"model": "m"}, ["logger"], addresses, 3, 2)


@pytest.mark.usefixtures("core_client")
async def test_the_process_with_the_engine_starts_all_others_or_says_why_there_are_none(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    begun: list[Any] = []

    async def begin(builds: list[Any]) -> None:
        begun.extend(pickle.loads(pickle.dumps(builds)))  # noqa: S301

    engine = VllmEngine(usual(VllmOptions, model="m"))
    engine._api = Api()  # type: ignore[assignment]
    engine._log.path = Path("/log")
    engine.divide(2, tmp_path / "engine-7.sock", begin)
    # In a thread, as vLLM is imported and started there.
    assert await asyncio.to_thread(engine._start_others, {"data_parallel_size": 2}) == []
    assert not begun
    assert "engine.front_ends is taken as 1, since its engine is several ones (data_parallel_size)" in caplog.text
    found = await asyncio.to_thread(engine._start_others, {"model": "m"})
    at = [str(tmp_path / f"engine-7.{number}") for number in (1, 2)]
    assert found == [Attachment(number, 3, at[number - 1], {"model": "m"}, Path("/log")) for number in (1, 2)]
    assert [build()._attachment for build in begun] == found


def test_one_that_notices_the_death_of_the_engine_names_the_log_of_whoever_started_it() -> None:
    engine = VllmEngine(usual(VllmOptions, model="m"), ONE)
    engine._life.become(EngineState.READY)
    engine._engine = types.SimpleNamespace(errored=True)
    assert engine.health() == EngineHealth(EngineState.FAILED, "the engine process died (log: /log)")


def test_no_front_end_is_blamed_for_the_death_of_the_engine_itself() -> None:
    engine = VllmEngine(usual(VllmOptions, model="m"), ONE)
    engine._life.become(EngineState.READY)
    engine._engine = types.SimpleNamespace(errored=True)
    engine.fail("front end 1: the engine process died (log: /log)")
    assert engine.health() == EngineHealth(EngineState.FAILED, "the engine process died (log: /log)")


async def test_what_several_processes_write_to_the_log_is_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(self: VllmEngine, handle: int) -> None:
        said = b"engine\n" if self._attachment is None else b"front end\n"
        os.write(handle, said)
        if self._attachment is None:
            other = VllmEngine(usual(VllmOptions, model="m"), replace(ONE, log=self.log_path))
            with pytest.raises(StartupError):
                asyncio.run(other.start())
        os.write(handle, said)
        os.close(handle)
        raise StartupError("That was all.")

    monkeypatch.setattr(VllmEngine, "_build", build)
    engine = VllmEngine(usual(VllmOptions, model="m"))
    with pytest.raises(StartupError, match=r"^That was all\."):
        await engine.start()
    assert engine.log_path is not None
    assert engine.log_path.read_text() == "engine\nfront end\nfront end\nengine\n"
    await engine.stop()
    engine.log_path.unlink()


async def test_the_log_belongs_to_whoever_started_the_engine(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    engine = VllmEngine(usual(VllmOptions, model="m"), replace(ONE, log=log))
    assert engine.log_path == log
    await engine.stop()
    assert log.exists()


async def test_an_engine_that_failed_with_another_process_keeps_its_log() -> None:
    for fails in (True, False):
        engine = VllmEngine(usual(VllmOptions, model="m"))
        os.close(engine._log.open())
        log = engine.log_path
        assert log is not None
        if fails:
            engine.fail("front end 2: it is gone")
            assert engine.health() == EngineHealth(EngineState.FAILED, "front end 2: it is gone")
        await engine.stop()
        assert log.exists() == fails
        log.unlink(missing_ok=True)

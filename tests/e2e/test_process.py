"""The process as an operator meets it: starting, failing to start, stopping."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from demo_model import SMALL_MODEL
from gateway.client import SessionClosed, connect
from gateway.protocol.messages import SessionDraining, TranslationDelta, TranslationFinal
from tests.e2e.test_real_engine import LONG
from tests.processes import (
    GatewayProcess,
    descendants,
    engine_processes,
    gateway_process,
)

engine = pytest.mark.engine


def refused(*arguments: str, env: dict[str, str] | None = None) -> str:
    """What a gateway says that cannot start."""
    with gateway_process(*arguments, env=env) as gateway:
        assert gateway.process.wait(400) == 1
        gateway.end()
    assert "Traceback" not in gateway.said
    (sentence,) = [line for line in gateway.said.splitlines() if line.startswith("gateway: ")]
    return sentence


class TestRefusingToStart:
    def test_a_model_that_is_not_there(self) -> None:
        assert "There is no model at /nowhere" in refused("--model", "/nowhere")

    def test_a_model_without_a_readable_config(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text("{")
        assert "cannot be read" in refused("--model", str(tmp_path))

    def test_a_config_that_is_no_object(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text("[]")
        assert "holds no object" in refused("--model", str(tmp_path))

    def test_a_family_that_the_model_cannot_be_asked_in(self) -> None:
        assert "has no chat template" in refused("--family", "chat")

    def test_too_little_memory(self) -> None:
        assert "Too little memory" in refused(env={"GATEWAY__ENGINE__KV_CACHE_GIB": "4000"})

    def test_a_taken_port(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            assert f"Port {port} on 127.0.0.1 is taken" in refused("--engine", "simulated", "--port", port)

    def test_a_bad_setting(self, tmp_path: Path) -> None:
        file = tmp_path / "gateway.toml"
        file.write_text("prot = 8000\n")
        assert "prot" in refused("--config", str(file))

    def test_a_traceback_for_those_who_ask(self) -> None:
        # The model named by settings is looked at before an engine is started, the bundled one by its engine.
        with gateway_process("--traceback", env={"GATEWAY__ENGINE__KV_CACHE_GIB": "4096"}) as gateway:
            assert gateway.process.wait(400) == 1
            gateway.end()
        assert "Traceback" in gateway.said
        # Where in the engine's process it came from, not only that it did.
        assert "in _start" in gateway.said
        assert "Too little memory" in gateway.said

    @engine
    def test_a_model_that_vllm_cannot_load(self, tmp_path: Path) -> None:
        for file in SMALL_MODEL.iterdir():
            if file.name != "config.json":
                (tmp_path / file.name).symlink_to(file)
        config = json.loads((SMALL_MODEL / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["NoSuchModel"]}))
        sentence = refused("--model", str(tmp_path))
        assert "could not be loaded" in sentence
        assert "NoSuchModel" in sentence


def readiness(gateway: GatewayProcess) -> tuple[int, dict[str, str]]:
    try:
        with urllib.request.urlopen(f"{gateway.url}/readyz") as response:  # noqa: S310 -- our own address
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_closed_terminal_ends_it_in_order() -> None:
    with gateway_process("--engine", "simulated") as gateway:
        gateway.ready()
        assert gateway.end(signal.SIGHUP) == 0


def test_what_nohup_ignores_stays_ignored() -> None:
    with gateway_process("--engine", "simulated", prefix=("env", "--ignore-signal=HUP")) as gateway:
        gateway.ready()
        gateway.process.send_signal(signal.SIGHUP)
        assert readiness(gateway)[0] == 200
        assert gateway.end() == 0
    assert "SIGHUP" not in gateway.said


def sigterm(gateway: GatewayProcess) -> None:
    """What many supervisors do: every process of the group gets the signal."""
    os.killpg(gateway.process.pid, signal.SIGTERM)


def ctrl_c(gateway: GatewayProcess) -> None:
    """What a terminal does: every process of its foreground group gets the signal, the engine's too."""
    os.killpg(gateway.process.pid, signal.SIGINT)


async def drain(gateway: GatewayProcess, stop: Callable[[GatewayProcess], None], *langs: str) -> None:
    """A signal with work in flight: it is finished, the session is closed for a restart, and nothing is left."""
    started = descendants(gateway.process.pid)
    assert started
    async with connect(gateway.url, reads=[*langs], speaks="en", reconnect=None) as session:
        await session.final(LONG)
        seen: list[str] = []
        said, too_early = 1, 0

        async def read() -> None:
            nonlocal said, too_early
            async for message in session:
                if isinstance(message, TranslationDelta) and not seen:
                    stop(gateway)
                    seen.append("first token")
                elif isinstance(message, SessionDraining):
                    seen.append("draining")
                elif isinstance(message, TranslationFinal) and seen:
                    seen.append("final")
                elif isinstance(message, TranslationFinal):
                    # On a busy machine all may be done before anything of it is seen here: once more.
                    too_early += 1
                    if too_early == len(langs) * said:
                        said += 1
                        await session.final(LONG)

        with pytest.raises(SessionClosed) as closed:
            await read()
        assert closed.value.code == 1012
        assert closed.value.error is not None
        assert closed.value.error.code == "draining"
    # On a busy machine all may be done before the gateway hears of the signal.
    assert seen[0] == "first token"
    assert sorted(seen[1:]) == ["draining", *["final"] * (len(langs) * said - too_early)]
    assert await asyncio.to_thread(gateway.ended, started) == 0
    assert "Traceback" not in gateway.said


@engine
async def test_ctrl_c_finishes_what_is_said(real_gateway: GatewayProcess) -> None:
    await drain(real_gateway, ctrl_c, "de", "fr")


@engine
@pytest.mark.parametrize(
    "stage", ["importing vLLM", pytest.param("starting the engine process", marks=pytest.mark.long)]
)
def test_sigterm_while_the_engine_loads_ends_the_process(stage: str) -> None:
    with gateway_process() as gateway:
        gateway.wait_for(stage)
        assert gateway.end() == 0
    assert "Traceback" not in gateway.said


@engine
@pytest.mark.long
def test_killed_loading_gateway_leaves_no_engine_process() -> None:
    with gateway_process() as gateway:
        gateway.wait_for("starting the engine process")
        while not engine_processes(gateway):
            time.sleep(0.1)
        assert gateway.end(signal.SIGKILL) == -signal.SIGKILL

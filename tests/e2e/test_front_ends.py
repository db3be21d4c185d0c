"""A real engine with two front ends, for two workers."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.client import ClientSession, connect
from gateway.protocol.messages import TranslationFailed, TranslationFinal
from tests.processes import GatewayProcess, alive, descendants, gateway_process

pytestmark = pytest.mark.engine

SENTENCES = {
    "Can you hear me?": "Können Sie mich hören?",
    "Let's move the launch to Friday.": "Verschieben wir die Markteinführung auf Freitag.",
}

# Its processes.
OF_ENGINE = re.compile(r"gateway engine.*|VLLM::EngineCore")
ENGINE = ["VLLM::EngineCore", "gateway engine front end 1", "gateway engine front end 2", "gateway engine host"]


def titles(gateway: GatewayProcess) -> dict[int, str]:
    """Process → its name, of all below the gateway."""
    return {
        pid: Path(f"/proc/{pid}/cmdline").read_bytes().strip(b"\0").decode()
        for pid in descendants(gateway.process.pid)
        if alive(pid)
    }


async def said(session: ClientSession, text: str) -> str:
    await session.final(text)
    async for message in session:
        assert not isinstance(message, TranslationFailed), message
        if isinstance(message, TranslationFinal):
            return message.text
    raise AssertionError("the session ended")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """It is ready; nothing of it is left afterwards."""
    arguments = ("--workers", "2", "--state-dir", str(tmp_path_factory.mktemp("state")))
    with gateway_process(*arguments, env={"GATEWAY__ENGINE__FRONT_ENDS": "2"}) as gateway:
        yield gateway.ready()
        pids = [*titles(gateway)]
        assert gateway.end() == 0
    assert not [pid for pid in pids if alive(pid)]


def engine_of(gateway: GatewayProcess) -> list[str]:
    found = (OF_ENGINE.match(name) for name in titles(gateway).values())
    return sorted(match.group() for match in found if match is not None)


async def test_workers_ask_one_engine_by_different_processes(gateway: GatewayProcess) -> None:
    assert engine_of(gateway) == ENGINE
    started: set[str] = set()
    while len(started) < 2:  # at least one session at each worker
        async with connect(gateway.url, speaks="en", reads=["de"]) as session:
            translated = [await said(session, text) for text in SENTENCES]
        assert translated == [*SENTENCES.values()]
        page = await asyncio.to_thread(gateway.get, "/metrics")
        started |= set(re.findall(r'gateway_sessions_started_total\{worker="(\d)"\} [1-9]', page))

    samples = [line.rpartition(" ")[0] for line in page.splitlines() if not line.startswith("#")]
    assert len(samples) == len(set(samples)), "one page"
    cpu = [name for name in samples if name.startswith("gateway_engine_process_cpu_seconds_total")]
    assert sorted(cpu) == [
        'gateway_engine_process_cpu_seconds_total{engine="default",front_end="1"}',
        'gateway_engine_process_cpu_seconds_total{engine="default",front_end="2"}',
        'gateway_engine_process_cpu_seconds_total{engine="default"}',
    ]
    # Both asked for prompts, which are counted together.
    asked = await asyncio.to_thread(gateway.metric, "gateway_prompt_tokens_total")
    assert await asyncio.to_thread(gateway.metric, "vllm:prefix_cache_queries_total") >= asked > 0
    while await asyncio.to_thread(gateway.metric, "gateway_engine_running"):  # it is told a moment later
        await asyncio.sleep(0.05)
    assert await asyncio.to_thread(gateway.metric, "gateway_engine_step_seconds_count") > 0


def test_the_log_of_an_engine_of_which_a_front_end_dies_is_kept_and_named(gateway: GatewayProcess) -> None:
    before = {name: pid for pid, name in titles(gateway).items() if OF_ENGINE.match(name)}
    os.kill(before["gateway engine front end 2"], signal.SIGKILL)
    died = r"the engine died: front end 2 ended by signal 9 \(log: (\S+)\)"
    log = Path(gateway.wait_for(died).group(1))
    gateway.wait_for("the engine is ready again after")
    assert "EngineCore" in log.read_text()
    assert engine_of(gateway) == ENGINE
    assert not [pid for pid in before.values() if alive(pid)]
    log.unlink()

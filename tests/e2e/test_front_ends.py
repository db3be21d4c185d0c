"""A real engine with two front ends, for two workers."""

from __future__ import annotations

import asyncio
import re
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


async def test_workers_ask_one_engine_by_different_processes(tmp_path: Path) -> None:
    arguments = ("--workers", "2", "--state-dir", str(tmp_path))
    with gateway_process(*arguments, env={"GATEWAY__ENGINE__FRONT_ENDS": "2"}) as gateway:
        await asyncio.to_thread(gateway.ready)
        names = titles(gateway)
        ours = [name for name in names.values() if name.startswith("gateway engine")]
        assert sorted(ours) == ["gateway engine front end 1", "gateway engine front end 2", "gateway engine host"]
        assert sum(name.startswith("VLLM::EngineCore") for name in names.values()) == 1

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
        assert await asyncio.to_thread(gateway.end) == 0
    assert not [pid for pid in names if alive(pid)]

"""A gateway with a remote engine: `gateway serve` in front of a real `vllm serve`, which dies under load."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.client import connect
from gateway.protocol.messages import Error, TranslationFailed, TranslationFinal, UtteranceAccepted
from tests.e2e.test_real_engine import SENTENCES
from tests.processes import GatewayProcess, gateway_process
from tests.vllm_server import VllmServer, vllm_server

# A machine that others use as well takes minutes to start a server twice.
pytestmark = [
    pytest.mark.engine,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(1_800),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[VllmServer]:
    async with vllm_server(max_num_seqs=8, api_key="secret") as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(server: VllmServer) -> AsyncIterator[GatewayProcess]:
    settings = {
        "GATEWAY__ENGINE__API_KEY": "secret",
        "GATEWAY__ENGINE__RESTART_BACKOFF_S": "0",
        "GATEWAY__LIMITS__UTTERANCES_IN_FLIGHT": "100",
    }
    arguments = ("--engine", "remote", "--engine-url", server.url, "--max-num-seqs", "8")
    with gateway_process(*arguments, env=settings) as process:
        yield await asyncio.to_thread(process.ready)
        assert await asyncio.to_thread(process.end) == 0
    assert "secret" not in process.said


async def test_what_was_accepted_outlives_the_server(server: VllmServer, gateway: GatewayProcess) -> None:
    async with connect(gateway.url, speaks="en", reads=["de"]) as session:
        finals: dict[str, str] = {}
        accepted: set[str] = set()
        interrupted = asyncio.Event()
        more = asyncio.Event()

        async def read() -> None:
            async for message in session:
                assert not isinstance(message, TranslationFailed), message
                match message:
                    case Error(code="engine_restarting"):
                        interrupted.set()
                    case UtteranceAccepted():
                        accepted.add(message.id)
                    case TranslationFinal():
                        finals[message.utterance] = message.text
                more.set()

        async def until(count: int) -> None:
            while len(finals) < count:
                more.clear()
                await more.wait()

        reading = asyncio.create_task(read())
        for sentence in SENTENCES:
            await session.final(sentence)
        await until(len(SENTENCES))
        before = list(finals.values())

        # It dies with work in it, and more is accepted while it is away.
        for _ in range(8):
            for sentence in SENTENCES:
                await session.final(sentence)
        server.signal_engine(signal.SIGKILL)
        await interrupted.wait()
        for sentence in SENTENCES[:4]:
            await session.final(sentence)
        assert gateway.metric("gateway_engine_ready") == 0
        await server.end()
        await server.start()
        await until(9 * len(SENTENCES) + 4)
        assert accepted == finals.keys()
        assert set(finals.values()) == set(before)
        assert await asyncio.to_thread(gateway.metric, "gateway_engine_ready") == 1
        reading.cancel()
        await asyncio.wait([reading])


async def test_workers_share_a_remote_engine(server: VllmServer, tmp_path: Path) -> None:
    arguments = ("--engine", "remote", "--engine-url", server.url, "--max-num-seqs", "8")
    workers = ("--workers", "2", "--state-dir", str(tmp_path))
    with gateway_process(*arguments, *workers, env={"GATEWAY__ENGINE__API_KEY": "secret"}) as process:
        await asyncio.to_thread(process.ready)

        async def translated(sentence: str) -> str:
            async with connect(process.url, speaks="en", reads=["de"]) as session:
                await session.final(sentence)
                async for message in session:
                    if isinstance(message, TranslationFinal):
                        return message.text
            raise AssertionError("the session ended")

        texts = await asyncio.gather(*(translated(SENTENCES[n % 4]) for n in range(16)))
        assert len(set(texts)) == 4
        page = await asyncio.to_thread(process.get, "/metrics")
        assert page.count("\nvllm:num_requests_running{") == 1
        assert await asyncio.to_thread(process.end) == 0

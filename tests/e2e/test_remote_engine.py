"""A gateway with a remote engine: `gateway serve` in front of a real `vllm serve`, which dies under load."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.client import connect
from gateway.protocol.messages import Error, TranslationFailed, TranslationFinal, UtteranceAccepted
from tests.e2e.test_real_engine import SENTENCES
from tests.processes import GatewayProcess, gateway_process
from tests.vllm_server import VllmServer

# A machine that others use as well takes minutes to start a server twice.
pytestmark = [
    pytest.mark.engine,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1_800),
]


@contextlib.asynccontextmanager
async def gateway_of(server: VllmServer, *arguments: str) -> AsyncIterator[GatewayProcess]:
    """A gateway that asks the server; it is ready."""
    await server.revive()
    settings = {
        "GATEWAY__ENGINE__API_KEY": "secret",
        "GATEWAY__ENGINE__RESTART_BACKOFF_S": "0",
        "GATEWAY__LIMITS__UTTERANCES_IN_FLIGHT": "100",
    }
    remote = ("--engine", "remote", "--engine-url", server.url, "--max-num-seqs", "4")
    with gateway_process(*remote, *arguments, env=settings) as process:
        yield await asyncio.to_thread(process.ready)
        assert await asyncio.to_thread(process.end) == 0
    assert "secret" not in process.said


async def test_what_was_accepted_outlives_the_server(real_server: VllmServer) -> None:
    async with gateway_of(real_server) as gateway, connect(gateway.url, speaks="en", reads=["de"]) as session:
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
        real_server.signal_engine(signal.SIGKILL)
        await interrupted.wait()
        for sentence in SENTENCES[:4]:
            await session.final(sentence)
        assert gateway.metric("gateway_engine_ready") == 0
        await real_server.end()
        await real_server.start()
        await until(9 * len(SENTENCES) + 4)
        assert accepted == finals.keys()
        assert set(finals.values()) == set(before)
        assert await asyncio.to_thread(gateway.metric, "gateway_engine_ready") == 1
        reading.cancel()
        await asyncio.wait([reading])


async def test_workers_share_a_remote_engine(real_server: VllmServer, tmp_path: Path) -> None:
    async with gateway_of(real_server, "--workers", "2", "--state-dir", str(tmp_path)) as gateway:

        async def translated(sentence: str) -> str:
            async with connect(gateway.url, speaks="en", reads=["de"]) as session:
                await session.final(sentence)
                async for message in session:
                    if isinstance(message, TranslationFinal):
                        return message.text
            raise AssertionError("the session ended")

        texts = await asyncio.gather(*(translated(SENTENCES[n % 4]) for n in range(16)))
        assert len(set(texts)) == 4
        page = await asyncio.to_thread(gateway.get, "/metrics")
        assert page.count("\nvllm:num_requests_running{") == 1

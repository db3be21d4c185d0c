"""The gateway under test, in this process: the real application on a loopback socket.

Knows: `gateway.app` and uvicorn. Must not know: what is measured, or how.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import uvicorn

from gateway.app import Gateway, server_config
from gateway.config import Settings
from gateway.domain.engine import EngineState
from gateway.domain.ports import Engine
from gateway.engines.vllm import hardware
from gateway.server.uvicorn_server import listen
from loadtest.results import LoadtestError

__all__ = ["engine_dtype", "serving"]

_LOOK_S = 0.2


def engine_dtype(settings: Settings) -> str:
    """What the engine computes in, as far as that is known before it is asked."""
    engine = settings.engine
    if engine.kind == "simulated":
        return "none"
    return hardware.cpu_dtype() if engine.dtype == "auto" and not hardware.gpu_present() else engine.dtype


class _Server(uvicorn.Server):
    """A uvicorn that says when it listens and leaves signals to whoever runs the load test."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@contextlib.asynccontextmanager
async def serving(
    settings: Settings,
    say: Callable[[str], object],
    port: int = 0,
    *,
    build: Callable[[], Engine] | None = None,
) -> AsyncIterator[tuple[Gateway, str]]:
    """A gateway whose engine is ready, and its address; both are gone when the block ends.

    port: a free one, or 0 to find one. say: told what the engine is doing while it loads. build: makes the engine,
    where it is not the one that the settings name. Raises `LoadtestError` when it cannot start.
    """
    logging.getLogger("gateway").setLevel(logging.WARNING)
    gateway = Gateway(settings, build)
    with listen("127.0.0.1", port) as sock:
        server = _Server(server_config(gateway))
        async with asyncio.TaskGroup() as tasks:
            served = tasks.create_task(server.serve(sockets=[sock]))
            try:
                await server.listening.wait()
                await _ready(gateway, say)
                yield gateway, f"http://127.0.0.1:{sock.getsockname()[1]}"
            finally:
                # Orderly also when the block failed or was cancelled: the engine's processes end with the server.
                server.should_exit = True
                await asyncio.wait([served])


async def _ready(gateway: Gateway, say: Callable[[str], object]) -> None:
    while True:
        if gateway.failure is not None:
            raise LoadtestError(gateway.failure.message)
        health = gateway.engine.health()
        if health.state is EngineState.READY:
            return
        say(f"loading the engine, {health.reason}")
        await asyncio.sleep(_LOOK_S)

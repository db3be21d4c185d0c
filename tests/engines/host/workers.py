"""One engine that several workers share over a Unix socket, all in the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.domain.engine import EngineHealth, EngineState
from gateway.engines.host.main import serve
from gateway.engines.host.proxy import Host, HostedEngine
from gateway.engines.host.shared import SharedEngine
from gateway.engines.simulated import SimulatedEngine

READY = EngineHealth(EngineState.READY)
RESTARTING = EngineHealth(EngineState.RESTARTING, "It is being started again.")


class Shared:
    """far: the engine itself. parent: how the parent sees it. path: where workers find it."""

    def __init__(self, far: SimulatedEngine, path: Path) -> None:
        self.far = far
        self.path = path
        sock, theirs = socket.socketpair()
        self.parent = HostedEngine(lambda: Host(sock, None))
        self._serving = asyncio.create_task(self._serve(theirs))

    async def _serve(self, sock: socket.socket) -> None:
        await serve(sock, self.far, asyncio.ensure_future(self.far.start()), self.path)

    async def die(self) -> None:
        """As the host's process does when it is killed."""
        self._serving.cancel()
        await asyncio.wait([self._serving])

    async def end(self) -> None:
        await self.parent.stop()
        await asyncio.wait([self._serving])


@asynccontextmanager
async def shared_engine(far: SimulatedEngine) -> AsyncIterator[Shared]:
    """It is ready."""
    with TemporaryDirectory() as folder:
        shared = Shared(far, Path(folder) / "engine.sock")
        await shared.parent.start()
        try:
            yield shared
        finally:
            await shared.end()


@asynccontextmanager
async def worker(shared: Shared) -> AsyncIterator[SharedEngine]:
    """A worker's engine; it is ready."""
    engine = SharedEngine()
    engine.told(READY, shared.path)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()

"""One engine that several workers share over a Unix socket, all in the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.domain.engine import EngineHealth, EngineState, TokenEvent
from gateway.engines.host.main import Role, serve
from gateway.engines.host.messages import Wanted
from gateway.engines.host.proxy import Host, HostedEngine
from gateway.engines.host.shared import SharedEngine
from gateway.engines.simulated import Script, SimulatedEngine, simulated_engines
from gateway.engines.supervisor import RestartPolicy, Supervisor
from gateway.translation.scheduling.scheduler import Scheduler
from tests.engines.host.pairs import Pair, request
from tests.generations import events_of
from tests.usual import usual

READY = EngineHealth(EngineState.READY)
RESTARTING = EngineHealth(EngineState.RESTARTING, "It is being started again.")


class Shared(Pair):
    """A pair of which the near end is the parent of workers."""

    def __init__(self, far: SimulatedEngine, path: Path) -> None:
        super().__init__(far, path)
        self.path = path
        self.parent = self.near
        self._serving = asyncio.create_task(self.serve())

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
    engine.follow_parent(READY, shared.path)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


async def begin(engine: SharedEngine, count: int) -> list[AsyncGenerator[TokenEvent, None]]:
    """So many generations of a text that does not end, each of which runs."""
    running = [events_of(engine, request("endless", str(n))) for n in range(count)]
    for generation in running:
        await anext(generation)
    return running


async def close(running: list[AsyncGenerator[TokenEvent, None]]) -> None:
    for generation in running:
        await generation.aclose()


def slots(*engines: SharedEngine) -> list[int]:
    return [engine.capacity().max_running for engine in engines]


class Fleet:
    """Workers, each with a scheduler, on one engine that is started again whenever it dies."""

    def __init__(self, script: Script, folder: Path) -> None:
        self._folder = folder
        self._new_engine = simulated_engines(script)
        self._path: Path | None = None
        self._hosts: list[asyncio.Future[None]] = []
        policy = usual(RestartPolicy, max_restarts=100, restart_backoff_s=0)
        self.parent = usual(Supervisor, self._build, policy, on_change=self._tell)
        self.engines: list[SharedEngine] = []
        self.schedulers: list[Scheduler] = []

    def _build(self) -> HostedEngine:
        ours, theirs = socket.socketpair()
        far = self._new_engine()
        self._path = self._folder / f"engine-{len(self._hosts)}.sock"
        starting = asyncio.ensure_future(far.start())
        self._hosts.append(asyncio.ensure_future(serve(theirs, far, starting, Role(self._path))))
        return HostedEngine(lambda: Host(ours, None))

    def _tell(self, health: EngineHealth) -> None:
        for engine in self.engines:
            engine.follow_parent(health, self._path)

    async def add_worker(self) -> Scheduler:
        engine = SharedEngine()
        scheduler = usual(Scheduler, engine, max_waiting=100)
        engine.on_change = lambda _: scheduler.engine_changed()
        engine.on_slots = scheduler.engine_changed
        engine.waiting = lambda: Wanted(*scheduler.wanted())
        engine.follow_parent(self.parent.health(), self._path)
        await engine.start()
        self.engines.append(engine)
        self.schedulers.append(scheduler)
        return scheduler

    async def stop(self) -> None:
        for engine in self.engines:
            await engine.stop()
        await self.parent.stop()
        await asyncio.wait(self._hosts)


@asynccontextmanager
async def fleet(script: Script, workers: int) -> AsyncIterator[Fleet]:
    """All are ready."""
    with TemporaryDirectory() as folder:
        running = Fleet(script, Path(folder))
        await running.parent.start()
        for _ in range(workers):
            await running.add_worker()
        try:
            yield running
        finally:
            await running.stop()

"""Gateways with several workers: the parent in the test's own event loop, the workers and the engine as ever."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import signal
import socket
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect

from gateway.config import EngineSettings, Settings, StoreSettings
from gateway.engines.simulated import Rule, Script
from gateway.server.uvicorn_server import reserve
from gateway.workers.parent import Parent
from gateway.workers.process import WorkerProcess
from tests.redis_server import shared_server

# Long enough for something to happen meanwhile.
LONG = " ".join(f"w{n}" for n in range(200))


def settings(script: Script | None = None, **fields: Any) -> Settings:
    """Workers on the tests' Redis, each time with keys of their own; a busy machine is no reason to refuse."""
    store = StoreSettings(url=shared_server().url, prefix=f"{secrets.token_hex(4)}:")
    engine = EngineSettings(
        kind="simulated",
        script=script or Script(token_s=0.005),
        restart_backoff_s=0,
        stall_s=fields.pop("stall_s", 3_600),
    )
    fields = {"max_queue_s": 3_600, "segment_chars": 10_000, "delta_interval_s": 0.1, "port": 0, **fields}
    return Settings(engine=engine, store=store, **fields)


def stalling(**fields: Any) -> Script:
    """It translates a word of "STALL two" and then waits to be cancelled."""
    return Script(rules=(Rule(match="STALL", stall_after=2),), **fields)


class Running:
    """A gateway whose workers all serve and whose engine is ready."""

    def __init__(self, parent: Parent, port: int) -> None:
        self.parent = parent
        self.port = port
        self._sessions: list[Session] = []

    def worker(self, number: int) -> WorkerProcess:
        return self.parent._workers[number]

    @property
    def pids(self) -> dict[int, int]:
        """Number of a worker → its process."""
        return {number: worker.pid for number, worker in sorted(self.parent._workers.items())}

    @property
    def host_pid(self) -> int:
        """The only engine's process."""
        return self.host_of("")

    def host_of(self, name: str) -> int:
        """The process of one of several engines."""
        hosted = self.parent.engines.hosted[name]
        assert hosted._host is not None
        assert hosted._host._process is not None
        assert hosted._host._process.pid is not None
        return hosted._host._process.pid

    async def all_serve(self) -> None:
        await self.parent.until_all_serve()
        await self.ready()

    async def ready(self) -> None:
        while (await self.get("/readyz"))[0] != 200:
            await asyncio.sleep(0.05)

    async def get(self, path: str) -> tuple[int, str]:
        return await asyncio.to_thread(get, f"http://127.0.0.1:{self.port}{path}")

    async def metric(self, sample: str) -> float:
        """The value of one sample, such as `gateway_sessions{worker="1"}`, once its worker answers in time."""
        while not (found := re.findall(rf"^{re.escape(sample)} (\S+)$", await self._metrics(), re.MULTILINE)):
            pass
        assert len(found) == 1, (sample, found)
        return float(found[0])

    async def _metrics(self) -> str:
        return (await self.get("/metrics"))[1]

    def next_engine_is_sound(self) -> None:
        """Once the only engine is started again, no fault of its script comes again."""
        hosted = self.parent.engines._engines[""]
        hosted.settings = replace(hosted.settings, script=Script())

    @contextmanager
    def held(self) -> Iterator[None]:
        """The only engine gives nothing meanwhile."""
        host = self.host_pid
        os.kill(host, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(host, signal.SIGCONT)

    async def runs(self, engine: str, count: int) -> None:
        """Until the engine is known to run at least so many sequences."""
        while await self.metric(f'gateway_engine_running{{engine="{engine}"}}') < count:
            await asyncio.sleep(0.05)

    async def session(self, number: int, **more: Any) -> Session:
        """A session at this worker, reading Japanese and speaking English. more: fields of `session.start`."""
        others = []
        while True:
            before = await self.metric(f'gateway_sessions_started_total{{worker="{number}"}}')
            session = Session(await connect(f"ws://127.0.0.1:{self.port}/v1/stream", compression=None))
            self._sessions.append(session)
            await session.start(**more)
            if await self.metric(f'gateway_sessions_started_total{{worker="{number}"}}') > before:
                break
            others.append(session)
        for other in others:
            await other.connection.close()
        return session

    async def close(self) -> None:
        """All clients leave."""
        for session in self._sessions:
            session.connection.transport.abort()
            await session.connection.wait_closed()


class Session:
    """One participant of a meeting of its own, message by message."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.received: list[dict[str, Any]] = []

    async def start(self, **more: Any) -> None:
        await self.send(type="session.start", reads=["ja"], speaks="en", **more)
        await self.until("session.started")

    async def send(self, **message: Any) -> None:
        await self.connection.send(json.dumps(message))

    async def say(self, id: str, text: str = "good morning") -> None:
        await self.send(type="utterance.final", id=id, rev=1, text=text)

    async def is_accepted(self, id: str) -> None:
        """It will be translated, whatever happens."""
        await self.say(id)
        await self.until("utterance.accepted", id=id)

    async def cancel(self, id: str) -> None:
        """What was said last, and is not translated yet."""
        await self.send(type="utterance.cancel", id=id)
        await self.until("translation.failed", utterance=id)

    def ended(self) -> dict[str, str]:
        """Utterance → how its translation ended, of those that have."""
        ends = ("translation.final", "translation.failed")
        return {each["utterance"]: each["type"] for each in self.received if each["type"] in ends}

    async def finished(self, id: str) -> dict[str, Any]:
        """What was said is translated, or was already."""
        for message in self.received:
            if message["type"] == "translation.final" and message["utterance"] == id:
                return message
        return await self.until("translation.final", utterance=id)

    async def next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self.connection.recv())
        self.received.append(message)
        return message

    async def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The next message of a kind with these fields."""
        while True:
            message = await self.next()
            if message["type"] == kind and message.items() >= fields.items():
                return message


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url) as response:  # noqa: S310 -- our own address
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@asynccontextmanager
async def workers(given: Settings, count: int = 2) -> AsyncIterator[Running]:
    """Runs until the block ends, and then drains."""
    with tempfile.TemporaryDirectory(prefix="gateway-") as folder, reserve("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        parent = Parent(given, count, Path(folder), port)
        running = asyncio.create_task(parent.run())
        gateway = Running(parent, port)
        try:
            await gateway.all_serve()
            yield gateway
        finally:
            if not parent.stopping:
                parent.stop()
            await running
            await gateway.close()
        assert parent.failure is None


def taken_port() -> socket.socket:
    """Somebody else who listens."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    return taken

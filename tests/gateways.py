"""A whole gateway in the test's own event loop, on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect

from gateway.app import Gateway
from gateway.config import Settings
from gateway.domain.ports import Engine
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.protocol.codec import JSON, Codec
from gateway.protocol.messages import ClientMessage, ServerMessage
from gateway.server.uvicorn_server import listen
from gateway.serving import server_config

SCRIPT = Script(
    first_token_s=0.002,
    token_s=0.002,
    rules=(
        Rule(match="FAIL", fail_after=1),
        Rule(match="STALL", stall_after=0),
        Rule(match="LONG", repeat=100),
        Rule(match="SLOW", token_s=0.1),
    ),
)


class Running:
    """A gateway that serves: `port`, and `gateway` to look inside.

    engines: every engine that was built, the newest last.
    """

    def __init__(self, gateway: Gateway, server: uvicorn.Server, port: int, engines: list[Engine]) -> None:
        self.gateway = gateway
        self.server = server
        self.port = port
        self.engines = engines

    def kill_engine(self, reason: str = "the test says so") -> None:
        """The simulated engine dies as if its process had been killed."""
        engine = self.engines[-1]
        assert isinstance(engine, SimulatedEngine)
        engine.fail(reason)

    @property
    def url(self) -> str:
        scheme = "ws" if self.gateway.settings.tls_cert is None else "wss"
        return f"{scheme}://127.0.0.1:{self.port}/v1/stream"

    @contextlib.asynccontextmanager
    async def peer(self, codec: Codec = JSON, **options: Any) -> AsyncIterator[Peer]:
        """A client that speaks the protocol message by message."""
        # A client that leaves without reading what is on its way would wait for its own queue to empty.
        options = {"subprotocols": [codec.subprotocol], "compression": None, "close_timeout": 0.5, **options}
        async with connect(self.url, **options) as connection:
            yield Peer(connection, codec)


class Peer:
    """One side of a transcript."""

    def __init__(self, connection: ClientConnection, codec: Codec) -> None:
        self.connection = connection
        self._codec = codec

    async def send(self, *messages: ClientMessage) -> None:
        for message in messages:
            await self.connection.send(self._codec.encode(message))

    async def receive(self) -> ServerMessage:
        return self._codec.decode_server(await self.connection.recv())

    async def until(self, kind: type[Any], count: int = 1) -> list[Any]:
        """Everything up to the `count`-th message of a kind."""
        received: list[Any] = []
        while sum(isinstance(message, kind) for message in received) < count:
            received.append(await self.receive())
        return received


@contextlib.asynccontextmanager
async def running(
    settings: Settings | None = None, engine: Engine | None = None, script: Script = SCRIPT, port: int = 0
) -> AsyncIterator[Running]:
    """Serve on a free port, any unless given, until the block ends. The engine is simulated unless given.

    Unless a test sets its own `max_queue_s`, a busy machine is no reason to refuse what waits.
    """
    settings = settings or Settings()
    if settings.max_queue_s == Settings().max_queue_s:
        settings = replace(settings, max_queue_s=3_600.0)
    engines: list[Engine] = []

    def build() -> Engine:
        engines.append(engine if engine is not None and not engines else SimulatedEngine(script))
        return engines[-1]

    gateway = Gateway(settings, None if settings.engines else build)
    await gateway.store.open()
    sock: socket.socket = listen("127.0.0.1", port)
    server = _Quiet(server_config(gateway))
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        yield Running(gateway, server, sock.getsockname()[1], engines)
    finally:
        server.should_exit = True
        await serving
        sock.close()


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield  # the test runner's signals are its own


async def until_idle(gateway: Running) -> None:
    """Until nothing waits or runs, neither here nor in the engine; the suite's timeout is the bound."""
    scheduler, engine = gateway.gateway.scheduler, gateway.gateway.engine
    while scheduler.running or scheduler.waiting or engine.capacity().running:
        await asyncio.sleep(0.005)

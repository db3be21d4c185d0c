"""Serves one engine to several gateways over a listening Unix socket, and divides its seats among them.

A gateway that goes away takes its generations with it. One that does not read is dropped before it costs more
than a few megabytes, and one that does not answer keeps no seats that it does not use.
Knows: the engine's work, who is connected, when each last said what it wants.
Must not know: how the seats are divided (`seats`), who starts the gateways, how the engine is started.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.domain.engine import EngineState
from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import Demand, Generate, Seats, Started, ToGateway, ToHost
from gateway.engines.host.seats import Wanted, grants
from gateway.engines.host.work import EngineWork, GatewayWork

# For how long a gateway is believed that more of its translations wait; it says so more often than that. One that
# is frozen stops saying it.
DEMAND_S = 2.0

# Shortest time between two divisions of the seats: about that of a token.
_DIVIDE_S = 0.01

_UNREAD_BYTES = 4 * 2**20


class Sharing:
    """The gateways that share an engine, which is ready."""

    def __init__(self, work: EngineWork) -> None:
        self.work = work
        self._gateways: list[_Gateway] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        self._due: asyncio.TimerHandle | None = None
        self._divided_s = 0.0

    @asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Accept gateways at `path`, which must be in a private folder, while the context lasts."""
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(lambda: self._connect().channel, path)
        try:
            yield
        finally:
            server.close()
            if self._due is not None:
                self._due.cancel()
            for gateway in [*self._gateways]:
                gateway.channel.close()
                self._leave(gateway)
            if self._closing:
                await asyncio.wait(self._closing)

    def divide(self) -> None:
        """Divide the seats again, soon; called whenever demand may have changed."""
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(max(loop.time(), self._divided_s + _DIVIDE_S), self._divide)

    def _divide(self) -> None:
        self._due = None
        self._divided_s = now_s = asyncio.get_running_loop().time()
        capacity = self.work.capacity()
        wanted = [gateway.wanted(now_s) for gateway in self._gateways]
        for gateway, granted in zip(self._gateways, grants(wanted, capacity.max_running), strict=True):
            gateway.tell(Seats(granted, capacity.running, capacity.waiting, capacity.lag_s))

    def _connect(self) -> _Gateway:
        gateway = _Gateway(self, self.work, f"{next(self._numbers)}:")
        self._gateways.append(gateway)
        return gateway

    def _leave(self, gateway: _Gateway) -> None:
        if gateway in self._gateways:
            self._gateways.remove(gateway)
            closing = asyncio.create_task(gateway.work.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self.divide()


class _Gateway:
    """One of them."""

    def __init__(self, sharing: Sharing, work: EngineWork, ids: str) -> None:
        self._sharing = sharing
        self._waiting = Wanted()
        self._said_s = 0.0
        self._seats: Seats | None = None
        self.channel: Channel[ToGateway, ToHost] = _Greeting(self, work)
        self.work = GatewayWork(work, self.channel.say, ids=ids, on_change=sharing.divide)

    def wanted(self, now_s: float) -> Wanted:
        running = self.work.wanted
        waiting = self._waiting if now_s - self._said_s < DEMAND_S else Wanted()
        return Wanted(running.finals + waiting.finals, running.others + waiting.others)

    def tell(self, seats: Seats) -> None:
        if seats != self._seats:
            self._seats = seats
            self.channel.say(seats)

    def heard(self, message: ToHost) -> None:
        match message:
            case Demand() | Generate():
                self._waiting = message.waiting
                self._said_s = asyncio.get_running_loop().time()
                self._sharing.divide()
        self.work.heard(message)

    def lost(self) -> None:
        self._sharing._leave(self)


class _Greeting(Channel[ToGateway, ToHost]):
    """Says what the engine can do as soon as there is a connection."""

    def __init__(self, gateway: _Gateway, work: EngineWork) -> None:
        super().__init__(ToHost, gateway.heard, gateway.lost, unread_bytes=_UNREAD_BYTES)
        self._gateway = gateway
        self._engine = work.engine

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._engine.health().state is not EngineState.READY:
            self.close()
            return
        self.say(Started(profile=self._engine.profile(), max_running=self._engine.capacity().max_running))
        self._gateway._sharing.divide()

"""Serves one engine to every gateway that asks it, and divides its slots among them.

The gateway that has the host is one of them; where there are workers, the others come to a listening Unix socket.
A gateway that goes away takes its generations with it. A worker that does not read is dropped before it costs more
than a few megabytes, and a gateway that does not answer keeps no slots that it does not use.
Knows: the engine's work, which gateways are connected, when each last said what it wants.
Must not know: how the slots are divided (`slots`), who starts the gateways, how the engine is started.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import Demand, Generate, Slots, Started, ToHost
from gateway.engines.host.slots import Wanted, grants
from gateway.engines.host.work import EngineWork, GatewayWork

# For how long a gateway is believed that more of its translations wait; it says so more often than that. One that
# is frozen stops saying it.
DEMAND_S = 2.0

# Shortest time between two divisions of the slots: about that of a token.
_DIVIDE_S = 0.01

_UNREAD_BYTES = 4 * 2**20


class Sharing:
    """The gateways that ask an engine."""

    def __init__(self, work: EngineWork) -> None:
        self.work = work
        self._gateways: list[Gateway] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count()
        self._due: asyncio.TimerHandle | None = None
        self._divided_s = 0.0

    @asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Accept workers at `path`, which must be in a private folder, while the context lasts."""
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(lambda: _Worker(self), path)
        try:
            yield
        finally:
            server.close()

    def next_ids(self) -> str:
        """What the request ids of one more gateway begin with, so that those of two differ."""
        return f"{number}:" if (number := next(self._numbers)) else ""

    def join(self, gateway: Gateway) -> None:
        """One more gateway gets a share of the slots."""
        self._gateways.append(gateway)
        self.divide()

    def leave(self, gateway: Gateway) -> None:
        """It gets none any more, and what it runs ends. Does nothing for one that has not joined."""
        if gateway in self._gateways:
            self._gateways.remove(gateway)
            self._closing.add(closing := asyncio.create_task(gateway.work.close()))
            closing.add_done_callback(self._closing.discard)
            self.divide()

    async def close(self) -> None:
        """Let all gateways leave, and wait until nothing runs for them."""
        for gateway in [*self._gateways]:
            gateway.close()
            self.leave(gateway)
        if self._due is not None:
            self._due.cancel()
        if self._closing:
            await asyncio.wait(self._closing)

    def divide(self) -> None:
        """Divide the slots again, soon; called whenever demand may have changed."""
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(max(loop.time(), self._divided_s + _DIVIDE_S), self._divide)

    def _divide(self) -> None:
        self._due = None
        self._divided_s = now_s = asyncio.get_running_loop().time()
        if not self.work.ready:
            return
        capacity = self.work.capacity()
        wanted = [gateway.wanted(now_s) for gateway in self._gateways]
        for gateway, granted in zip(self._gateways, grants(wanted, capacity.max_running), strict=True):
            gateway.tell(Slots(granted, capacity.running, capacity.waiting, capacity.lag_s))


class Gateway(Channel[Any, ToHost]):
    """A gateway that asks the engine. unread_bytes: as of `Channel`."""

    def __init__(self, sharing: Sharing, *, unread_bytes: int | None = None) -> None:
        super().__init__(ToHost, self.heard, self.lost, unread_bytes=unread_bytes)
        self._sharing = sharing
        self._waiting = Wanted()
        self._said_s = 0.0
        self._slots: Slots | None = None
        self.work = GatewayWork(sharing.work, self.say, ids=sharing.next_ids(), on_change=sharing.divide)

    def wanted(self, now_s: float) -> Wanted:
        """What it runs and wants to run."""
        running = self.work.wanted
        waiting = self._waiting if now_s - self._said_s < DEMAND_S else Wanted()
        return Wanted(running.finals + waiting.finals, running.others + waiting.others)

    def tell(self, slots: Slots) -> None:
        """Say how many slots it has, if that has changed; called often."""
        if slots != self._slots:
            self._slots = slots
            self.say(slots)

    def heard(self, message: ToHost) -> None:
        """It says this."""
        match message:
            case Demand() | Generate():
                self._waiting = message.waiting
                self._said_s = asyncio.get_running_loop().time()
                self._sharing.divide()
        self.work.heard(message)

    def lost(self) -> None:
        """The connection has ended."""
        self._sharing.leave(self)


class _Worker(Gateway):
    """A gateway that comes to share the engine, which must be ready: it is told at once what the engine can do."""

    def __init__(self, sharing: Sharing) -> None:
        super().__init__(sharing, unread_bytes=_UNREAD_BYTES)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        work = self._sharing.work
        if not work.ready:
            self.close()
            return
        self.say(Started(profile=work.engine.profile(), max_running=work.engine.capacity().max_running))
        self._sharing.join(self)

"""What the store pushes: one connection of a gateway, with a channel for each meeting that is heard here.

Knows: channels, confirmations, connecting again, asking for what was missed.
Must not know: positions, what is in a push.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from gateway.domain.errors import LogUnavailable
from gateway.stores.redis.commands import Wire, unavailable, wait_s
from gateway.stores.redis.connection import Lost, NotLoaded, Refused

_log = logging.getLogger(__name__)

_Waiting = list[asyncio.Future[None]]

# Before the store is asked again for what was missed.
_ASK_AGAIN_S = 0.2


@dataclass(slots=True, eq=False)
class _Channel:
    """Who is told of what. Neither must raise."""

    deliver: Callable[[bytes], None]
    subscribed: Callable[[], None]


class Missed:
    """Asks the store for what pushes may have missed, once for each name; what fails is asked for again.

    what: the thing that is asked for, as the log calls it.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        # What is to be asked, by name.
        self._asks: dict[str, Callable[[], Awaitable[None]]] = {}
        self._noted = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask; `close` ends it."""
        self._asking = asyncio.create_task(self._ask(), name=f"{self._what} that pushes have missed")

    def note(self, name: str, ask: Callable[[], Awaitable[None]]) -> None:
        """Ask for this soon, once for each name."""
        self._asks[name] = ask
        self._noted.set()

    async def close(self) -> None:
        """Never raises."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    async def _ask(self) -> None:
        while True:
            await self._noted.wait()
            self._noted.clear()
            asks, self._asks = self._asks, {}
            results = await asyncio.gather(*(ask() for ask in asks.values()), return_exceptions=True)
            failed = False
            for (name, ask), result in zip(asks.items(), results, strict=True):
                if isinstance(result, Exception):
                    failed = True
                    if not isinstance(result, LogUnavailable):
                        _log.error("%s could not be read", self._what, exc_info=result)
                    self._asks.setdefault(name, ask)
            if failed:
                self._noted.set()
                await asyncio.sleep(_ASK_AGAIN_S)


class Pushes:
    """Channels, each subscribed until it is unsubscribed, over all connections."""

    def __init__(self, connect: Callable[[], Wire], *, patience_s: float = 5.0) -> None:
        self._connect = connect
        self._patience_s = patience_s
        self._connection: Wire | None = None
        # Channel → for each subscription that is not confirmed yet, who waits for that; oldest first.
        self._unconfirmed: dict[bytes, deque[_Waiting]] = {}
        self._channels: dict[bytes, _Channel] = {}
        self._worker: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Connect; `close` ends it."""
        self._worker = asyncio.create_task(self._work(), name="pushes of the store")

    async def subscribe(
        self, channel: bytes, deliver: Callable[[bytes], None], subscribed: Callable[[], None]
    ) -> None:
        """Returns when everything that is published from now on will be pushed. Raises `LogUnavailable`.

        deliver: is told of each push. subscribed: is told whenever the channel is subscribed; before that, pushes
        may have been missed.
        """
        if channel in self._channels and channel not in self._unconfirmed:
            return
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if channel in self._channels:
            self._unconfirmed[channel][-1].append(confirmed)
        else:
            self._channels[channel] = _Channel(deliver, subscribed)
            self._unconfirmed.setdefault(channel, deque()).append([confirmed])
            await self._send("SUBSCRIBE", channel)
        try:
            async with asyncio.timeout(self._patience_s):
                await confirmed
        except TimeoutError:
            raise unavailable("The store of the meetings' logs does not answer.") from None

    async def unsubscribe(self, channel: bytes) -> None:
        """Nothing more of this channel. Never raises."""
        if channel in self._channels:
            del self._channels[channel]
            await self._send("UNSUBSCRIBE", channel)

    async def renew(self) -> None:
        """The connection seems dead: make another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Never raises."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait([self._worker])

    async def _work(self) -> None:
        failures = 0
        while True:
            try:
                await self._listen()
            except (Lost, Refused, NotLoaded, TimeoutError):
                failures = 0 if self._connection is not None else failures + 1
            except Exception:
                _log.exception("the pushes of the store failed")
                failures += 1
            finally:
                self._connection = None
            await asyncio.sleep(wait_s(failures))

    async def _listen(self) -> None:
        connection = self._connect()
        try:
            await connection.connect()
            # One confirmation for each channel will come; who waited on an earlier connection waits for that.
            self._unconfirmed = {
                channel: deque([[each for waiting in self._unconfirmed.get(channel, ()) for each in waiting]])
                for channel in self._channels
            }
            self._connection = connection
            if self._channels:
                await connection.send([("SUBSCRIBE", *self._channels)])
            while True:
                self._received(await connection.receive())
        finally:
            with contextlib.suppress(Exception):
                await connection.close()

    async def _send(self, command: str, channel: bytes) -> None:
        if self._connection is not None:
            # If it is lost now, all channels are subscribed on the next one.
            with contextlib.suppress(Lost):
                await self._connection.send([(command, channel)])

    def _received(self, message: Any) -> None:
        if not isinstance(message, list) or len(message) != 3:
            return  # an answer to something else, or a refusal
        kind, channel, data = message
        if kind == b"message":
            if (known := self._channels.get(channel)) is not None:
                known.deliver(data)
        elif kind == b"subscribe":
            self._confirmed(channel)

    def _confirmed(self, channel: bytes) -> None:
        unconfirmed = self._unconfirmed.get(channel)
        if not unconfirmed:
            return
        waiting = unconfirmed.popleft()
        if not unconfirmed:
            del self._unconfirmed[channel]
        for each in waiting:
            if not each.done():
                each.set_result(None)
        if (known := self._channels.get(channel)) is not None:
            known.subscribed()

"""The live channel in Redis: one channel of a meeting, to which gateways publish that have members there.

Events go out over a connection of their own, many in one go, so that they do not wait for the disk.
What cannot be sent at once is dropped.

Knows: publishing, who hears it. Must not know: what the events mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from msgspec import msgpack

from gateway.domain.live import LiveEvent
from gateway.stores.redis.commands import Wire
from gateway.stores.redis.connection import Lost, NotLoaded, Refused
from gateway.stores.redis.store import RedisStore
from gateway.stores.sealing import Place

_log = logging.getLogger(__name__)

_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(LiveEvent).decode

# `Place.kind` of events.
_KIND = "live"
# Events that wait for the ones before to be sent; the oldest are dropped for more.
_MOST_WAITING = 10_000
# Events in one pipeline.
_MOST_AT_ONCE = 256
# How long the store may take for one pipeline before another connection is used.
_ANSWER_S = 3.0
# Before the store is tried again.
_PAUSE_S = 0.5


@dataclass(slots=True, eq=False)
class _Meeting:
    """One that this gateway listens to."""

    # Whether another one may listen.
    is_heard: bool = True
    # How often there was reason to believe so.
    reasons: int = 0

    def may_be_heard(self) -> None:
        self.is_heard = True
        self.reasons += 1


class RedisLiveChannel:
    """One gateway's access, once its store has started and until it is closed."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._id = store.id.encode()
        self._meetings: dict[str, _Meeting] = {}
        self._waiting: deque[tuple[str, bytes]] = deque(maxlen=_MOST_WAITING)
        self._sender: asyncio.Task[None] | None = None
        self._connection: Wire | None = None
        self._is_closed = False

    @asynccontextmanager
    async def listen(
        self, meeting: str, deliver: Callable[[str, LiveEvent], None], missed: Callable[[], None]
    ) -> AsyncIterator[None]:
        listened = self._meetings[meeting] = _Meeting()

        def heard(data: bytes) -> None:
            if data.startswith(self._id):
                return
            listened.may_be_heard()
            with contextlib.suppress(ValueError):  # of another version, or not sealed for this; that is counted
                sender = data[: len(self._id)].decode()
                event = self._store.seal.open(data[len(self._id) :], Place(_KIND, meeting, sender))
                deliver(sender, _decode(event))

        def subscribed() -> None:
            listened.may_be_heard()  # until the store says how many have heard what is sent next
            missed()

        channel = self._store.channel(meeting, "live")
        try:
            await self._store.pushes.subscribe(channel, heard, subscribed)
            yield
        finally:
            if self._meetings.get(meeting) is listened:
                del self._meetings[meeting]
                await self._store.pushes.unsubscribe(channel)

    def is_heard(self, meeting: str) -> bool:
        listened = self._meetings.get(meeting)
        return listened is not None and listened.is_heard

    def send(self, meeting: str, event: LiveEvent) -> None:
        if self._is_closed or not self.is_heard(meeting):
            return
        sealed = self._store.seal.close(_encode(event), Place(_KIND, meeting, self._store.id))
        self._waiting.append((meeting, self._id + sealed))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all(), name="live channel")

    async def close(self) -> None:
        """Never raises."""
        self._is_closed = True
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])
        await self._disconnect()

    async def _send_all(self) -> None:
        """Until nothing is left to be sent."""
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_AT_ONCE))]
                try:
                    async with asyncio.timeout(_ANSWER_S):
                        await self._publish(batch)
                except (Lost, Refused, NotLoaded, TimeoutError):
                    await self._disconnect()
                    await asyncio.sleep(_PAUSE_S)
                    self._waiting.clear()  # by now it is too late for them
        except Exception:
            _log.exception("the live channel failed")
            await self._disconnect()
        finally:
            self._sender = None

    async def _publish(self, batch: list[tuple[str, bytes]]) -> None:
        if self._connection is None:
            self._connection = self._store.new_connection()
            await self._connection.connect()
        known = ((meeting, self._meetings.get(meeting)) for meeting, _ in batch)
        before = {meeting: listened.reasons for meeting, listened in known if listened is not None}
        await self._connection.send(
            [("PUBLISH", self._store.channel(meeting, "live"), data) for meeting, data in batch]
        )
        for meeting, _ in batch:
            listeners = await self._connection.receive()
            listened = self._meetings.get(meeting)
            # A gateway may have come since it was sent.
            if listeners == 1 and listened is not None and listened.reasons == before.get(meeting):
                listened.is_heard = False

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

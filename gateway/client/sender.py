"""Sending: what has to get through, in order and at the gateway's pace; and what is sent at once or never.

Knows: the connection in use, one caller at a time on it. Must not know: why there is none, what is received.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from websockets.exceptions import ConnectionClosed

from gateway.client.connection import Connection
from gateway.client.errors import ClientError
from gateway.client.outgoing import Entry, Outgoing
from gateway.protocol.codec import Codec
from gateway.protocol.limits import Limits
from gateway.protocol.messages import ClientMessage, SessionUpdate, UtteranceFinal
from gateway.protocol.rate_limit import TokenBucket

__all__ = ["Sender"]


class Sender:
    """Sends on `connection`, which is null while there is none.

    over: why nothing can be sent any more, raised to whoever tries. wake: called with the time at which
    `send_kept` has to be called again, when somebody else than its caller found that out.
    """

    def __init__(
        self,
        connection: Connection,
        outgoing: Outgoing,
        codec: Codec,
        limits: Limits,
        wake: Callable[[float], None],
    ) -> None:
        self.connection: Connection | None = connection
        self.outgoing = outgoing
        self.over: ClientError | None = None
        self._codec = codec
        self._limits = limits
        self._wake = wake
        # Half of the burst that the gateway lets through: messages may arrive closer together than they were sent.
        self._pace = TokenBucket(limits.messages_per_s, max(limits.messages_burst / 2, 1.0))
        self._sending = False
        self._room = asyncio.Event()

    def restarted(self, connection: Connection, limits: Limits) -> None:
        """There is a connection again."""
        self.connection = connection
        self._limits = limits
        self.outgoing.window = limits.utterances_in_flight

    def lost(self) -> None:
        """There is no connection."""
        self.connection = None
        self.outgoing.lost()

    def end(self, reason: ClientError) -> None:
        """Nothing can be sent any more."""
        if self.over is None:
            self.over = reason
        self._room.set()

    def answered(self) -> None:
        """Something was answered: there may be room for more."""
        self._room.set()

    async def keep(self, message: UtteranceFinal | SessionUpdate) -> None:
        """Take on a message to get through, when there is room. Raises `ValueError`, or why all is over."""
        self.check()
        self.check_size(message)
        if isinstance(message, UtteranceFinal) and self.outgoing.keeps(message):
            return
        while self.outgoing.full:
            self._room.clear()
            await self._room.wait()
            self.check()
        self.outgoing.keep(message)
        await self.send_what_may_be_sent()

    async def send_what_may_be_sent(self) -> None:
        """For those who do not call again when the time has come."""
        due_s = await self.send_kept()
        if due_s is not None:
            self._wake(due_s)

    async def send_kept(self) -> float | None:
        """Send what may be sent now; when there will be more, as far as that is known."""
        if self._sending:
            return None  # whoever sends goes on until nothing is left
        self._sending = True
        try:
            while (connection := self.connection) is not None:
                now_s = asyncio.get_running_loop().time()
                taken = self.outgoing.take(now_s)
                if taken is None:
                    return self.outgoing.due_s()
                if (wait_s := self._pace.take(now_s)) > 0:
                    self.outgoing.put_back(taken)
                    return now_s + wait_s
                try:
                    await connection.send(taken.message if isinstance(taken, Entry) else taken)
                except ConnectionClosed:
                    self.outgoing.put_back(taken)
                    if self.connection is connection:
                        return None  # whoever reads finds out why
                except BaseException:
                    # Cancelled: it may have been sent or not, and somebody else has to go on.
                    self.outgoing.put_back(taken)
                    self._wake(now_s)
                    raise
            return None
        finally:
            self._sending = False

    async def send_now(self, message: ClientMessage) -> None:
        """Send what is worth nothing later. Raises `ConnectionClosed`, or why all is over."""
        self.check()
        while (wait_s := self._pace.take(asyncio.get_running_loop().time())) > 0:  # noqa: ASYNC110 -- its pace
            await asyncio.sleep(wait_s)
        if self.connection is not None:
            await self.connection.send(message)

    def check(self) -> None:
        """Raises why all is over, if it is."""
        if self.over is not None:
            raise self.over

    def check_size(self, message: ClientMessage) -> None:
        """Raises `ValueError` for a frame that the gateway would not read: it could not say whose it was."""
        frame = self._codec.encode(message)
        size = len(frame) if isinstance(frame, bytes) else len(frame.encode())
        if size > self._limits.message_bytes:
            raise ValueError(f"The message has {size} bytes; the gateway takes {self._limits.message_bytes}.")

"""Sends on the connection in use: queued messages in order and at the gateway's rate, others at once or never.

Knows: the connection in use, and that one caller at a time sends on it.
Must not know: why there is no connection, what is received.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from websockets.exceptions import ConnectionClosed

from gateway.client.connection import Connection
from gateway.client.errors import ClientError
from gateway.client.outgoing import Entry, Outgoing
from gateway.protocol.codec import Codec, well_formed
from gateway.protocol.limits import Limits
from gateway.protocol.messages import ClientMessage, SessionUpdate, UtteranceFinal
from gateway.protocol.rate_limit import TokenBucket


class Sender:
    """Sends messages on one connection after another.

    wake: called with the time at which `send_kept` must be called again, if its own caller cannot do that.
    """

    def __init__(
        self,
        connection: Connection,
        outgoing: Outgoing,
        codec: Codec,
        limits: Limits,
        wake: Callable[[float], None],
    ) -> None:
        # None while there is no connection.
        self.connection: Connection | None = connection
        self.outgoing = outgoing
        # Why nothing can be sent any more. Every later attempt to send raises it.
        self.over: ClientError | None = None
        self._codec = codec
        self._limits = limits
        self._wake = wake
        # Half of the burst that the gateway accepts: messages may arrive closer together than they were sent.
        self._pace = TokenBucket(limits.messages_per_s, max(limits.messages_burst / 2, 1.0))
        self._sending = False
        self._room = asyncio.Event()

    def restarted(self, connection: Connection, limits: Limits, *, recovered: bool) -> None:
        """There is a new connection. recovered: in the same session."""
        self.connection = connection
        if not recovered:
            self.outgoing.begin_again()
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
        """The gateway has answered something, so there may be room in the queue."""
        self._room.set()

    async def keep(self, message: UtteranceFinal | SessionUpdate) -> None:
        """Queue a message when there is room. Raises `ValueError`, or `over` if it is set."""
        self.check()
        message = well_formed(message)
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
        """Send what may be sent now, and let `wake` arrange the rest. For callers that do not call again."""
        due_s = await self.send_kept()
        if due_s is not None:
            self._wake(due_s)

    async def send_kept(self) -> float | None:
        """Send what may be sent now. Returns when to call again, if that is known."""
        if self._sending:
            return None  # the task that is sending continues until nothing is left
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
                        return None  # the reading task finds out why
                except BaseException:
                    # Cancelled: it may or may not have been sent, and another task has to continue.
                    self.outgoing.put_back(taken)
                    self._wake(now_s)
                    raise
            return None
        finally:
            self._sending = False

    async def send_now(self, message: ClientMessage) -> None:
        """Send a message now or never. Raises `ConnectionClosed`, or `over` if it is set."""
        self.check()
        while (wait_s := self._pace.take(asyncio.get_running_loop().time())) > 0:  # noqa: ASYNC110 -- the rate limit
            await asyncio.sleep(wait_s)
        if self.connection is not None:
            await self.connection.send(well_formed(message))

    def check(self) -> None:
        """Raises `over` if it is set."""
        if self.over is not None:
            raise self.over

    def check_size(self, message: ClientMessage) -> None:
        """Raises `ValueError` for a frame that the gateway would refuse as too large, without its id."""
        frame = self._codec.encode(message)
        size = len(frame) if isinstance(frame, bytes) else len(frame.encode())
        if size > self._limits.message_bytes:
            raise ValueError(f"The message has {size} bytes; the gateway takes {self._limits.message_bytes}.")

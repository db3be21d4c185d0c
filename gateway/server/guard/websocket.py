"""uvicorn's WebSocket protocol with a budget: of bytes and of frames, counted before the application sees any.

Knows: bytes, frames, whether they are read and written. Must not know: messages, sessions.

Messages have a rate limit of their own (`sessions.machine`), and each that is refused gets an answer. This budget
is wider and counts everything, also pings, pongs and fragments. A connection past its budget is read more slowly,
and closed when that does not end.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Opcode
from websockets.http11 import Request

from gateway import metrics
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import RateLimited
from gateway.protocol.limits import Limits
from gateway.protocol.rate_limit import TokenBucket
from gateway.server.guard.connections import Connections, Place

WRITE_NOW = "gateway.write_now"
"""The ASGI extension that is `GuardedWebSocket.write_now`."""

# Parsed in one go: at most as many frames as fit, two bytes and a mask each.
_PIECE_BYTES = 1_024

# Fragments of one message; each is held until the last one has come.
_MOST_FRAGMENTS = 1_024

# Frames, and pieces of large ones, handled in one turn of the event loop; then others have theirs.
_TURN_FRAMES = 64
_TURN_PIECES = 64


# For the last frames to leave for a client that was silent.
_SILENT_S = 0.5


@dataclass(frozen=True, slots=True)
class FrameBudget:
    """What one connection may send, control frames and fragments included."""

    frames_per_s: float
    frames_burst: float
    bytes_per_s: float
    bytes_burst: float
    # Seconds that a connection may be held up before it is closed; for each second, half a one is forgiven.
    patience_s: float = 5.0

    @classmethod
    def from_limits(cls, limits: Limits, *, frame_bytes: int) -> FrameBudget:
        """Wide enough for every client that keeps within `limits`. frame_bytes: the longest frame that is read."""
        # The longest text in any script, and what is written around it.
        text_bytes = 4 * limits.text_chars + 1_024
        return cls(
            frames_per_s=4 * limits.messages_per_s,
            frames_burst=4 * limits.messages_burst,
            bytes_per_s=max(4 * limits.message_bytes, text_bytes * limits.messages_per_s),
            bytes_burst=max(4 * frame_bytes, text_bytes * limits.messages_burst),
        )


class GuardedWebSocket(WebSocketsSansIOProtocol):
    """One connection after its upgrade."""

    def __init__(self, *args: Any, connections: Connections, budget: FrameBudget, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._guard = connections
        self._budget = budget
        self._place: Place | None = None
        # Extensions of the ASGI scope.
        self._extensions: dict[str, Any] = {}
        self._frames = TokenBucket(budget.frames_per_s, budget.frames_burst)
        self._bytes = TokenBucket(budget.bytes_per_s, budget.bytes_burst)
        self._unread = bytearray()
        # Whether the transport takes more: as `writable`, which takes longer to ask for each frame.
        self._takes_more = True
        # Handled, and not paid for yet.
        self._owed_frames = 0
        self._owed_bytes = 0
        # Goes on reading, next turn or once the budget allows it.
        self._next: asyncio.Handle | None = None
        # Seconds for which this connection was held up and not forgiven, and when that was counted.
        self._held_up_s = 0.0
        self._counted_s = self.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._place = self._guard.enter(self.client[0] if self.client else "", self.transport.abort)
        self._guard.heard(self._place)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self._place is not None:
            self._guard.leave(self._place)
            self._place = None
        # It belongs to this protocol, and the two would keep each other.
        self._extensions.pop(WRITE_NOW, None)
        super().connection_lost(exc)

    # ------------------------------------------------------------ writing

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.accept":
            # The scope has what is needed of them; these two take 3 KiB as long as the connection lasts.
            del self.request, self.response
        elif message["type"] == "websocket.close" and message.get("code") == CloseCode.IDLE:
            # From a client that says nothing, no close frame is waited for, nor TLS's goodbye.
            self.transport.close()
            self.loop.call_later(_SILENT_S, self.transport.abort)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        # One that is refused has no scope.
        if self.response.status_code == HTTPStatus.SWITCHING_PROTOCOLS and not self.conn.extensions:
            self._extensions = cast(dict[str, Any], self.scope["extensions"])
            self._extensions[WRITE_NOW] = self.write_now

    def pause_writing(self) -> None:
        super().pause_writing()
        self._takes_more = False

    def resume_writing(self) -> None:
        super().resume_writing()
        self._takes_more = True

    def write_now(self, frame: bytes) -> bool:
        """Write a whole frame of data; false if it has to wait, or cannot be written any more.

        The way through ASGI takes three times as long, and one message may go to thousands of readers.
        """
        transport = self.transport
        if self.close_sent or not self.handshake_complete or transport.is_closing() or not self._takes_more:
            return False
        transport.write(frame)
        return True

    # ------------------------------------------------------------ reading

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self._feed()

    async def receive(self) -> Any:
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self._feed()
        return message

    def _feed(self) -> None:
        """Handle what was read, as far as the budget, the application and this turn allow."""
        pieces = frames = 0
        while self._unread and self._next is None and not self.read_paused and not self.transport.is_closing():
            if frames >= _TURN_FRAMES or pieces >= _TURN_PIECES:
                self._next = self.loop.call_soon(self._go_on)
                break
            frames += self._handle_piece()
            pieces += 1
            self._pay()
        if self.transport.is_closing():
            return
        if self._unread or self._next is not None or self.read_paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _handle_piece(self) -> int:
        """Returns how many frames it ended."""
        piece = bytes(self._unread[:_PIECE_BYTES])
        del self._unread[:_PIECE_BYTES]
        self.conn.receive_data(piece)
        if self.conn.parser_exc is not None:
            self._unread.clear()
            self.handle_parser_exception()
            return 0
        frames = len(self.conn.events)
        self._owed_frames += frames
        self._owed_bytes += len(piece)
        self.handle_events()
        if len(self.frames) > _MOST_FRAGMENTS:
            self._close()
        return frames

    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        else:
            # A peer that does not read gets no pongs; otherwise they would pile up.
            self.conn.data_to_send()

    # ------------------------------------------------------------ the budget

    def _pay(self) -> None:
        """Pay for what was handled. Where the budget does not allow it yet, reading goes on when it does."""
        now_s = self.loop.time()
        wait_s = max(self._pay_frames(now_s), self._pay_bytes(now_s))
        if not wait_s or self.transport.is_closing():
            return
        forgiven_s = (now_s - self._counted_s) / 2
        self._held_up_s = max(0.0, self._held_up_s - forgiven_s) + wait_s
        self._counted_s = now_s
        if self._held_up_s > self._budget.patience_s:
            self._close()
        else:
            self._next = self.loop.call_later(wait_s, self._go_on)

    def _pay_frames(self, now_s: float) -> float:
        if self._owed_frames and (wait_s := self._frames.take(now_s, self._owed_frames)):
            return wait_s
        self._owed_frames = 0
        return 0.0

    def _pay_bytes(self, now_s: float) -> float:
        if self._owed_bytes and (wait_s := self._bytes.take(now_s, self._owed_bytes)):
            return wait_s
        self._owed_bytes = 0
        return 0.0

    def _go_on(self) -> None:
        self._next = None
        self._pay()
        self._feed()

    def _close(self) -> None:
        self._unread.clear()
        metrics.ERRORS.labels(RateLimited.code).inc()
        if not self.close_sent:
            self.conn.fail(CloseCode.FLOODING, RateLimited.code)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self.transport.close()


def framed(data: bytes, binary: bool) -> bytes:
    """One WebSocket frame with a whole message, of bytes or of text in UTF-8 (RFC 6455, 5.2)."""
    first, size = 0x80 | (Opcode.BINARY if binary else Opcode.TEXT), len(data)
    if size < 126:
        return bytes((first, size)) + data
    if size < 65_536:
        return struct.pack("!BBH", first, 126, size) + data
    return struct.pack("!BBQ", first, 127, size) + data

"""The writing half of a WebSocket: its outbox, then why it ends, then the close frame; and what both halves carry.

Knows: frames, close codes, a peer that does not read. Must not know: messages that come, what a session may.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from gateway import metrics
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import GatewayError, SlowReader
from gateway.meeting.outbox import Outbox, Payload
from gateway.protocol.codec import Codec
from gateway.protocol.from_domain import error_message
from gateway.protocol.messages import Error
from gateway.server.guard.identity import note_why
from gateway.server.guard.websocket import WRITE_NOW, framed

_log = logging.getLogger(__name__)

# How long a peer that may not be reading gets to take the last frames.
_FAREWELL_S = 2.0
# What is counted of a WebSocket.
CARRIED = ("received_frames", "received_bytes", "sent_frames", "sent_bytes")


class Traffic:
    """What one WebSocket has carried, and since when."""

    __slots__ = (*CARRIED, "begun_s", "client_code", "read_s")

    def __init__(self) -> None:
        # By the monotonic clock: when it began, and when something was last read.
        self.begun_s = self.read_s = time.monotonic()
        self.received_frames = self.received_bytes = self.sent_frames = self.sent_bytes = 0
        # With which the client closed it.
        self.client_code: int | None = None

    def received(self, frame: str | bytes) -> None:
        self.read_s = time.monotonic()
        self.received_frames += 1
        self.received_bytes += _size(frame)

    def sent(self, frame: str | bytes) -> None:
        self.sent_frames += 1
        self.sent_bytes += _size(frame)


def _size(frame: str | bytes) -> int:
    """In bytes."""
    return len(frame) if isinstance(frame, bytes) or frame.isascii() else len(frame.encode("utf-8", "replace"))


class Writer:
    """Owns the outbox of one connection."""

    def __init__(self, websocket: WebSocket, codec: Codec, outbox_bytes: int, traffic: Traffic) -> None:
        # How the server writes a frame at once, if it can.
        self._write_frame: Callable[[bytes], bool] | None = websocket.scope.get("extensions", {}).get(WRITE_NOW)
        self.outbox = Outbox(outbox_bytes, on_overflow=self._overflowed, write_now=self._write_now)
        # When something was last written, by the monotonic clock.
        self.active_s = time.monotonic()
        # Why the connection is closed; None while it goes on, or when the client left.
        self.close_code: CloseCode | None = None
        self._websocket = websocket
        self._codec = codec
        self._traffic = traffic
        self._last_word: Error | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def reason(self) -> str:
        """Why the connection is closed, as the client is told."""
        return self._last_word.code if self._last_word is not None else ""

    def start(self, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        """Write what is put into the outbox until it is closed."""
        self._task = tasks.create_task(self._write())
        return self._task

    def finish(self, code: CloseCode, error: GatewayError | None = None) -> None:
        """Close once everything in the outbox is written; the first reason given is the one that counts."""
        if self.close_code is None:
            self.close_code = code
            if error is not None:
                self._last_word = counted(error)
                note_why(self._websocket.scope, error)
            self.outbox.close()
            if code in (CloseCode.TOKEN_REVOKED, CloseCode.MEETING_ENDED) and self._task is not None:
                asyncio.get_running_loop().call_later(_FAREWELL_S, self._task.cancel)

    async def farewell(self) -> None:
        """The error that says why, then the close frame; a peer that does not read gets neither."""
        if self._websocket.application_state is not WebSocketState.CONNECTED or self.close_code is None:
            return
        # The peer may be gone or not reading: then it cannot be told.
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError, OSError):
            async with asyncio.timeout(_FAREWELL_S):
                if self._last_word is not None:
                    await self._send(self._codec.encode(self._last_word))
                await self._websocket.close(self.close_code, self.reason)

    async def _write(self) -> None:
        with suppress(WebSocketDisconnect):
            while payloads := await self.outbox.get():
                for payload in payloads:
                    if not self._write_now(payload) and (frame := self._frame(payload)) is not None:
                        await self._send(frame)
                        if payload.delivery is not None:
                            payload.delivery.written(len(frame))
                self.active_s = time.monotonic()

    def _write_now(self, payload: Payload) -> bool:
        """False where it has to wait for the client to read, or cannot be encoded."""
        if self._write_frame is None:
            return False
        try:
            is_written = self._write_frame(frame := payload.written(self._codec, framed))
        except Exception:  # of this connection alone: the writer will find out, and other readers are not held up
            return False
        if is_written:
            self.active_s = time.monotonic()
            self._traffic.sent_frames += 1
            self._traffic.sent_bytes += len(frame)
            if payload.delivery is not None:
                payload.delivery.written(len(frame))
        return is_written

    def _frame(self, payload: Payload) -> str | bytes | None:
        """None for a message that cannot be encoded: one of them must not end the stream of all others."""
        try:
            return payload.frame(self._codec)
        except (ValueError, OverflowError, TypeError) as error:  # not shown: it may quote what was said
            metrics.ERRORS.labels(GatewayError.code).inc()
            _log.error(
                "left out a %s that %s cannot encode (%s)",
                type(payload.message).__name__,
                self._codec.subprotocol,
                type(error).__name__,
            )
            return None

    async def _send(self, frame: str | bytes) -> None:
        kind = "text" if isinstance(frame, str) else "bytes"
        try:
            await self._websocket.send({"type": "websocket.send", kind: frame})
        except RuntimeError:
            # The server has closed the connection meanwhile, because a ping went unanswered.
            raise WebSocketDisconnect(1006) from None
        self._traffic.sent(frame)

    def _overflowed(self) -> None:
        """The writer hangs in a send that the client does not read: nothing more can reach it in order."""
        self.finish(CloseCode.SLOW_READER, SlowReader("Too much waits to be read; reconnect.", retry_after_ms=0))
        if self._task is not None:
            self._task.cancel()


def counted(error: GatewayError) -> Error:
    """The message of an error that a client is sent, which the metrics count."""
    metrics.ERRORS.labels(error.code).inc()
    return error_message(error)

"""uvicorn's HTTP protocol with bounds: on a request's head, on the time it takes, and on what is pipelined.

Knows: bytes and times of requests, and connections that are one too many. Must not know: what is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.server.guard.connections import Connections, Place
from gateway.server.guard.hosts import HEALTH

# Most of a request beside its body: its line, header fields, what frames a chunked body, and its trailers.
HEAD_BYTES = 65_536
HEAD_FIELDS = 128

BEGUN_S = "begun_s"
"""In the state of a WebSocket's scope: when its handshake, or its connection, began, by the event loop's clock."""

# Parsed in one go.
_PIECE_BYTES = 4_096

# What a connection that is one too many gets an answer to.
_HEALTH = tuple(path.encode() for path in HEALTH)

# For such a connection to say what it wants.
_CROWDED_S = 2.0

# For a refused client to read why; what it still sends is thrown away.
_LINGER_S = 2.0


class _Flow(FlowControl):
    """Tells when reading goes on: what was read already comes first."""

    def __init__(self, transport: asyncio.Transport, resumed: Callable[[], object]) -> None:
        super().__init__(transport)
        self._resumed = resumed

    def resume_reading(self) -> None:
        if self.read_paused:
            super().resume_reading()
            self._resumed()


class GuardedHttp(HttpToolsProtocol):
    """request_s: seconds to send a request's head, counted from the first byte or the connection, and its body.

    begun_s: when the connection began, by the event loop's clock, if a handshake of TLS came before this.
    """

    def __init__(
        self,
        *args: Any,
        connections: Connections,
        request_s: float,
        begun_s: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        # When the newest request began.
        self._begun_s = self.loop.time() if begun_s is None else begun_s
        self._guard = connections
        self._request_s = request_s
        self.headers = []
        self._place: Place | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unread = bytearray()
        # Bytes since the last whole request that are not of a body.
        self._head_bytes = 0
        self._in_head = True
        # Nothing more is parsed: the connection was refused, or is a WebSocket's now.
        self._over = False

    # ------------------------------------------------------------ the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, lambda: self.loop.call_soon(self._feed))
        self._place = self._guard.enter(self.client[0] if self.client else "", transport.abort)
        spent_s = self.loop.time() - self._begun_s
        self._arm(_CROWDED_S if self._place.crowded else max(0.0, self._request_s - spent_s))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        if self._over:
            return
        if self._place is not None and self._place.crowded:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "This gateway holds as many connections as it can.")
            return
        # The WebSocket's protocol takes a place of its own. What its client may take to start began with this.
        self._end()
        self.app_state = {**self.app_state, BEGUN_S: self._begun_s}
        super().handle_websocket_upgrade()

    def _end(self) -> None:
        self._over = True
        self._unread.clear()
        self._disarm()
        if self._place is not None:
            self._guard.leave(self._place)
            self._place = None

    # ------------------------------------------------------------ reading

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._unread += data
        self._feed()

    def _feed(self) -> None:
        # Paused while earlier requests are being answered, or while the application does not read a body.
        while self._unread and not self._done() and not self.flow.read_paused:
            piece = bytes(self._unread[:_PIECE_BYTES])
            del self._unread[:_PIECE_BYTES]
            self._head_bytes += len(piece)
            super().data_received(piece)
            if self._done():
                return
            if self._head_bytes > HEAD_BYTES or len(self.headers) > HEAD_FIELDS:
                self._refuse_head()
            elif self._in_head and self._head_bytes and self._timer is None:
                self._arm(self._request_s)

    def _done(self) -> bool:
        return self._over or self.transport.is_closing()

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        if not self._over:
            super().on_body(body)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._place is not None:
            self._guard.heard(self._place)
            if self._place.crowded and self.url.partition(b"?")[0] not in _HEALTH:
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "This gateway holds as many connections as it can.")
                return
        if len(self.headers) > HEAD_FIELDS:
            self._refuse_head()
            return
        self._arm(self._request_s)
        super().on_headers_complete()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.cycle is not None:  # not the first: that began with the connection
            self._begun_s = self.loop.time()

    def on_message_complete(self) -> None:
        if self._over:
            return
        self._disarm()
        self._in_head = True
        self._head_bytes = 0
        super().on_message_complete()

    # ------------------------------------------------------------ refusing

    def _refuse_head(self) -> None:
        if not self.headers and len(self.url) > HEAD_BYTES // 2:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG, f"The address has more than {HEAD_BYTES // 2} bytes.")
        else:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"The head of a request may have {HEAD_BYTES} bytes and {HEAD_FIELDS} fields.",
            )

    def _late(self) -> None:
        self._timer = None
        if self.flow.read_paused:
            # It is the gateway that does not read on, because earlier requests are being answered.
            self._arm(self._request_s)
        elif self._in_head and not self._head_bytes:
            self.transport.close()  # nothing was asked
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"The request took more than {self._request_s:g} s.")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Answer, unless another answer is under way, and close once the client has had time to read it."""
        self._over = True
        self._unread.clear()
        self._disarm()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self.transport.close()
            return
        body = f"{why}\n".encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n"
        )
        fields = b"".join(b"%s: %s\r\n" % field for field in self.server_state.default_headers)
        self.transport.write(head.encode() + fields + b"\r\n" + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        # Closed at once, unread bytes would make the kernel take the answer back.
        self._timer = self.loop.call_later(_LINGER_S, self.transport.close)

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self._late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

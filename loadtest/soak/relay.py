"""A TCP relay in front of the gateway that can be cut, frozen and closed, as networks are.

Knows: bytes in both directions. Must not know: WebSockets, sessions, why it is told to break.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Self, cast

__all__ = ["Relay", "reset"]

# Nothing is kept here: whoever lags is made to wait.
_BUFFER_BYTES = 16_384


def reset(transport: asyncio.Transport) -> None:
    """Break a connection as a failing network does: what is unsent is lost, and the peer is not asked."""
    if (sock := transport.get_extra_info("socket")) is not None:
        # Without it, closing is a FIN, which is a goodbye.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Relay:
    """Listens on a free loopback port and passes every connection on to `port`. A context manager."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._pairs: set[_Near] = set()
        self._frozen: set[_Far] = set()
        self._refusing = False

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Near(self), "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None  # noqa: S101 -- entered
        self._server.close()
        self.cut()
        for far in self._frozen:
            far.abort()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        assert self._server is not None  # noqa: S101 -- entered
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Reset every connection, on both sides."""
        for near in list(self._pairs):
            near.abort()
            near.far.abort()

    def strand(self) -> None:
        """Reset every connection on the client's side alone; on the gateway's it stays open, and silent."""
        for near in list(self._pairs):
            far = near.far
            near.parted, far.near = True, None
            near.abort()
            if far.transport is not None:
                far.transport.pause_reading()
                self._frozen.add(far)

    def freeze(self) -> None:
        """Pass nothing on any more; both sides stay open."""
        for near in self._pairs:
            near.pause()
            near.far.pause()

    def refuse(self, refusing: bool) -> None:
        """Reset whoever connects from now on."""
        self._refusing = refusing

    # ------------------------------------------------------------ the two ends

    def opened(self, near: _Near) -> None:
        if self._refusing:
            near.abort()
            return
        self._pairs.add(near)

    def closed(self, near: _Near) -> None:
        self._pairs.discard(near)

    async def reach(self, near: _Near) -> None:
        """Open the connection to the gateway."""
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: near.far, "127.0.0.1", self._port)
        except OSError:
            near.abort()


class _End(asyncio.Protocol):
    """One side. What it receives goes to `peer`."""

    transport: asyncio.Transport | None = None

    @property
    def peer(self) -> _End | None:
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert self.transport is None  # noqa: S101 -- one connection each
        # uvloop's transports are no subclass of asyncio's.
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        if self.peer is not None and self.peer.transport is not None:
            self.peer.transport.write(data)

    def pause_writing(self) -> None:
        if self.peer is not None:
            self.peer.pause()

    def resume_writing(self) -> None:
        if self.peer is not None and self.peer.transport is not None:
            self.peer.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if self.peer is not None and self.peer.transport is not None:
            # What was received before is still written; a reset is passed on as one.
            if error is None:
                self.peer.transport.close()
            else:
                self.peer.abort()

    def pause(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()

    def abort(self) -> None:
        if self.transport is not None:
            reset(self.transport)


class _Near(_End):
    """The client's side. parted: its end is no longer the other side's."""

    def __init__(self, relay: Relay) -> None:
        self.parted = False
        self._relay = relay
        self.far = _Far(self)
        # What came before the gateway's side was open: the request, no more.
        self.early = b""
        self._reaching: asyncio.Task[None] | None = None

    @property
    def peer(self) -> _End | None:
        return None if self.parted else self.far

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._relay.opened(self)
        if self.transport is not None and not self.transport.is_closing():
            # Ends by itself: with a connection, or with this one aborted.
            self._reaching = asyncio.get_running_loop().create_task(self._relay.reach(self))

    def data_received(self, data: bytes) -> None:
        if self.far.transport is None:
            self.early += data
        else:
            self.far.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._relay.closed(self)
        super().connection_lost(error)


class _Far(_End):
    """The gateway's side. near: null once the client's side was taken away."""

    def __init__(self, near: _Near) -> None:
        self.near: _Near | None = near

    @property
    def peer(self) -> _End | None:
        return self.near

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.near is None or self.near.transport is None or self.transport is None:
            self.abort()
        else:
            self.transport.write(self.near.early)

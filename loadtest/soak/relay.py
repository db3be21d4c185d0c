"""A TCP relay in front of the gateway that can be cut, frozen and closed, as networks are.

Knows: bytes in both directions. Must not know: WebSockets, sessions, why it is told to break.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Self

# Little is kept here: a reader that lags is made to wait.
_BUFFER_BYTES = 16_384

# The receive buffer and the segments of a thin line.
_THIN_BYTES = 8_192
_SEGMENT_BYTES = 536


def reset(transport: asyncio.WriteTransport) -> None:
    """Break a connection as a failing network does: what is unsent is lost, and the peer is not asked."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:  # it may be closed by now
        # Without it, closing is a FIN, which is a goodbye.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class _Pair:
    """A connection of a client, `near`, and the one to the gateway that belongs to it, `far`."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.near = near
        self.far = far
        self.pumps: list[asyncio.Task[None]] = []


class Relay:
    """Listens on a free loopback port and passes every connection on to `port`. A context manager.

    thin: as a phone has it: a client that does not read holds the gateway up after some 100 kB, not megabytes.
    """

    def __init__(self, port: int, *, thin: bool = False) -> None:
        self._port = port
        self._thin = thin
        self._server: asyncio.Server | None = None
        self._pairs: set[_Pair] = set()
        self._stranded: set[_Pair] = set()
        self._refusing = False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_BUFFER_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None  # noqa: S101 -- entered
        self._server.close()
        self.cut()
        for pair in self._stranded:
            reset(pair.far.transport)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        assert self._server is not None  # noqa: S101 -- entered
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Reset every connection, on both sides."""
        for pair in self._pairs:
            reset(pair.near.transport)
            reset(pair.far.transport)

    def freeze(self) -> None:
        """Pass nothing on any more; both sides stay open."""
        for pair in self._pairs:
            for pump in pair.pumps:
                pump.cancel()

    def strand(self) -> None:
        """Reset every connection on the client's side alone; on the gateway's it stays open, and silent."""
        self.freeze()
        for pair in self._pairs:
            reset(pair.near.transport)
        self._stranded |= self._pairs
        self._pairs.clear()

    def refuse(self, refusing: bool) -> None:
        """Reset every connection that comes from now on."""
        self._refusing = refusing

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            sock.setblocking(False)
            if self._thin:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _THIN_BYTES)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT_BYTES)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self._port))
            return await asyncio.open_connection(sock=sock, limit=_BUFFER_BYTES)
        except BaseException:
            sock.close()
            raise

    async def _serve(self, near_reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        try:
            if self._refusing:
                raise ConnectionRefusedError
            far_reader, far = await self._connect()
        except OSError:
            reset(near.transport)
            return
        pair = _Pair(near, far)
        self._pairs.add(pair)
        pair.pumps = [asyncio.create_task(_pump(near_reader, far)), asyncio.create_task(_pump(far_reader, near))]
        done, _ = await asyncio.wait(pair.pumps, return_when=asyncio.FIRST_COMPLETED)
        if any(pump.cancelled() for pump in done):
            return  # frozen
        broken = any(pump.exception() for pump in done)
        for pump in pair.pumps:
            pump.cancel()
        self._pairs.discard(pair)
        for writer in (near, far):
            # What was received before is still written; a reset is passed on as one.
            if broken:
                reset(writer.transport)
            else:
                writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_BUFFER_BYTES):
        writer.write(data)
        await writer.drain()

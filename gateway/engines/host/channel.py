"""Messages between two processes over a socket.

Messages are written in order; those of one turn of the event loop together, by uvloop. Writing never waits:
either the callers bound how much they send, or a connection whose other end does not read is ended.
Knows: sockets, length-prefixed MessagePack. Must not know: what the messages mean.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec

from gateway.ownership import peer_of

_log = logging.getLogger(__name__)

_Said = TypeVar("_Said")
_Heard = TypeVar("_Heard")

# Length of the message that follows, in bytes.
_LENGTH = struct.Struct("!I")

# That the other end has closed; macOS has one word for that and for both ends.
_CLOSED = getattr(select, "POLLRDHUP", select.POLLHUP)

_encoder = msgspec.msgpack.Encoder()


def read_message(sock: socket.socket) -> bytes:
    """The next message, encoded, and nothing of what follows; blocks. Raises `OSError` if there is none."""
    [length] = _LENGTH.unpack(_read(sock, _LENGTH.size))
    return _read(sock, length)


def _read(sock: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        if not (more := sock.recv(size - len(read))):
            raise ConnectionResetError("the other end has closed the connection")
        read += more
    return read


class Channel(asyncio.Protocol, Generic[_Said, _Heard]):
    """One end of the connection.

    kind: type of the received messages, for msgspec.
    heard: called with each received message. What it raises is logged: a fault must not cost the connection, on
        which all meetings of a process depend.
    lost: called once, when the connection has ended.
    """

    def __init__(self, kind: Any, heard: Callable[[_Heard], None], lost: Callable[[], None]) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._heard = heard
        self._lost = lost
        # How much may wait for the other end to read. None: any amount.
        self._unread_bytes: int | None = None
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()

    async def open(self, sock: socket.socket) -> None:
        """Use one end of a `socket.socketpair()`, which belongs to the channel from now on."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=sock)

    def say(self, message: _Said) -> None:
        """Send a message without waiting; lost if the connection has ended. Raises the error of msgspec."""
        encoded = _encoder.encode(message)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_LENGTH.pack(len(encoded)) + encoded)
            if self._unread_bytes is not None and self._transport.get_write_buffer_size() > self._unread_bytes:
                self._transport.abort()

    def bound_unread(self, more_bytes: int) -> None:
        """From now on, end the connection once so much more waits for the other end to read than does now."""
        if self._transport is not None:
            self._unread_bytes = self._transport.get_write_buffer_size() + more_bytes

    @property
    def is_open(self) -> bool:
        """Whether the other end is there, as the system knows it: also for a thread, while the loop hangs."""
        transport = self._transport
        if transport is None:
            return False
        poll = select.poll()
        try:
            poll.register(transport.get_extra_info("socket").fileno(), _CLOSED)
        except ValueError:  # the loop has closed it meanwhile
            return False
        return not poll.poll(0)

    def close(self) -> None:
        """Close the connection after everything is sent."""
        if self._transport is not None:
            self._transport.close()

    # ------------------------------------------------------------ asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A process of another user is cut off: `is_refused`."""
        sock = transport.get_extra_info("socket")
        if sock is not None and hasattr(socket, "SO_PEERCRED") and not (peer := peer_of(sock)).is_own:
            _log.error("a process of another user (uid %d) is at the other end of a socket: cut off", peer.uid)
            cast(asyncio.Transport, transport).abort()
            return
        self._transport = cast(asyncio.Transport, transport)

    @property
    def is_refused(self) -> bool:
        """Whether there is nobody at the other end to whom anything may be said."""
        return self._transport is None

    def data_received(self, data: bytes) -> None:
        self._received += data
        begin = 0
        while (body := begin + _LENGTH.size) <= len(self._received):
            end = body + _LENGTH.unpack_from(self._received, begin)[0]
            if end > len(self._received):
                break
            message = self._decoder.decode(self._received[body:end])
            begin = end
            try:
                self._heard(message)
            except Exception:
                _log.exception("a message of another process had no effect (%s)", type(message).__name__)
        del self._received[:begin]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._lost()

"""Messages between two processes over a socket.

Each is written at once: while one process still hands out the tokens of a step, the other works on the first.
Gathered until the turn of the event loop is over, they cost fewer system calls, and all come later. Order is kept
in each direction. Nothing waits: whoever speaks bounds how much is said.
Knows: sockets, MessagePack behind its length. Must not know: what the messages mean.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec

__all__ = ["Channel"]

_Said = TypeVar("_Said")
_Heard = TypeVar("_Heard")

# Bytes of a message, ahead of it.
_LENGTH = struct.Struct("!I")

_encoder = msgspec.msgpack.Encoder()


class Channel(asyncio.Protocol, Generic[_Said, _Heard]):
    """One end. `heard` is told each message and must not raise; `lost` once, when nothing more can come.

    kind: what the other end says, as msgspec takes it.
    """

    def __init__(self, kind: Any, heard: Callable[[_Heard], None], lost: Callable[[], None]) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._heard = heard
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()

    async def open(self, sock: socket.socket) -> None:
        """Speak over one end of a `socket.socketpair()`, which belongs to the channel from now on."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=sock)

    def say(self, message: _Said) -> None:
        """It is sent without waiting for anything; without another end, it is lost.

        Raises what msgspec does for a message that cannot be encoded; others are not affected.
        """
        encoded = _encoder.encode(message)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_LENGTH.pack(len(encoded)) + encoded)

    def close(self) -> None:
        """What was said is sent first."""
        if self._transport is not None:
            self._transport.close()

    # ------------------------------------------------------------ asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        begin = 0
        while (body := begin + _LENGTH.size) <= len(self._received):
            end = body + _LENGTH.unpack_from(self._received, begin)[0]
            if end > len(self._received):
                break
            self._heard(self._decoder.decode(self._received[body:end]))
            begin = end
        del self._received[:begin]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._lost()

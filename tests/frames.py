"""WebSocket frames as bytes, for clients that do what no library does."""

from __future__ import annotations

import struct

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
UPGRADE = (
    b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def frame(opcode: int, data: bytes = b"", *, fin: bool = True) -> bytes:
    """As a client sends it; the mask changes nothing."""
    assert len(data) < 2**16
    length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
    return bytes([fin << 7 | opcode]) + length + bytes(4) + data

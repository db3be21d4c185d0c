"""A message on its way to any number of readers, encoded once per encoding however many they are.

Knows: how much a message weighs. Must not know: who reads it, sockets.
"""

from __future__ import annotations

from gateway.codec import Codec
from gateway.messages import ServerMessage, SessionStarted

__all__ = ["Payload"]

# What a message costs beyond its texts: field names, numbers, and Python's own overhead. Generous on purpose.
_OVERHEAD_BYTES = 256


class Payload:
    """`message` never changes. `cost`: bytes in memory and on the wire, estimated from above."""

    __slots__ = ("_frames", "cost", "message")

    def __init__(self, message: ServerMessage) -> None:
        self.message = message
        texts = (value for name in message.__struct_fields__ if isinstance(value := getattr(message, name), str))
        # At most 4 bytes a character in UTF-8, and as many in Python's own strings.
        self.cost = _OVERHEAD_BYTES + 4 * sum(map(len, texts))
        if isinstance(message, SessionStarted):
            self.cost += len(message.participants) * 2 * _OVERHEAD_BYTES
        self._frames: dict[str, str | bytes] = {}

    def frame(self, codec: Codec) -> str | bytes:
        """The frame in one encoding; the same object for every reader."""
        frame = self._frames.get(codec.subprotocol)
        if frame is None:
            frame = self._frames[codec.subprotocol] = codec.encode(self.message)
        return frame

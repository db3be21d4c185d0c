"""A message on its way to any number of readers, encoded once per encoding however many they are.

Knows: how much a message weighs. Must not know: who reads it, sockets.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from gateway.protocol.codec import Codec
from gateway.protocol.messages import LanguagesChanged, ServerMessage, SessionStarted, TranslationDelta
from gateway.tracing.utterances import Delivery

# What a message costs beyond its texts: field names, numbers, and Python's own overhead. Generous on purpose.
_OVERHEAD_BYTES = 256


class Payload:
    """`message` never changes.

    delivery: is told when it is written; None if that is not traced.
    """

    __slots__ = ("_cost", "_frames", "_merged", "_written", "delivery", "message")

    def __init__(self, message: ServerMessage, delivery: Delivery | None = None) -> None:
        self.message = message
        self.delivery = delivery
        self._cost: int | None = None  # until it has to wait
        self._frames: dict[str, str | bytes] = {}
        self._written: dict[str, bytes] = {}
        self._merged: tuple[Payload, Payload] | None = None

    @property
    def cost(self) -> int:
        """Bytes in memory and on the wire, estimated from above."""
        if self._cost is None:
            self._cost = _cost(self.message)
        return self._cost

    def written(self, codec: Codec, write: Callable[[str | bytes], bytes]) -> bytes:
        """What `write` makes of the message in one encoding; the same object for every reader."""
        written = self._written.get(codec.subprotocol)
        if written is None:
            written = self._written[codec.subprotocol] = write(codec.encode(self.message))
        return written

    def frame(self, codec: Codec) -> str | bytes:
        """The frame in one encoding; the same object for every reader."""
        frame = self._frames.get(codec.subprotocol)
        if frame is None:
            frame = self._frames[codec.subprotocol] = codec.encode(self.message)
        return frame

    def behind(self, unsent: Payload) -> Payload:
        """This delta and an unsent one before it, in one; the same object for every reader who lags as much."""
        if self._merged is not None and self._merged[0] is unsent:
            return self._merged[1]
        earlier, delta = unsent.message, self.message
        assert isinstance(earlier, TranslationDelta)  # noqa: S101 -- the outbox merges nothing else
        assert isinstance(delta, TranslationDelta)  # noqa: S101
        merged = Payload(structs.replace(delta, committed=earlier.committed + delta.committed))
        self._merged = (unsent, merged)
        return merged


def _cost(message: ServerMessage) -> int:
    # At most 4 bytes a character in UTF-8, and as many in Python's own strings; only control characters, of which
    # JSON makes six each, take more on the wire.
    cost = _OVERHEAD_BYTES + 4 * sum([len(value) for value in structs.astuple(message) if isinstance(value, str)])
    if isinstance(message, SessionStarted):
        cost += len(message.participants) * 2 * _OVERHEAD_BYTES
    if isinstance(message, LanguagesChanged):
        cost += len(message.languages) * _OVERHEAD_BYTES
    return cost

"""What waits to be written to one connection: bounded in bytes, deltas merged while unsent.

Knows: messages and their order. Must not know: encodings, sockets.

A reader that lags costs the gateway at most `max_bytes`: translation deltas of one utterance and language fold
into one, the final translation replaces them, and past the bound the outbox reports `overflowed`, upon which the
connection is closed with 4008.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from gateway import metrics
from gateway.messages import ServerMessage, TranslationDelta, TranslationFinal

__all__ = ["Outbox"]

# What a message costs beyond its texts: field names, numbers, and Python's own overhead. Generous on purpose.
_OVERHEAD_BYTES = 256

_Key = tuple[str, str]


class Outbox:
    """A queue with one writer that waits in `get`, and any number of puts, which never wait."""

    def __init__(self, max_bytes: int, on_overflow: Callable[[], None] = lambda: None) -> None:
        self.overflowed = False
        self._on_overflow = on_overflow
        self._max_bytes = max_bytes
        self._bytes = 0
        self._serial = 0
        self._queue: OrderedDict[int, ServerMessage] = OrderedDict()
        self._deltas: dict[_Key, int] = {}
        self._filled = asyncio.Event()
        self._closed = False

    @property
    def bytes(self) -> int:
        """Bytes waiting, estimated from above."""
        return self._bytes

    def put(self, message: ServerMessage) -> None:
        """Append a message, or merge it with what is unsent. Dropped once closed or overflowed."""
        if self._closed or self.overflowed:
            return
        match message:
            case TranslationDelta():
                self._put_delta(message)
            case TranslationFinal():
                self._drop_delta((message.utterance, message.lang))
                self._append(message)
            case _:
                self._append(message)
        if self._bytes > self._max_bytes:
            self.overflowed = True
            self._queue.clear()
            self._deltas.clear()
            self._bytes = 0
            self._on_overflow()
        self._filled.set()

    def close(self) -> None:
        """Nothing more will be put; `get` hands out the rest and then ends."""
        self._closed = True
        self._filled.set()

    async def get(self) -> list[ServerMessage]:
        """Everything waiting, in order; waits until there is something. Empty: closed or overflowed."""
        while not self._queue and not self._closed and not self.overflowed:
            self._filled.clear()
            await self._filled.wait()
        messages = list(self._queue.values())
        self._queue.clear()
        self._deltas.clear()
        self._bytes = 0
        return messages

    # ------------------------------------------------------------ merging

    def _append(self, message: ServerMessage) -> int:
        self._serial += 1
        self._queue[self._serial] = message
        self._bytes += _cost(message)
        return self._serial

    def _put_delta(self, delta: TranslationDelta) -> None:
        key = (delta.utterance, delta.lang)
        serial = self._deltas.get(key)
        unsent = self._queue.get(serial) if serial is not None else None
        if serial is None or not isinstance(unsent, TranslationDelta):
            self._deltas[key] = self._append(delta)
            return
        merged = TranslationDelta(
            delta.utterance, delta.lang, delta.rev, unsent.committed + delta.committed, delta.tentative
        )
        self._bytes += _cost(merged) - _cost(unsent)
        self._queue[serial] = merged
        metrics.OUTBOX_MERGED.inc()

    def _drop_delta(self, key: _Key) -> None:
        serial = self._deltas.pop(key, None)
        if serial is not None and (unsent := self._queue.pop(serial, None)) is not None:
            self._bytes -= _cost(unsent)
            metrics.OUTBOX_MERGED.inc()


def _cost(message: ServerMessage) -> int:
    texts = (value for name in message.__struct_fields__ if isinstance(value := getattr(message, name), str))
    # At most 4 bytes a character in UTF-8, and as many in Python's own strings.
    return _OVERHEAD_BYTES + 4 * sum(map(len, texts))

"""What waits to be written to one connection: bounded in bytes, merged while unsent.

Knows: messages, their order, and that one is encoded once for all. Must not know: sockets.

A reader that lags costs the gateway at most `max_bytes`: translation deltas of one utterance and language fold
into one, the final translation replaces them, a newer partial caption replaces the older one, and past the bound
the outbox reports `overflowed`, upon which the connection is closed with 4008.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from msgspec import structs

from gateway import metrics
from gateway.protocol.codec import Codec
from gateway.protocol.messages import (
    Caption,
    LanguagesChanged,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    ServerMessage,
    SessionStarted,
    SessionUpdated,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceCancelled,
)
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

    def written(self, codec: Codec, write: Callable[[bytes, bool], bytes]) -> bytes:
        """What `write` makes of the message in one encoding, binary or not; the same object for every reader."""
        written = self._written.get(codec.subprotocol)
        if written is None:
            written = self._written[codec.subprotocol] = write(codec.encode_bytes(self.message), codec.binary)
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


# Handed to the writer at once; what it holds is no longer merged, nor counted.
_BATCH = 64

# (participant, utterance, language); for a caption the language is empty, for a participant the utterance too.
_Key = tuple[str, str, str]


def _never() -> None:
    """An overflow is not reported."""


def _later(_: Payload) -> bool:
    """Nothing is written at once."""
    return False


class Outbox:
    """A queue with one writer that waits in `get`, and any number of puts, which never wait.

    write_now: writes what nothing waits before, without the writer; false if it cannot, so that it is queued.
    """

    def __init__(
        self,
        max_bytes: int,
        on_overflow: Callable[[], None] = _never,
        write_now: Callable[[Payload], bool] = _later,
    ) -> None:
        self.overflowed = False
        # How far this reader has lagged: the most bytes that waited, and deltas that were merged or dropped.
        self.most_bytes = self.merged = 0
        self._write_now = write_now
        # Whether the writer has written all, and waits for more.
        self._idle = False
        # Whether nothing is handed out for the moment.
        self._held = False
        self._on_overflow = on_overflow
        self._max_bytes = max_bytes
        self._bytes = 0
        self._serial = 0
        self._queue: OrderedDict[int, Payload] = OrderedDict()
        self._unsettled: dict[_Key, int] = {}
        self._filled = asyncio.Event()
        self._roomy = asyncio.Event()
        self._roomy.set()
        self._closed = False

    @property
    def bytes(self) -> int:
        """Bytes waiting, estimated from above."""
        return self._bytes

    def put(self, message: ServerMessage) -> None:
        """Append a message for this reader alone; see `put_shared`."""
        self.put_shared(Payload(message))

    def put_shared(self, payload: Payload) -> None:
        """Append a message, or merge it with what is unsent. Dropped once closed or overflowed."""
        if self._closed or self.overflowed:
            return
        if self._idle and not self._held and self._write_now(payload):
            return
        self._idle = False
        match payload.message:
            case TranslationDelta() as delta:
                self._put_delta(delta, payload)
            case TranslationFinal() | TranslationFailed() as end:
                self._drop((end.participant, end.utterance, end.lang))
                self._append(payload)
            case Caption() as caption:
                key = (caption.participant, caption.utterance, "")
                self._drop(key)
                serial = self._append(payload)
                if not caption.final:
                    self._unsettled[key] = serial
            case UtteranceCancelled() as end:
                for key in [key for key in self._unsettled if key[:2] == (end.participant, end.utterance)]:
                    self._drop(key)
                self._append(payload)
            case ParticipantJoined() | ParticipantUpdated() | ParticipantLeft() as change:
                # The newest tells all that the earlier ones would have.
                key = (change.participant, "", "")
                self._drop(key)
                self._unsettled[key] = self._append(payload)
            case LanguagesChanged():
                self._drop(("", "", ""))
                self._unsettled["", "", ""] = self._append(payload)
            case SessionUpdated():
                # What comes after it may be read in another way.
                self._unsettled.clear()
                self._append(payload)
            case _:
                self._append(payload)
        self.most_bytes = max(self.most_bytes, self._bytes)
        if self._bytes > self._max_bytes:
            self.overflowed = True
            self._queue.clear()
            self._unsettled.clear()
            self._bytes = 0
            self._on_overflow()
        self._settle_room()
        self._filled.set()

    def hold(self) -> None:
        """What is put from now on waits until `release`."""
        self._held = True

    def release(self, first: ServerMessage | None = None) -> None:
        """Go on. first: comes before everything that was put meanwhile."""
        if first is not None:
            self.put(first)
            if self._queue:
                self._queue.move_to_end(self._serial, last=False)
        self._held = self._idle = False
        self._filled.set()

    def close(self) -> None:
        """Nothing more will be put; `get` hands out the rest and then ends."""
        self._closed = True
        # They belong to the owner of this outbox, and the two would keep each other.
        self._on_overflow, self._write_now = _never, _later
        self._roomy.set()
        self._filled.set()

    async def get(self) -> list[Payload]:
        """What waits, in order, some at a time; waits until there is something. Empty: closed or overflowed."""
        while (not self._queue or self._held) and not self._closed and not self.overflowed:
            self._filled.clear()
            self._idle = not self._held
            await self._filled.wait()
        batch: list[Payload] = []
        while self._queue and len(batch) < _BATCH:
            _, payload = self._queue.popitem(last=False)
            self._bytes -= payload.cost
            batch.append(payload)
        if not self._queue:
            self._unsettled.clear()
        self._settle_room()
        return batch

    async def room(self) -> None:
        """Wait until at most half of the bound is taken, or nothing more can be put."""
        await self._roomy.wait()

    def _settle_room(self) -> None:
        if self._closed or self.overflowed or self._bytes <= self._max_bytes // 2:
            self._roomy.set()
        else:
            self._roomy.clear()

    # ------------------------------------------------------------ merging

    def _append(self, payload: Payload) -> int:
        self._serial += 1
        self._queue[self._serial] = payload
        self._bytes += payload.cost
        return self._serial

    def _put_delta(self, delta: TranslationDelta, payload: Payload) -> None:
        key = (delta.participant, delta.utterance, delta.lang)
        serial = self._unsettled.get(key)
        unsent = self._queue.get(serial) if serial is not None else None
        if serial is None or unsent is None or not isinstance(unsent.message, TranslationDelta):
            self._unsettled[key] = self._append(payload)
            return
        merged = payload.behind(unsent)
        self._bytes += merged.cost - unsent.cost
        self._queue[serial] = merged
        self.merged += 1
        metrics.OUTBOX_MERGED.inc()

    def _drop(self, key: _Key) -> None:
        serial = self._unsettled.pop(key, None)
        if serial is not None and (unsent := self._queue.pop(serial, None)) is not None:
            self._bytes -= unsent.cost
            self.merged += 1
            metrics.OUTBOX_MERGED.inc()

"""Who is present in one meeting, for this gateway's subscribers: the newest state of each participant.

It comes by pushes, and by reading where a push is missing; in whichever order that happens.

Knows: versions, what was delivered. Must not know: connections, scripts, tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from gateway.domain.session_store import Present

_log = logging.getLogger(__name__)

_Deliver = Callable[[str, Present | None], None]

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Present)


def encode_present(present: Present) -> bytes:
    """What the store keeps of a participant."""
    return _encoder.encode(present)


class MeetingPresence:
    """Who is present in a meeting."""

    def __init__(self, meeting: str) -> None:
        self.meeting = meeting
        # How many have subscribed, or are about to.
        self.users = 0
        # Version of the newest change that is known; None before the first read.
        self.version: int | None = None
        # Pushes that were delivered.
        self.pushed = 0
        self._present: dict[str, Present] = {}
        self._subscribers: dict[object, _Deliver] = {}

    def add(self, subscription: object, deliver: _Deliver) -> None:
        """A subscriber, who is told of everybody who is present."""
        self._subscribers[subscription] = deliver
        for participant, present in tuple(self._present.items()):
            deliver(participant, present)

    def remove(self, subscription: object) -> None:
        self._subscribers.pop(subscription, None)

    def push(self, data: bytes) -> bool:
        """A change was pushed. Returns whether one before it is missing, so that all is to be read."""
        header, _, value = data.partition(b"\n")
        version, previous, participant = header.split(b" ")
        if self.version is None or int(version) > self.version != int(previous):
            return True
        if int(version) > self.version:
            self.version = int(version)
            self.pushed += 1
            self._put(participant.decode(), _present_of(value))
        return False

    def read(self, version: int, fields: Sequence[bytes], pushed: int) -> None:
        """All of it was read. pushed: the pushes that were delivered before; later ones may be newer than this."""
        if self.version is not None and version < self.version and pushed != self.pushed:
            return
        self.version = version
        values = dict(zip((each.decode() for each in fields[::2]), fields[1::2], strict=True))
        for participant in self._present.keys() - values.keys():
            self._put(participant, None)
        for participant in sorted(values, key=lambda participant: _came(values[participant])):
            self._put(participant, _present_of(values[participant]))

    def _put(self, participant: str, present: Present | None) -> None:
        if present == self._present.get(participant):
            return
        if present is None:
            del self._present[participant]
        else:
            self._present[participant] = present
        for deliver in tuple(self._subscribers.values()):
            deliver(participant, present)


def _came(value: bytes) -> int:
    return int(value.partition(b" ")[0])


def _present_of(value: bytes) -> Present | None:
    if not value:
        return None
    try:
        return _decoder.decode(value.partition(b" ")[2])
    except msgspec.MsgspecError:
        _log.error("a participant of a meeting cannot be read; did a newer gateway write it?")
        return None

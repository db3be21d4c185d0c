"""What a session remembers of its utterances, so that one that is sent again is recognised.

Knows: ids, revisions, which finals were accepted and which of them are settled.
Must not know: messages, what may be said (`machine`).
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

from msgspec import Struct

# Utterances that are remembered after they settled.
REMEMBERED_UTTERANCES = 1_000


class KnownUtterance(Struct):
    """What is remembered of one utterance."""

    rev: int
    # A digest of the final text: a thousand long texts a session would be megabytes. None: it is still being said.
    final: bytes | None = None
    failed: bool = False

    def is_final_as(self, text: str) -> bool:
        """Whether it is final with this text."""
        return self.final == _digest(text)


class KnownUtterances:
    """The utterances of one session by id, and which of them are in flight: accepted and not settled."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownUtterance] = OrderedDict()
        self._in_flight: set[str] = set()

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def is_in_flight(self, id: str) -> bool:
        return id in self._in_flight

    def get(self, id: str) -> KnownUtterance | None:
        return self._known.get(id)

    def revised(self, id: str, rev: int) -> None:
        """A revision of it came."""
        self._remember(id, KnownUtterance(rev))

    def finished(self, id: str, rev: int, text: str, *, failed: bool = False, in_flight: bool = True) -> None:
        """Its final text was accepted."""
        self._remember(id, KnownUtterance(rev, _digest(text), failed))
        if in_flight:
            self._in_flight.add(id)

    def settled(self, id: str, *, failed: bool) -> None:
        """It has ended in every language. failed: in some, its translation failed."""
        self._in_flight.discard(id)
        if failed and (known := self._known.get(id)) is not None:
            known.failed = True

    def lose_in_flight(self) -> None:
        """What is in flight was never said, as far as anybody knows."""
        for id in self._in_flight:
            self._known.pop(id, None)
        self._in_flight.clear()

    def forget(self, id: str) -> None:
        """As if it had never been said."""
        self._known.pop(id, None)

    def _remember(self, id: str, known: KnownUtterance) -> None:
        self._known[id] = known
        self._known.move_to_end(id)
        if len(self._known) > REMEMBERED_UTTERANCES:
            # The oldest that is settled; those in flight are few, by the limit on them.
            del self._known[next(known_id for known_id in self._known if known_id not in self._in_flight)]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

"""What the store may have done for this gateway without its knowing, since an answer was lost.

Knows: which utterances, for how long. Must not know: the store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

# A command may lie in the network, or before a server that does not run, and be done later.
_FOR_S = 60.0
_MOST = 10_000
_AT_ONCE = 100


class Doubt(Struct, frozen=True):
    """An utterance of which this gateway may own something."""

    # The meeting's key.
    meeting: str
    # Of the utterance; empty where its offset is known.
    key: bytes = b""
    offset: int = 0


class Doubts:
    """Utterances that were accepted or claimed without an answer."""

    def __init__(self) -> None:
        # With the time at which it was asked.
        self._doubts: dict[Doubt, float] = {}

    @contextmanager
    def until_answered(self, *doubts: Doubt) -> Iterator[None]:
        """Where this raises, or is cancelled, the store may have done it."""
        try:
            yield
        except BaseException:
            for doubt in doubts:
                if len(self._doubts) < _MOST:
                    self._doubts[doubt] = time.monotonic()
            raise
        for doubt in doubts:
            self._doubts.pop(doubt, None)

    def to_be_settled(self) -> tuple[Doubt, ...]:
        """Some of them; others the next time."""
        some = tuple(self._doubts)[:_AT_ONCE]
        for doubt in some:  # to the end
            self._doubts[doubt] = self._doubts.pop(doubt)
        return some

    def settle(self, doubt: Doubt, *, found: bool) -> None:
        """The store was asked. If it had not done it, it may still do it later."""
        if found or time.monotonic() - self._doubts.get(doubt, 0.0) > _FOR_S:
            self._doubts.pop(doubt, None)

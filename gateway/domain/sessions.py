"""Sessions and meetings as values: how a reader reads, and what one process leaves to the next.

Knows: what a meeting's log and a session that may be resumed look like when written down.
Must not know: where that is written, who writes it, clocks.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from msgspec import Struct

from gateway.domain.log import Publication

__all__ = ["VERSION", "Handover", "KeptMeeting", "KeptSession", "Stability"]

# What a reader is shown of an utterance that is still being said: the earliest words, whose tail may change; only
# words that stay; or nothing before the whole sentence.
Stability = Literal["live", "stable", "final"]

# Format version of the handover file.
VERSION = 1


class KeptMeeting(Struct, frozen=True):
    """A meeting's log. `first`, `last` and `publications` are those of a `Page` that holds all there is.

    Raises `ValueError` (when decoded, `msgspec.ValidationError`) where the offsets do not fit together.
    """

    meeting: str
    epoch: str
    first: int
    last: int
    publications: tuple[Publication, ...]

    def __post_init__(self) -> None:
        offsets = [held.offset for held in self.publications]
        if self.first < 1 or len(offsets) != self.last + 1 - self.first or offsets[:1] not in ([], [self.first]):
            raise ValueError("`first` and `last` do not fit a meeting's publications")
        if any(after != before + 1 for before, after in pairwise(offsets)):
            raise ValueError("the offsets of a meeting's publications have a gap")


class KeptSession(Struct, frozen=True):
    """A session that a client may resume."""

    # The secret it is resumed with.
    session: str
    # Its public id in the meeting.
    participant: str
    meeting: str
    # Whether the meeting is its own.
    private: bool
    name: str
    speaks: str | None
    reads: tuple[str, ...]
    # Seconds for which it could still be resumed when this was written; counted on from when the next process is
    # ready.
    left_s: float
    # Offset from which on it gets what is said.
    since: int = 0
    # Languages that it no longer reads → offset up to which it still gets their translations.
    stopped: dict[str, int] = {}
    stability: Stability = "live"
    originals: bool = False


class Handover(Struct, frozen=True):
    """Everything that outlives a graceful restart.

    An utterance that was accepted and is not translated yet is a `Said` in its meeting, without the
    `Translated` or `Untranslated` that would follow: the next process finds it there.
    """

    version: int = VERSION
    meetings: tuple[KeptMeeting, ...] = ()
    sessions: tuple[KeptSession, ...] = ()

"""What one gateway process leaves to the next across a graceful restart, as frozen values.

Knows: what a meeting's log and a session that may be resumed look like when written down.
Must not know: where that is written, who writes it, or clocks.
"""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct

from gateway.events import Publication, Stability

__all__ = ["VERSION", "Handover", "KeptMeeting", "KeptSession"]

VERSION = 1
"""Of the structs below; another number means that the rest cannot be understood."""


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
    """A session that a client may resume. `session` is the secret it is resumed with, `participant` is public.

    private: its meeting is its own. left_s: seconds for which it could still be resumed when this was written; the
    next process counts them from when it is ready. since: the offset from which on utterances are its business.
    stopped: languages that it no longer reads → the offset up to which it is still owed them.
    """

    session: str
    participant: str
    meeting: str
    private: bool
    name: str
    speaks: str | None
    reads: tuple[str, ...]
    left_s: float
    since: int = 0
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

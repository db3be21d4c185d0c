"""What the soak's checker was told to expect, and what it found.

Knows: names of findings. Must not know: how they are found (`ledger`) or shown (`report`).
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

__all__ = ["Rules", "Verdict"]


class Rules(Struct, frozen=True):
    """What the gateway was configured for, and so what it owes."""

    # How long a session without connection can be resumed.
    keep_s: float
    # Utterances shown to a new session.
    snapshot: int
    # How long a publication can be read again.
    log_keep_s: float


class Verdict(Struct, frozen=True):
    """What the checker counted."""

    # Finals.
    said: int
    accepted: int
    # Their client left cleanly without `accepted` or an error.
    unanswered: int
    # By code.
    refused: dict[str, int]
    clients: int
    sessions: int
    resumed: int
    # Sessions begun again because the earlier one was gone.
    not_resumed: int
    # Clients that ended in an error.
    gave_up: int
    # Pairs of a client and a caption or an outcome in one language.
    owed: int
    delivered: int
    lost: int
    # Newest utterances that a new session did not begin with.
    not_shown: int
    # Publications that a client was given twice.
    duplicates: int
    # Publications that arrived twice in one session of a client that records everything.
    wire_duplicates: int
    # Captions or outcomes with two offsets.
    twice_in_log: int
    # Offsets at which clients saw different things, acceptances with another offset than their caption, and
    # resumed sessions that are another.
    conflicts: int
    # Arrivals with an offset that is not above the one before.
    out_of_order: int
    # By code.
    failed: dict[str, int]
    # Failures in the log that no cancellation explains.
    failed_unexpectedly: int
    # Accepted utterances that are not, or more than once, in the meeting's transcript.
    transcript_missing: int
    transcript_twice: int
    # Sessions not resumed though their client had been silent for less than the keep time.
    unrecovered: int
    # Errors about the session, by code.
    told: dict[str, int]
    # The first of each of these, in words.
    problems: list[str]

    # Findings that must not be: each is a promise that was not kept.
    broken_by: ClassVar[tuple[str, ...]] = (
        *("lost", "duplicates", "wire_duplicates", "unanswered", "gave_up", "not_shown", "twice_in_log"),
        *("conflicts", "out_of_order", "failed_unexpectedly", "transcript_missing", "transcript_twice"),
        "unrecovered",
    )

    @property
    def holds(self) -> bool:
        """Whether every promise was kept."""
        return not any(getattr(self, name) for name in self.broken_by)

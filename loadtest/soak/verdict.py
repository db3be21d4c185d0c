"""What the soak's checker was told to expect, and what it found.

Knows: names of findings. Must not know: how they are found (`ledger`) or shown (`report`).
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

__all__ = ["Rules", "Verdict"]


class Rules(Struct, frozen=True):
    """What the gateway was configured for, and so what it owes.

    keep_s: how long a session without connection can be resumed. snapshot: utterances shown to a new session;
    log_keep_s: how long a publication can be read again.
    """

    keep_s: float
    snapshot: int
    log_keep_s: float


class Verdict(Struct, frozen=True):
    """owed, delivered, lost: pairs of a client and a caption or an outcome in one language.

    unanswered: finals whose client left cleanly without `accepted` or an error. refused, failed: by code.
    not_resumed: sessions begun anew because the earlier one was gone. gave_up: clients that ended in an error.
    not_shown: newest utterances that a new session did not begin with. duplicates: publications that a client was
    given twice; wire_duplicates: that arrived twice in one session of a client that records everything.
    twice_in_log: captions or outcomes with two offsets. conflicts: offsets at which clients saw different things,
    acceptances with another offset than their caption, and resumed sessions that are another. out_of_order:
    arrivals with an offset that is not above the one before. failed_unexpectedly: failures in the log that no
    cancellation explains. transcript_missing, transcript_twice: accepted utterances that are not once in the
    meeting's transcript. unrecovered: sessions not resumed though their client had been silent for less than the
    keep time. told: errors about the session, by code. problems: the first of each of these, in words.
    """

    said: int
    accepted: int
    unanswered: int
    refused: dict[str, int]
    clients: int
    sessions: int
    resumed: int
    not_resumed: int
    gave_up: int
    owed: int
    delivered: int
    lost: int
    not_shown: int
    duplicates: int
    wire_duplicates: int
    twice_in_log: int
    conflicts: int
    out_of_order: int
    failed: dict[str, int]
    failed_unexpectedly: int
    transcript_missing: int
    transcript_twice: int
    unrecovered: int
    told: dict[str, int]
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

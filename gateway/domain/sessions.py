"""Sessions and meetings as values: what a participant speaks and reads, and what a process hands over to the next.

Knows: the contents of a handover: logs of meetings, and sessions that can be resumed.
Must not know: where a handover is stored, who writes it, clocks.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from msgspec import Struct

from gateway.domain.glossaries import KeptGlossary
from gateway.domain.grants import OPEN, Grant, Revocation
from gateway.domain.log import NO_TITLE, Publication, Title, Unfinished
from gateway.domain.quotas import DayOfTenant
from gateway.domain.webhooks import KeptWebhooks

# What a reader sees of an utterance that is still being said.
# live: the earliest words; the last of them may change. stable: only words that stay. final: nothing.
Stability = Literal["live", "stable", "final"]


class Preferences(Struct, frozen=True):
    """What a participant speaks and reads, and how what is being said is shown to them."""

    speaks: str | None
    reads: tuple[str, ...]
    stability: Stability = "live"
    originals: bool = False


# Format version of the handover file.
HANDOVER_VERSION = 1


class KeptMeeting(Struct, frozen=True):
    """The whole log of a meeting.

    Raises `ValueError` (`msgspec.ValidationError` while decoding) if the offsets do not fit together.
    """

    meeting: str
    epoch: str
    # As in `Page`: offset of the oldest publication that is held.
    first: int
    # As in `Page`: offset of the newest publication that was ever appended.
    last: int
    # All that are held, oldest first.
    publications: tuple[Publication, ...]
    # Who is charged for it.
    account: str = ""
    # What is unfinished; of utterances that are not held any more as well.
    unfinished: tuple[Unfinished, ...] = ()
    # As in `Page`.
    recorded: bool = True
    # As in `Page`.
    title: Title = NO_TITLE

    def __post_init__(self) -> None:
        offsets = [held.offset for held in self.publications]
        if self.first < 1 or len(offsets) != self.last + 1 - self.first or offsets[:1] not in ([], [self.first]):
            raise ValueError("`first` and `last` do not fit a meeting's publications")
        if any(after != before + 1 for before, after in pairwise(offsets)):
            raise ValueError("the offsets of a meeting's publications have a gap")


class SessionRecord(Struct, frozen=True):
    """A session as another gateway, or the next process, can continue it; without its secret."""

    # Its public id in the meeting.
    participant: str
    # The meeting's key.
    meeting: str
    # Whether the session has this meeting to itself.
    private: bool
    name: str
    speaks: str | None
    reads: tuple[str, ...]
    # It receives utterances from this offset on.
    since: int = 0
    # Language that it no longer reads → last offset of the utterances whose translations it still receives.
    stopped: dict[str, int] = {}
    stability: Stability = "live"
    originals: bool = False
    # Who is charged for it.
    account: str = ""
    # What its newest token allows.
    grant: Grant = OPEN
    # When its time is over, in seconds since 1970; None: never.
    until_s: float | None = None
    # Whether its meeting is recorded, which holds also where the log is lost; None: an earlier version wrote this.
    recorded: bool | None = None
    # As `grants.person_of`.
    person: str = ""


class KeptSession(SessionRecord, frozen=True, kw_only=True):
    """A session that a client may resume at the next process."""

    # The secret that resumes it.
    session: str
    # Seconds left to resume it, when this was written. They count again once the next process is ready.
    left_s: float


class UsedToken(Struct, frozen=True):
    """A token that opens one session, and has."""

    tenant: str
    token_id: str
    # Who may use it again: the session's public id, or the guest of an invite.
    user: str
    # Until when, in seconds since 1970.
    until_s: float


class Handover(Struct, frozen=True):
    """Everything that survives a graceful restart.

    An accepted utterance without a translation is a `Said` without its `Translated` or `Untranslated`. The next
    process finds it in the log.
    """

    version: int = HANDOVER_VERSION
    meetings: tuple[KeptMeeting, ...] = ()
    sessions: tuple[KeptSession, ...] = ()
    revocations: tuple[Revocation, ...] = ()
    used_tokens: tuple[UsedToken, ...] = ()
    # What tenants have had translated today.
    days: tuple[DayOfTenant, ...] = ()
    glossaries: tuple[KeptGlossary, ...] = ()
    webhooks: KeptWebhooks = KeptWebhooks()
    # Keys of meetings that are locked.
    locked: tuple[str, ...] = ()
    # Keys of meetings → who is muted in them, as in `Hosted`.
    muted: dict[str, tuple[str, ...]] = {}

"""What gateways share of sessions: who has which, who is present, and how much of everything there may be.

Knows: a session as any gateway can continue it, and bounds that hold over all gateways.
Must not know: where sessions are kept, connections, clocks.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.domain.errors import LimitExceeded, MeetingLocked
from gateway.domain.grants import Revocation
from gateway.domain.log import Title
from gateway.domain.quotas import check_joins, check_quota
from gateway.domain.sessions import SessionRecord

# For which an invite may be valid, and clocks may differ: then nothing that was issued before is valid, and a
# revocation can be forgotten.
REVOCATION_S = 7 * 86_400 + 3_600


class Present(Struct, frozen=True):
    """A participant as everybody else in the meeting sees them."""

    name: str
    # Language tag; None: whatever each utterance says.
    speaks: str | None
    reads: tuple[str, ...]
    # As `grants.person_of`.
    person: str = ""

    @classmethod
    def from_record(cls, record: SessionRecord) -> Present:
        return cls(record.name, record.speaks, record.reads, record.person)


class Hosted(Struct, frozen=True):
    """What hosts have set in a meeting, for as long as somebody is in it."""

    # Who is muted: persons, as `grants.person_of`, and ids of participants without one.
    muted: frozenset[str] = frozenset()
    # None: nobody has set it since somebody is there; the log may have an earlier one.
    title: Title | None = None
    # Whether no session but a host's begins.
    locked: bool = False

    def mutes(self, participant: str, person: str) -> bool:
        return participant in self.muted or (person != "" and person in self.muted)


NOTHING_HOSTED = Hosted()

# Who may be muted in one meeting.
MOST_MUTED = 1_000


class Fence(Struct, frozen=True):
    """By what a store knows whether a gateway that writes for a session still has it."""

    session: bytes
    # As in `Held`.
    number: int


class Held(Struct, frozen=True):
    """A session that is registered."""

    record: SessionRecord
    # Counts up with every resume; a gateway with an older one has lost the session.
    fence: int


class StoredSession(Struct, frozen=True):
    """A session, whichever gateway has it."""

    record: SessionRecord
    # Whether it has no connection, and can be resumed.
    away: bool
    # By what the store knows it.
    key: bytes
    # As in `Held`.
    fence: int


class TenantCounts(Struct, frozen=True):
    """What a tenant has over all gateways."""

    sessions: int = 0
    meetings: int = 0


class Bounds(Struct, frozen=True, kw_only=True):
    """How much of everything there may be, over all gateways. None: as much as comes."""

    # Sessions of the tenant, connected or kept.
    sessions: int | None = None
    # Meetings of the tenant that have a session.
    meetings: int | None = None
    # Languages read in the meeting: what the bound is called → the bound.
    languages: tuple[tuple[str, int], ...] = ()
    # What the tenant has on other stores; added to what this one counts.
    on_other_stores: TenantCounts = TenantCounts()
    # Sessions of the tenant that begin or are taken within a minute; as many may be at once.
    joins: int | None = None
    # Participants of the meeting that the others are told of; more are not refused, but not shown.
    shown: int = 0

    @property
    def most_languages(self) -> int | None:
        return min((most for _, most in self.languages), default=None)

    @property
    def most_sessions(self) -> int | None:
        """How many this store may hold."""
        return None if self.sessions is None else max(0, self.sessions - self.on_other_stores.sessions)

    @property
    def most_meetings(self) -> int | None:
        """How many this store may hold."""
        return None if self.meetings is None else max(0, self.meetings - self.on_other_stores.meetings)

    def check_languages(self, others: int, count: int, before: int) -> None:
        """Each language is a translation of everything that is said. Raises `LimitExceeded`.

        others: how many languages others read. count: how many would be read. before: how many are read now; a
        bound may have been lowered meanwhile, and readers keep what they read.
        """
        for name, most in self.languages:
            if count > before and count > most:
                raise LimitExceeded(
                    f"{others} languages are read in this meeting already; {name} is {most}.", field="reads"
                )

    def check_sessions(self, count: int) -> None:
        """count: the tenant's sessions on this store. Raises `QuotaExceeded` if one is too many."""
        check_quota("sessions", self.sessions, count + self.on_other_stores.sessions)

    def check_meetings(self, others: int) -> None:
        """others: its other meetings on this store. Raises `QuotaExceeded` if one more is too many."""
        check_quota("meetings", self.meetings, others + self.on_other_stores.meetings)

    def check_joins(self, wait_s: float) -> None:
        """wait_s: until the tenant may join once more. Raises `RateLimited` if that is not now."""
        check_joins(self.joins, wait_s)


UNBOUNDED = Bounds()


def check_lock(record: SessionRecord, locked: bool) -> None:
    """Whether a session may begin in a meeting. Raises `MeetingLocked`."""
    if locked and not record.grant.is_host:
        raise MeetingLocked("The host has locked this meeting.")


def check_muted(count: int) -> None:
    """count: who is muted in the meeting already. Raises `LimitExceeded` if one more is too many."""
    if count >= MOST_MUTED:
        raise LimitExceeded(f"{count} participants are muted in this meeting already.", field="participant")


def ends(revocation: Revocation, record: SessionRecord) -> bool:
    """Whether a revocation ends a session."""
    return revocation.ends(record.grant, record.meeting, record.participant)


def what_is_revoked(revocation: Revocation) -> tuple[str | None, ...]:
    """By what a store keeps a revocation; a newer one of the same takes its place.

    A brief one takes only that of a brief one: what it replaced would be forgotten with it.
    """
    meant = (revocation.tenant, revocation.token_id, revocation.subject, revocation.meeting)
    if not revocation.by_operator:
        return meant
    return (*meant, f"{'brief' if revocation.is_brief else 'operator'} {revocation.participant or ''}")

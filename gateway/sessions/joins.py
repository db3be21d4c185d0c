"""Whether one more session may begin: how fast an address and a tenant may join, and what is full.

Knows: rates, quotas of tenants, since when sessions are away. Must not know: sockets, what a session does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from gateway.domain.errors import Forbidden, InvalidValue, RateLimited, TooManySessions
from gateway.domain.grants import Grant, meeting_key, tenant_of
from gateway.domain.quotas import check_joins
from gateway.domain.session_store import Bounds
from gateway.domain.sessions import SessionRecord
from gateway.meeting.members import Member
from gateway.meeting.room import Room
from gateway.protocol.limits import Limits
from gateway.protocol.rate_limit import TokenBucket
from gateway.sessions.effects import Join
from gateway.sessions.seat import Seat
from gateway.translation.scheduling.quotas import Quotas

# Seconds in which an account may join as often as it may at once: a restart lets everybody join again.
_REFILL_S = 60.0


class JoinRate:
    """Bounds joins: so many at once, and as many again within a minute."""

    def __init__(self) -> None:
        # Name → how many, its bucket, and until when the bucket is not full again.
        self._buckets: dict[str, tuple[int, TokenBucket, float]] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, name: str, burst: int, now_s: float) -> float:
        """Count a join. Returns 0, or the seconds to wait if it is one too many."""
        held, bucket, _ = self._buckets.get(name, (0, None, 0.0))
        if bucket is None or held != burst:
            bucket = TokenBucket(burst / _REFILL_S, burst)
        self._buckets[name] = (burst, bucket, now_s + _REFILL_S)
        return bucket.take(now_s)

    def sweep(self, now_s: float) -> None:
        """Forget names that may join as often as any other."""
        self._buckets = {name: held for name, held in self._buckets.items() if held[2] > now_s}


class Joins:
    """Decides who may join."""

    def __init__(self, quotas: Quotas, limits: Limits, *, joins_per_address: int, max_sessions: int) -> None:
        self._quotas = quotas
        self._joins_per_address = joins_per_address
        self._max_sessions = max_sessions
        self._limits = limits
        self._addresses = JoinRate()
        self._tenants = JoinRate()

    def check_rate(self, address: str, tenant: str, now_s: float) -> None:
        """Count a join of a tenant from an address. Raises `RateLimited`.

        What is too much here is too much over all gateways, and the session store need not be asked.
        """
        # First the tenant: what it has too much of must not use up what the address may.
        if (most := self._quotas.of(tenant).joins) is not None:
            check_joins(most, self._tenants.take(tenant, most, now_s))
        if wait_s := self._addresses.take(address, self._joins_per_address, now_s):
            message = f"This address has joined {self._joins_per_address} times within a minute."
            raise RateLimited(message, retry_after_ms=max(1, round(wait_s * 1_000)))

    def bounds(self, meeting: str) -> Bounds:
        """What holds over all gateways. meeting: its key."""
        quota = self._quotas.of(tenant_of(meeting))
        languages = {"the limit meeting_languages": self._limits.meeting_languages}
        if quota.languages is not None:
            languages["this tenant's quota languages"] = quota.languages
        return Bounds(
            sessions=quota.sessions,
            meetings=quota.meetings,
            languages=tuple(languages.items()),
            joins=quota.joins,
            shown=self._limits.participants_shown,
        )

    def check_languages(self, room: Room, member: Member | None, reads: Collection[str]) -> None:
        """Before anything is translated into them: what is read here alone. Raises `LimitExceeded`."""
        if not (here := room.languages()).issuperset(reads):
            others = room.languages(but=member)
            self.bounds(room.id).check_languages(len(others), len({*others, *reads}), len(here))

    def check_resume(self, join: Join, grant: Grant, record: SessionRecord) -> None:
        """Whether a session may go on with this. Raises `Forbidden`, `InvalidValue` or `UnsupportedLanguage`."""
        if (grant.tenant, grant.subject) != (record.grant.tenant, record.grant.subject):
            raise Forbidden("This session is somebody else's.", field="resume.session")
        if join.meeting is not None and meeting_key(grant.tenant, join.meeting) != record.meeting:
            raise InvalidValue("This session belongs to another meeting.", field="resume.session")
        if join.meeting is None and not record.private and not grant.any_meeting:
            raise Forbidden("The token is for private meetings only.", field="resume.session")
        for lang, error in join.gone.items():
            if lang not in (*record.reads, record.speaks):
                raise error

    def giving_way(self, seats: Collection[Seat], account: str) -> Seat | None:
        """Whose session has to end for a newcomer; None if there is room. Raises `TooManySessions`."""
        if len(seats) < self._max_sessions:
            return None
        if (seat := to_give_way(seats, account)) is None:
            raise TooManySessions(f"This gateway holds {self._max_sessions} sessions already.")
        return seat

    def sweep(self, now_s: float) -> None:
        """Forget what does not matter any more."""
        self._addresses.sweep(now_s)
        self._tenants.sweep(now_s)


def to_give_way(seats: Iterable[Seat], account: str) -> Seat | None:
    """Whose session ends for a newcomer of `account`: of the account that has the most, the longest away.

    All sessions of an account count, and those that are away can end. Among accounts that have as many, the
    newcomer's own comes first. None where nobody is away but of accounts that have fewer than the newcomer's.
    """
    held: Counter[str] = Counter()
    away: dict[str, list[Seat]] = {}
    for seat in seats:
        held[seat.account] += 1
        if seat.away_since_s is not None:
            away.setdefault(seat.account, []).append(seat)
    most = max(away, key=lambda name: (held[name], name == account), default=None)
    if most is None or held[most] < held[account]:
        return None
    return min(away[most], key=lambda seat: seat.away_since_s or 0.0)

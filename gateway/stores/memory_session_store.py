"""The session store in this process's memory. It ends with the process unless handed over.

Knows: which gateway has which session, who is present, what every tenant has, which tokens are used up or revoked.
Must not know: rooms, connections, files. Nothing here awaits, so every operation is atomic in the event loop that
owns the store.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from gateway.domain.errors import Unauthenticated
from gateway.domain.grants import Revocation, tenant_of
from gateway.domain.log import Title
from gateway.domain.ports import LEASE_S
from gateway.domain.session_store import (
    NOTHING_HOSTED,
    REVOCATION_S,
    UNBOUNDED,
    Bounds,
    Held,
    Hosted,
    Present,
    StoredSession,
    TenantCounts,
    check_lock,
    check_muted,
    ends,
    what_is_revoked,
)
from gateway.domain.sessions import SessionRecord, UsedToken

_Deliver = Callable[[str, Present | None], None]
_DeliverHosted = Callable[[Hosted], None]

# Clocks of those who issue tokens may differ from ours.
_LATE_S = 60.0
# In which a tenant may join as often as it may at once.
_MINUTE_US = 60_000_000


@dataclass(slots=True)
class _Session:
    record: SessionRecord
    # The gateway that has it, or had it when it was last heard of; None: it let go of it.
    owner: MemorySessionStore | None
    # Whether the others in the meeting were told of its participant.
    shown: bool
    fence: int = 1
    # Since when its client is away.
    away_s: float | None = None


@dataclass(slots=True)
class _Meeting:
    sessions: int = 0
    # Language → how many read it.
    reads: Counter[str] = field(default_factory=Counter)
    # Participant → how the others see them.
    present: dict[str, Present] = field(default_factory=dict)
    subscribers: dict[object, tuple[_Deliver, _DeliverHosted]] = field(default_factory=dict)
    hosted: Hosted = NOTHING_HOSTED

    @property
    def is_empty(self) -> bool:
        return not self.sessions and not self.subscribers

    def tell_subscribers(self, participant: str, present: Present | None) -> None:
        for deliver, _ in tuple(self.subscribers.values()):
            deliver(participant, present)

    def host(self, hosted: Hosted) -> None:
        """Hosts have set this; subscribers are told."""
        if hosted != self.hosted:
            self.hosted = hosted
            for _, deliver in tuple(self.subscribers.values()):
                deliver(hosted)


class MemorySessions:
    """What the gateways of one process share. keep_s: how long a session that is away can be resumed.

    started, ended: are told of meetings, but not that a private one has started.
    """

    def __init__(
        self,
        *,
        keep_s: float,
        started: Callable[[str], None] = lambda _: None,
        ended: Callable[[str], None] = lambda _: None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.keep_s = keep_s
        self.started, self.ended = started, ended
        # Unix time in seconds.
        self.wall_clock = wall_clock
        self.sessions: dict[bytes, _Session] = {}
        # Sessions that no gateway has → since when they are away.
        self.ownerless: dict[bytes, float] = {}
        # By the meeting's key.
        self.meetings: dict[str, _Meeting] = {}
        # Tenant → how many.
        self.sessions_of: Counter[str] = Counter()
        self.meetings_of: Counter[str] = Counter()
        # Tenant → when it may join as often as it may at once, in µs.
        self.busy_until_us: dict[str, int] = {}
        # Tenant and id of a token.
        self.used: dict[tuple[str, str], UsedToken] = {}
        # By the tenant and what is revoked.
        self.revocations: dict[tuple[str | None, ...], Revocation] = {}
        # Gateway → when it was last heard of.
        self.heard_s: dict[MemorySessionStore, float] = {}

    def fence_of(self, session: bytes) -> int | None:
        """None if there is no such session."""
        found = self.sessions.get(session)
        return None if found is None else found.fence

    def meeting(self, key: str) -> _Meeting:
        return self.meetings.setdefault(key, _Meeting())

    def forget_if_over(self, key: str) -> None:
        if self.meetings[key].is_empty:
            del self.meetings[key]

    def join(self, tenant: str, most: int | None) -> float:
        """Count a join of a tenant. Returns 0, or the seconds to wait if it is one too many."""
        if most is None:
            return 0.0
        now_us = round(self.wall_clock() * 1e6)
        busy_us = max(0, self.busy_until_us.get(tenant, 0) - now_us) + _MINUTE_US // most
        if busy_us > _MINUTE_US:
            return (busy_us - _MINUTE_US) / 1e6
        self.busy_until_us[tenant] = now_us + busy_us
        return 0.0

    def has_used(self, used: UsedToken | None) -> bool:
        """Whether somebody else has used up this token."""
        earlier = self.used.get((used.tenant, used.token_id)) if used is not None else None
        return earlier is not None and used is not None and earlier.user != used.user

    def use(self, used: UsedToken | None) -> bool:
        """Returns whether nobody had used it before."""
        if used is None or (used.tenant, used.token_id) in self.used:
            return False
        self.used[used.tenant, used.token_id] = used
        return True

    def give_back(self, unused: UsedToken | None) -> None:
        if unused is not None and not self.has_used(unused):
            self.used.pop((unused.tenant, unused.token_id), None)

    def sweep(self) -> None:
        """Let go of gateways that are gone, of sessions that nobody has, of tokens that would not be valid."""
        now_s = self.wall_clock()
        for gateway, heard_s in list(self.heard_s.items()):
            if heard_s + LEASE_S <= now_s:
                self.leave(gateway, heard_s)
        for session in [key for key, away_s in self.ownerless.items() if away_s + self.keep_s <= now_s]:
            owner = self.sessions[session].owner
            self.end(session)
            if owner is not None:
                owner.tell_moved(session, elsewhere=False)
        for tenant in [tenant for tenant, until_us in self.busy_until_us.items() if until_us <= now_s * 1e6]:
            del self.busy_until_us[tenant]
        for token in [token for token, used in self.used.items() if used.until_s < now_s - _LATE_S]:
            del self.used[token]
        for meant in [meant for meant, each in self.revocations.items() if each.before_s <= now_s - REVOCATION_S]:
            del self.revocations[meant]

    def leave(self, gateway: MemorySessionStore, heard_s: float) -> None:
        """This gateway is gone; its sessions are away since it was last heard of."""
        self.heard_s.pop(gateway, None)
        for key, session in self.sessions.items():
            if session.owner is gateway:
                self.ownerless.setdefault(key, heard_s if session.away_s is None else session.away_s)

    def come_back(self, gateway: MemorySessionStore) -> None:
        """It was not gone: it has those of its sessions that nobody has taken."""
        for key in [key for key in self.ownerless if self.sessions[key].owner is gateway]:
            del self.ownerless[key]

    def change(self, session: _Session, record: SessionRecord) -> None:
        """A session reads other languages, or its participant is another."""
        meeting, before = self.meetings[record.meeting], session.record
        _less(meeting.reads, *before.reads)
        meeting.reads.update(record.reads)
        session.record = record
        if session.shown and Present.from_record(before) != (present := Present.from_record(record)):
            meeting.present[record.participant] = present
            meeting.tell_subscribers(record.participant, present)

    def end(self, key: bytes) -> None:
        session = self.sessions.pop(key)
        self.ownerless.pop(key, None)
        record = session.record
        meeting, tenant = self.meetings[record.meeting], tenant_of(record.meeting)
        meeting.sessions -= 1
        _less(meeting.reads, *record.reads)
        _less(self.sessions_of, tenant)
        if not meeting.sessions:
            meeting.host(NOTHING_HOSTED)  # subscribers may keep it from being forgotten
            _less(self.meetings_of, tenant)
            self.ended(record.meeting)
        if session.shown:
            del meeting.present[record.participant]
            meeting.tell_subscribers(record.participant, None)
        self.forget_if_over(record.meeting)


class MemorySessionStore:
    """One gateway's access to a store."""

    def __init__(self, store: MemorySessions) -> None:
        self._store = store
        self._moved: Callable[[bytes, bool], None] = lambda _session, _elsewhere: None
        self._revoked: Callable[[Revocation], None] = lambda _: None

    async def open(self, moved: Callable[[bytes, bool], None], revoked: Callable[[Revocation], None]) -> None:
        self._moved, self._revoked = moved, revoked
        for revocation in self._store.revocations.values():
            revoked(revocation)
        self._renew()

    def can_hold(self, session: bytes, meeting: str) -> bool:
        return True

    async def begin(
        self, session: bytes, record: SessionRecord, bounds: Bounds = UNBOUNDED, used: UsedToken | None = None
    ) -> int:
        store = self._store
        if (begun := store.sessions.get(session)) is not None:
            return begun.fence
        tenant, known = tenant_of(record.meeting), store.meetings.get(record.meeting)
        check_lock(record, known is not None and known.hosted.locked)
        _check_languages(known, record, (), bounds)
        bounds.check_sessions(store.sessions_of[tenant])
        bounds.check_meetings(store.meetings_of[tenant] - (known is not None and known.sessions > 0))
        bounds.check_joins(store.join(tenant, bounds.joins))
        if store.has_used(used):
            raise Unauthenticated(why="used")
        store.use(used)
        meeting = store.meeting(record.meeting)
        shown = len(meeting.present) < bounds.shown
        store.sessions[session] = _Session(record, self, shown)
        meeting.sessions += 1
        meeting.reads.update(record.reads)
        store.sessions_of[tenant] += 1
        if meeting.sessions == 1:
            store.meetings_of[tenant] += 1
            if not record.private:
                store.started(record.meeting)
        if shown:
            present = meeting.present[record.participant] = Present.from_record(record)
            meeting.tell_subscribers(record.participant, present)
        return 1

    async def find(self, session: bytes) -> Held | None:
        found = self._store.sessions.get(session)
        return None if found is None else Held(found.record, found.fence)

    async def take(
        self,
        session: bytes,
        fence: int,
        record: SessionRecord,
        bounds: Bounds = UNBOUNDED,
        used: UsedToken | None = None,
    ) -> int | None:
        if (found := self._with(session, fence)) is None:
            return None
        _check_languages(self._store.meetings[record.meeting], record, found.record.reads, bounds)
        bounds.check_joins(self._store.join(tenant_of(record.meeting), bounds.joins))
        if self._store.has_used(used):
            raise Unauthenticated(why="used")
        self._store.use(used)
        before, found.owner, found.away_s, found.fence = found.owner, self, None, fence + 1
        self._store.ownerless.pop(session, None)
        self._store.change(found, record)
        if before is not None and before is not self:
            before.tell_moved(session, elsewhere=True)
        return found.fence

    async def save(
        self,
        session: bytes,
        fence: int,
        record: SessionRecord,
        *,
        away_s: float | None = None,
        bounds: Bounds = UNBOUNDED,
    ) -> bool:
        if (found := self._with(session, fence)) is None:
            return False
        _check_languages(self._store.meetings[record.meeting], record, found.record.reads, bounds)
        self._store.ownerless.pop(session, None)
        found.away_s = None if away_s is None else self._store.wall_clock() - away_s
        self._store.change(found, record)
        return True

    async def release(self, session: bytes, fence: int) -> None:
        if (found := self._with(session, fence)) is not None and found.owner is self:
            found.owner = None
            away_s = self._store.wall_clock() if found.away_s is None else found.away_s
            self._store.ownerless.setdefault(session, away_s)

    async def end(self, session: bytes, fence: int, unused: UsedToken | None = None) -> None:
        self._store.give_back(unused)
        if self._with(session, fence) is not None:
            self._store.end(session)

    @asynccontextmanager
    async def subscribe(
        self, meeting: str, deliver: _Deliver, hosted: _DeliverHosted = lambda _: None
    ) -> AsyncIterator[None]:
        of_meeting, subscription = self._store.meeting(meeting), object()
        of_meeting.subscribers[subscription] = deliver, hosted
        try:
            if of_meeting.hosted != NOTHING_HOSTED:
                hosted(of_meeting.hosted)
            for participant, present in tuple(of_meeting.present.items()):
                deliver(participant, present)
            yield
        finally:
            del of_meeting.subscribers[subscription]
            if self._store.meetings.get(meeting) is of_meeting:
                self._store.forget_if_over(meeting)

    async def lock(self, meeting: str, locked: bool) -> None:
        if (known := self._store.meetings.get(meeting)) is not None and known.sessions:
            known.host(replace(known.hosted, locked=locked))

    async def mute(self, meeting: str, who: str, muted: bool) -> None:
        if (known := self._store.meetings.get(meeting)) is None or not known.sessions:
            return
        others = known.hosted.muted - {who}
        if muted:
            check_muted(len(others))
        known.host(replace(known.hosted, muted=others | {who} if muted else others))

    async def entitle(self, meeting: str, title: Title) -> None:
        if (known := self._store.meetings.get(meeting)) is not None and known.sessions:
            known.host(replace(known.hosted, title=title))

    async def use(self, used: UsedToken, session: bytes = b"") -> bool:
        if self._store.has_used(used):
            raise Unauthenticated(why="used")
        return self._store.use(used)

    async def revoke(self, revocation: Revocation) -> None:
        meant = what_is_revoked(revocation)
        self._store.revocations[meant] = revocation
        for gateway in tuple(self._store.heard_s):
            if gateway is not self:
                gateway._revoked(revocation)

    async def count_revoked_by(self, revocation: Revocation, but: Collection[bytes]) -> int:
        sessions = self._store.sessions.items()
        return sum(ends(revocation, each.record) for session, each in sessions if session not in but)

    async def sessions(self, meeting: str | None = None) -> tuple[StoredSession, ...]:
        ownerless = self._store.ownerless
        return tuple(
            StoredSession(
                each.record, away=each.away_s is not None or session in ownerless, key=session, fence=each.fence
            )
            for session, each in self._store.sessions.items()
            if meeting in (None, each.record.meeting)
        )

    async def counts(self, tenant: str) -> TenantCounts:
        return TenantCounts(self._store.sessions_of[tenant], self._store.meetings_of[tenant])

    async def sweep(self) -> None:
        self._renew()
        self._store.sweep()

    def kept_locks(self) -> tuple[str, ...]:
        """Meetings that are locked, for the next process."""
        return tuple(key for key, meeting in self._store.meetings.items() if meeting.hosted.locked)

    def kept_muted(self) -> dict[str, tuple[str, ...]]:
        """Who is muted in which meeting, for the next process."""
        meetings = self._store.meetings.items()
        return {key: tuple(sorted(meeting.hosted.muted)) for key, meeting in meetings if meeting.hosted.muted}

    def kept_tokens(self) -> tuple[UsedToken, ...]:
        """For the next process."""
        return tuple(self._store.used.values())

    async def close(self) -> None:
        self._moved = lambda _session, _elsewhere: None
        self._store.leave(self, self._store.wall_clock())

    def tell_moved(self, session: bytes, *, elsewhere: bool) -> None:
        """This gateway has lost a session: another one has it, or it has ended."""
        self._moved(session, elsewhere)

    def _with(self, session: bytes, fence: int) -> _Session | None:
        found = self._store.sessions.get(session)
        return found if found is not None and found.fence == fence else None

    def _renew(self) -> None:
        if self not in self._store.heard_s:
            self._store.come_back(self)
        self._store.heard_s[self] = self._store.wall_clock()


def _check_languages(
    meeting: _Meeting | None, record: SessionRecord, before: tuple[str, ...], bounds: Bounds
) -> None:
    reads = meeting.reads if meeting is not None else Counter[str]()
    if reads.keys() >= set(record.reads):
        return
    others = len(reads) - sum(reads[lang] == 1 for lang in set(before))
    more = sum(reads[lang] == (lang in before) for lang in set(record.reads))
    bounds.check_languages(others, others + more, len(reads))


def _less(counts: Counter[str], *names: str) -> None:
    """One less of each. A name that is left without any is not there."""
    for name in names:
        counts[name] -= 1
        if counts[name] <= 0:
            del counts[name]

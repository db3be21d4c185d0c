"""How sessions begin, and how they are resumed, whichever gateway had them; whether there is room for one more.

Knows: rates, quotas, what is checked first, what is undone when it fails.
Must not know: sockets, why sessions end.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections import Counter
from collections.abc import Collection, Iterable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from gateway import metrics
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import (
    Forbidden,
    GatewayError,
    InvalidValue,
    LimitExceeded,
    LogUnavailable,
    MeetingLocked,
    QuotaExceeded,
    RateLimited,
    TooManySessions,
    Unauthenticated,
)
from gateway.domain.grants import Grant, meeting_key, person_of, tenant_of
from gateway.domain.ports import SessionStore
from gateway.domain.quotas import check_joins
from gateway.domain.session_store import Bounds, Held
from gateway.domain.sessions import Preferences, SessionRecord, UsedToken
from gateway.meeting.feed import Feed
from gateway.meeting.members import Member
from gateway.meeting.outbox import Outbox
from gateway.meeting.room import Room, Rooms
from gateway.protocol.limits import Limits
from gateway.protocol.messages import Resume
from gateway.protocol.rate_limit import TokenBucket
from gateway.sessions.grants import check_recorded, may_read, wanted_record
from gateway.sessions.lifetimes import Lifetimes
from gateway.sessions.local_session import Finish, LocalSession, key_of, restored
from gateway.sessions.local_sessions import LocalSessions, replaced
from gateway.sessions.machine import Join, SessionState
from gateway.translation.finals import Finals
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

    def count(self, name: str, burst: int, now_s: float) -> float:
        """Count a join. Returns 0, or the seconds to wait if it is one too many."""
        held, bucket, _ = self._buckets.get(name, (0, None, 0.0))
        if bucket is None or held != burst:
            bucket = TokenBucket(burst / _REFILL_S, burst)
        self._buckets[name] = (burst, bucket, now_s + _REFILL_S)
        return bucket.take(now_s)

    def sweep(self, now_s: float) -> None:
        """Forget names that may join as often as any other."""
        self._buckets = {name: held for name, held in self._buckets.items() if held[2] > now_s}


class JoinLimits:
    """Whether there is room for one more."""

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
        if (most := self._quotas.quota_of(tenant).joins) is not None:
            check_joins(most, self._tenants.count(tenant, most, now_s))
        if wait_s := self._addresses.count(address, self._joins_per_address, now_s):
            message = f"This address has joined {self._joins_per_address} times within a minute."
            raise RateLimited(message, retry_after_ms=max(1, round(wait_s * 1_000)))

    def bounds(self, meeting: str) -> Bounds:
        """What holds over all gateways. meeting: its key."""
        quota = self._quotas.quota_of(tenant_of(meeting))
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

    def session_to_end(self, local: Collection[LocalSession], account: str) -> LocalSession | None:
        """Whose session has to end for a newcomer; None if there is room. Raises `TooManySessions`."""
        if len(local) < self._max_sessions:
            return None
        if (session := longest_away(local, account)) is None:
            raise TooManySessions(f"This gateway holds {self._max_sessions} sessions already.")
        return session

    def sweep(self, now_s: float) -> None:
        self._addresses.sweep(now_s)
        self._tenants.sweep(now_s)


def longest_away(local: Iterable[LocalSession], account: str) -> LocalSession | None:
    """Whose session ends for a newcomer: the longest away, of the account with the most; None: nobody's.

    Among equals it is the newcomer's own account. One with fewer sessions than that gives none up.
    """
    held: Counter[str] = Counter()
    away: dict[str, list[LocalSession]] = {}
    for session in local:
        held[session.account] += 1
        if session.away_since_s is not None:
            away.setdefault(session.account, []).append(session)
    most = max(away, key=lambda name: (held[name], name == account), default=None)
    if most is None or held[most] < held[account]:
        return None
    return min(away[most], key=lambda session: session.away_since_s or 0.0)


_log = logging.getLogger(__name__)

# How often a resume is tried that others get in the way of.
_MOST_TRIES = 5


class Entry(Struct, frozen=True):
    """A session as it begins or goes on, with a feed that is not live yet: see `Room.stream_to`."""

    session: LocalSession
    feed: Feed
    # Whether everything missed will follow; None where nothing was to be resumed.
    recovered: bool | None


class Client(Struct, frozen=True):
    """Who asks for a session, and over what."""

    join: Join
    # The protocol's state, with what the token allows.
    state: SessionState
    outbox: Outbox
    finish: Finish
    # Who is charged.
    account: str


class Entrance(Struct, frozen=True, kw_only=True):
    session_store: SessionStore
    local: LocalSessions
    rooms: Rooms
    join_limits: JoinLimits
    lifetimes: Lifetimes
    finals: Finals
    limits: Limits

    async def enter(self, client: Client) -> Entry:
        """A session goes on, or begins. Raises what `Sessions.join` raises; then nothing has changed."""
        resume = client.join.resume
        resumed = await self._resume(client, resume) if resume is not None else None
        return resumed or await self._begin(client)

    # ------------------------------------------------------------ beginning

    async def _begin(self, client: Client) -> Entry:
        join, grant = client.join, client.state.grant
        for error in join.gone.values():
            raise error
        record, private = wanted_record(grant, join.record), join.meeting is None
        meeting = meeting_key(grant.tenant, join.meeting or secrets.token_hex(8))
        async with contextlib.AsyncExitStack() as entering:
            room = await entering.enter_async_context(
                self.rooms.enter(meeting, private=private, account=client.account, record=record)
            )
            check_recorded(grant, join.record, room.recorded)
            self.join_limits.check_languages(room, None, join.reads)
            await entering.enter_async_context(room.reading(join.reads))
            epoch, after = room.epoch, await room.latecomers_position()
            self.join_limits.session_to_end(self.local.all, client.account)
            member = Member(
                participant=secrets.token_hex(4),
                name=join.name,
                speaks=join.speaks,
                reads=join.reads,
                stability=join.stability,
                originals=join.originals,
                since=after + 1,
                account=client.account,
                person=person_of(grant, meeting, join.guest),
            )
            wants = partial(room.shows, member)
            feed = Feed(client.outbox, after, participant=member.participant, wants=wants, newcomer=True)
            session = LocalSession(secret=self._new_secret(meeting), room=room, member=member, state=client.state)
            self.lifetimes.begin(session, grant)
            used = await self._session_store_begin(session)
            try:
                self.lifetimes.revocations.check(grant)
                if room.epoch != epoch:
                    raise LogUnavailable("The meeting's log was begun again; try again.", retry_after_ms=0)
                giving_way = self.join_limits.session_to_end(self.local.all, client.account)
            except GatewayError:
                self.local.writes.end(session.key, session.fence, used)
                raise
            if giving_way is not None:
                self.local.end(giving_way)
            session.connect(feed, client.state, client.finish)
            self.local.add(session)
        metrics.SESSIONS.inc()
        metrics.SESSIONS_STARTED.inc()
        _log.info("session %s… started", member.participant)
        self.finals.catch_up(room, member.reads)
        return Entry(session, feed, None if join.resume is None else False)

    def _new_secret(self, meeting: str) -> str:
        # A session is found by its secret alone, so that has to fall on the meeting's store: with two, half do.
        while not self.session_store.can_hold(key_of(secret := secrets.token_hex(16)), meeting):
            pass
        return secret

    async def _session_store_begin(self, session: LocalSession) -> UsedToken | None:
        """Returns the token that it has used up, if it is one that opens one session."""
        used = self.lifetimes.revocations.used(session.grant, session.member.participant)
        if used is not None and self.local.writes.is_giving_back(used):
            raise LogUnavailable("This token is in doubt for a moment; try again.", retry_after_ms=1_000)
        record, bounds = self.lifetimes.record(session), self.join_limits.bounds(session.room.id)
        try:
            session.fence = await self.session_store.begin(session.key, record, bounds, used)
        except (LimitExceeded, MeetingLocked, QuotaExceeded, RateLimited, Unauthenticated):
            raise
        except BaseException:
            # It may have begun all the same.
            self.local.writes.end(session.key, 1, used)
            raise
        return used

    # ------------------------------------------------------------ going on

    async def _resume(self, client: Client, resume: Resume) -> Entry | None:
        """Go on with a session, whichever gateway has it. None if there is none."""
        key = key_of(resume.session)
        for _ in range(_MOST_TRIES):
            if self.local.writes.is_ending(key):
                return None
            session = self.local.get(key)
            if session is not None:
                held: Held | None = Held(self.lifetimes.record(session), session.fence)
            else:
                held = await self.session_store.find(key)
            if held is None:
                return None
            grant = held.record.grant
            if session is None and not self.lifetimes.is_valid(grant):
                self.local.writes.end(key, held.fence)
                return None
            self.join_limits.check_resume(client.join, client.state.grant, held.record)
            if (entry := await self._resume_here(client, resume, held, session)) is not None:
                return entry
        raise LogUnavailable("Others resume this session at the same time.", retry_after_ms=1_000)

    async def _resume_here(
        self, client: Client, resume: Resume, held: Held, session: LocalSession | None
    ) -> Entry | None:
        """None if the session has gone elsewhere meanwhile, or ended. session: where it is this gateway's."""
        join, record, key = client.join, held.record, key_of(resume.session)
        async with self.rooms.enter(
            record.meeting, private=record.private, account=record.account, record=record.recorded
        ) as room:
            check_recorded(client.state.grant, join.record, room.recorded)
            if session is not None:  # else what it reads now is known elsewhere, as if another one read it
                self.join_limits.check_languages(room, session.member, join.reads)
            async with room.reading(join.reads):
                page = await room.log.read(room.id, resume.offset, 1)
                newest = await room.latecomers_position()
                recovered = page.epoch == resume.epoch and page.first - 1 <= resume.offset <= page.last
                if self.local.get(key) is not session:
                    return None
                if session is None:
                    self.join_limits.session_to_end(self.local.all, client.account)
                fence = await self._take_session(client, key, held)
                if self.local.get(key) is not session or (session is not None and session.fence != held.fence):
                    # It has ended here meanwhile, or another connection here goes on with it.
                    if fence is not None and self.local.writes.is_ending(key):
                        self.local.writes.end(key, fence)
                    elif fence is not None:
                        self.local.writes.release(key, fence)
                    return None
                if fence is None:
                    self.local.moved(key, elsewhere=True)
                    return None
                if session is None:
                    session = self._take_in(client, resume.session, held, room)
                session.fence, session.member.account = fence, client.account
                after = resume.offset if recovered else newest
                return self._connect(session, client, after, recovered=recovered)

    async def _take_session(self, client: Client, key: bytes, held: Held) -> int | None:
        """As `SessionStore.take`."""
        join, grant, record = client.join, client.state.grant, held.record
        used = self.lifetimes.check(grant, record.participant, record)
        wanted = replace(
            record,
            name=join.name,
            speaks=join.speaks,
            reads=join.reads,
            stability=join.stability,
            originals=join.originals,
            account=client.account,
            grant=grant,
        )
        try:
            return await self.session_store.take(
                key, held.fence, wanted, self.join_limits.bounds(record.meeting), used
            )
        except (LimitExceeded, RateLimited, Unauthenticated):
            raise
        except BaseException:
            # It may have been taken all the same. The client comes again, and finds it away.
            self.local.moved(key, elsewhere=True)
            self.local.writes.release(key, held.fence)
            raise

    def _take_in(self, client: Client, secret: str, held: Held, room: Room) -> LocalSession:
        """A session that another gateway had."""
        if (giving_way := self.join_limits.session_to_end(self.local.all, client.account)) is not None:
            self.local.end(giving_way)
        session = restored(room, held.record, secret, self.limits, held.fence)
        self.lifetimes.recall(session, held.record)
        self.local.add(session)
        return session

    def _connect(self, session: LocalSession, client: Client, after: int, *, recovered: bool) -> Entry:
        room, member, join = session.room, session.member, client.join
        self.local.save(session)
        self.lifetimes.begin(session, client.state.grant)
        if session.finish is not None:
            session.finish(CloseCode.REPLACED, replaced())
        else:
            metrics.SESSIONS.inc()
        client.state.inherit(session.state)
        # What is still on its way over the earlier connection is not this session's any more.
        session.state.disconnected()
        participant, wants = member.participant, partial(room.shows, member)
        feed = Feed(client.outbox, after, participant=participant, wants=wants, newcomer=not recovered)
        session.connect(feed, client.state, client.finish)
        room.update(member, join.name, Preferences(join.speaks, join.reads, join.stability, join.originals))
        room.cut_off(member, partial(may_read, client.state.grant))
        if not recovered:
            room.start_over(member, after + 1)
        metrics.SESSIONS_RESUMED.labels("recovered" if recovered else "lost").inc()
        _log.info("session %s… goes on", member.participant)
        self.finals.catch_up(room, member.reads)
        return Entry(session, feed, recovered)

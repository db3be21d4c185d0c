"""The session store in Redis: one gateway's access to a store that gateways share.

Every operation is one script, and can be repeated. What others did to sessions of this gateway, and what
they revoked, is pushed, and counted: where a count differs, the store is asked.

Knows: the scripts' arguments, which sessions this gateway has, who is present in its meetings.
Must not know: how scripts work, rooms, connections.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NoReturn, TypeVar

import msgspec

from gateway.domain.errors import MeetingLocked, Unauthenticated
from gateway.domain.grants import Revocation, tenant_of
from gateway.domain.log import Title
from gateway.domain.ports import LEASE_S
from gateway.domain.session_store import (
    MOST_MUTED,
    NOTHING_HOSTED,
    REVOCATION_S,
    UNBOUNDED,
    Bounds,
    Held,
    Hosted,
    Present,
    StoredSession,
    TenantCounts,
    check_muted,
    ends,
    what_is_revoked,
)
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.stores.redis.commands import tried, unavailable
from gateway.stores.redis.connection import Argument
from gateway.stores.redis.entries import title_of, title_text
from gateway.stores.redis.pushes import Missed
from gateway.stores.redis.store import RedisStore

_log = logging.getLogger(__name__)

# Every so many sweeps, versions are compared with the store's.
_CHECK_SWEEPS = 3
# How long a sweep, and a gateway that leaves, waits for the store.
_SHORT_PATIENCE_S = 1.0
# Sessions that one sweep looks at; sessions or meetings that one script is asked about.
_SWEPT = 200
_ASKED = 500
# A session that is to end before it has begun: how long its begin may lie in the network.
_DOUBT_MS = 120_000
# Clocks of those who issue tokens may differ from ours.
_LATE_S = 60.0

T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()
_records = msgspec.msgpack.Decoder(SessionRecord)
_revocations = msgspec.msgpack.Decoder(Revocation)
_presents = msgspec.msgpack.Decoder(Present)
_hosted = msgspec.msgpack.Decoder(list[str])

_Deliver = Callable[[str, Present | None], None]
_DeliverHosted = Callable[[Hosted], None]


def encode_present(present: Present) -> bytes:
    """What the store keeps of a participant."""
    return _encoder.encode(present)


class MeetingPresence:
    """Who is present in one meeting, and what hosts have set there.

    It comes by pushes, and by reading where one is missing, in any order.
    """

    def __init__(self, meeting: str) -> None:
        self.meeting = meeting
        # How many have subscribed, or are about to.
        self.users = 0
        # Version of the newest change that is known; None before the first read.
        self.version: int | None = None
        # Pushes that were delivered.
        self.pushed = 0
        self._present: dict[str, Present] = {}
        self._hosted = NOTHING_HOSTED
        self._subscribers: dict[object, tuple[_Deliver, _DeliverHosted]] = {}

    def add(self, subscription: object, deliver: _Deliver, hosted: _DeliverHosted) -> None:
        """A subscriber, who is told of everybody who is present."""
        self._subscribers[subscription] = deliver, hosted
        if self._hosted != NOTHING_HOSTED:
            hosted(self._hosted)
        for participant, present in tuple(self._present.items()):
            deliver(participant, present)

    def remove(self, subscription: object) -> None:
        self._subscribers.pop(subscription, None)

    def push(self, data: bytes) -> bool:
        """A change was pushed. Returns whether one before it is missing, so that all is to be read."""
        header, _, value = data.partition(b"\n")
        version, previous, participant = header.split(b" ")
        if self.version is None or int(version) > self.version != int(previous):
            return True
        if int(version) > self.version:
            self.version = int(version)
            self.pushed += 1
            if participant:
                self._put(participant.decode(), _present_of(value))
            else:
                self._host(_hosted_of(value))
        return False

    def read(self, version: int, fields: Sequence[bytes], pushed: int, hosted: bytes = b"") -> None:
        """All of it was read. pushed: the pushes that were delivered before; later ones may be newer than this."""
        if self.version is not None and version < self.version and pushed != self.pushed:
            return
        self.version = version
        self._host(_hosted_of(hosted))
        values = dict(zip((each.decode() for each in fields[::2]), fields[1::2], strict=True))
        for participant in self._present.keys() - values.keys():
            self._put(participant, None)
        for participant in sorted(values, key=lambda participant: _came(values[participant])):
            self._put(participant, _present_of(values[participant]))

    def _put(self, participant: str, present: Present | None) -> None:
        if present == self._present.get(participant):
            return
        if present is None:
            del self._present[participant]
        else:
            self._present[participant] = present
        for deliver, _ in tuple(self._subscribers.values()):
            deliver(participant, present)

    def _host(self, hosted: Hosted) -> None:
        if hosted != self._hosted:
            self._hosted = hosted
            for _, deliver in tuple(self._subscribers.values()):
                deliver(hosted)


def _came(value: bytes) -> int:
    return int(value.partition(b" ")[0])


def _hosted_of(value: bytes) -> Hosted:
    """value: as the scripts tell it; empty: nothing."""
    if not value:
        return NOTHING_HOSTED
    muted, locked, *title = _hosted.decode(value)
    return Hosted(frozenset(muted.split()), title_of(title[0].encode()) if title else None, locked == "1")


def _present_of(value: bytes) -> Present | None:
    if not value:
        return None
    try:
        return _presents.decode(value.partition(b" ")[2])
    except msgspec.MsgspecError:
        _log.error("a participant of a meeting cannot be read; did a newer gateway write it?")
        return None


class RedisSessionStore:
    """One gateway's session store, once it is open. keep_s: how long a session that is away can be resumed."""

    def __init__(self, store: RedisStore, *, keep_s: float) -> None:
        self.store = store
        self._keep_ms = round(keep_s * 1_000)
        self._moved: Callable[[bytes, bool], None] = lambda _session, _elsewhere: None
        self._revoked: Callable[[Revocation], None] = lambda _: None
        # Sessions of this gateway → fence.
        self._own: dict[bytes, int] = {}
        # By the meeting's key.
        self._meetings: dict[str, MeetingPresence] = {}
        # How many of its sessions were moved, as far as this gateway has taken notice.
        self._moved_count = 0
        # Version of the newest revocation that is known here.
        self._revoked_version = 0
        self._missed = Missed("what the session store holds")
        self._sweeps = 0

    async def open(self, moved: Callable[[bytes, bool], None], revoked: Callable[[Revocation], None]) -> None:
        self._moved, self._revoked = moved, revoked
        pushes, prefix = self.store.pushes, self.store.prefix
        note_moved = partial(self._missed.note, "moved", self._check_own)
        note_revoked = partial(self._missed.note, "revoked", self._read_revocations)
        await pushes.subscribe(f"{prefix}gateway:{self.store.id}".encode(), self._pushed_moved, note_moved)
        await pushes.subscribe(f"{prefix}revocations".encode(), lambda _: note_revoked(), note_revoked)
        await self._read_revocations()
        self._missed.start()
        await self.sweep()

    # ------------------------------------------------------------ sessions

    def can_hold(self, session: bytes, meeting: str) -> bool:
        return True

    async def begin(
        self, session: bytes, record: SessionRecord, bounds: Bounds = UNBOUNDED, used: UsedToken | None = None
    ) -> int:
        tenant = tenant_of(record.meeting)
        sessions, meetings = _most(bounds.most_sessions), _most(bounds.most_meetings)
        most = (sessions, meetings, _most(bounds.most_languages), bounds.shown)
        reply = await self._run(
            *("begin", session, _encoder.encode(record), record.meeting, tenant, record.participant),
            *(*_shown(record), *most, *_token(used), _most(bounds.joins), int(record.private)),
            int(record.grant.is_host),
        )
        return self._owned(session, reply, bounds)

    async def find(self, session: bytes) -> Held | None:
        reply = await self._run("find", session)
        if not reply:
            return None
        try:
            return Held(_records.decode(reply[0]), int(reply[1]))
        except msgspec.MsgspecError:
            _log.error("a session cannot be read; did a newer gateway write it?")
            return None

    async def take(
        self,
        session: bytes,
        fence: int,
        record: SessionRecord,
        bounds: Bounds = UNBOUNDED,
        used: UsedToken | None = None,
    ) -> int | None:
        reply = await self._run(
            *("take", session, fence, secrets.token_bytes(8), _encoder.encode(record), *_shown(record)),
            *(_most(bounds.most_languages), *_token(used), _most(bounds.joins)),
        )
        return self._owned(session, reply, bounds) if reply else None

    async def save(
        self,
        session: bytes,
        fence: int,
        record: SessionRecord,
        *,
        away_s: float | None = None,
        bounds: Bounds = UNBOUNDED,
    ) -> bool:
        away_ms = -1 if away_s is None else round(away_s * 1_000)
        reply = await self._run(
            *("save", session, fence, _encoder.encode(record), *_shown(record), away_ms),
            _most(bounds.most_languages),
        )
        if reply and reply[0] != b"saved":
            _refuse(reply, bounds)
        return bool(reply)

    async def release(self, session: bytes, fence: int) -> None:
        self._forget(session, fence)
        await self._run("release", session, fence)

    async def end(self, session: bytes, fence: int, unused: UsedToken | None = None) -> None:
        self._forget(session, fence)
        await self._run("end", session, fence, _DOUBT_MS, *_token(unused)[:2])

    def _owned(self, session: bytes, reply: list[bytes], bounds: Bounds) -> int:
        if reply[0] != b"fence":
            _refuse(reply, bounds)
        fence = self._own[session] = int(reply[1])
        return fence

    def _forget(self, session: bytes, fence: int) -> None:
        if self._own.get(session) == fence:
            del self._own[session]

    async def lock(self, meeting: str, locked: bool) -> None:
        await self._run("lock", meeting, int(locked))

    async def mute(self, meeting: str, who: str, muted: bool) -> None:
        if not await self._run("mute", meeting, who, int(muted), MOST_MUTED):
            check_muted(MOST_MUTED)

    async def entitle(self, meeting: str, title: Title) -> None:
        await self._run("entitle", meeting, title_text(title))

    # ------------------------------------------------------------ tokens

    async def use(self, used: UsedToken, session: bytes = b"") -> bool:
        reply: int = await self._run("use", *_token(used), session)
        if not reply:
            raise Unauthenticated(why="used")
        return reply > 1

    async def revoke(self, revocation: Revocation) -> None:
        meant, brief = _encoder.encode(what_is_revoked(revocation)), int(revocation.is_brief)
        await self._run("revoke", meant, _encoder.encode(revocation), brief)

    async def count_revoked_by(self, revocation: Revocation, but: Collection[bytes]) -> int:
        found = await self._of_tenant(revocation.tenant)
        return sum(ends(revocation, each.record) for session, each in found.items() if session not in but)

    async def sessions(self, meeting: str | None = None) -> tuple[StoredSession, ...]:
        if meeting is not None:
            found = await self._of_tenant(tenant_of(meeting))
            return tuple([each for each in found.values() if each.record.meeting == meeting])
        fields = await self.store.commands.run("HKEYS", f"{self.store.prefix}tenants")
        tenants = sorted(field[2:].decode() for field in fields if field.startswith(b"s:"))
        return tuple([each for tenant in tenants for each in (await self._of_tenant(tenant)).values()])

    async def _of_tenant(self, tenant: str) -> dict[bytes, StoredSession]:
        """Its sessions, wherever they are. Raises `LogUnavailable`."""
        sessions: dict[bytes, StoredSession] = {}
        cursor = None
        while cursor != b"0":
            cursor, found = await self._run("of_tenant", tenant, cursor or b"0", _ASKED)
            parts = (found[part::4] for part in range(4))
            for session, record, away, fence in zip(*parts, strict=True):
                # One that cannot be read, a newer gateway has written and counts.
                with contextlib.suppress(msgspec.MsgspecError):
                    sessions[session] = StoredSession(
                        _records.decode(record), away=away == b"1", key=session, fence=int(fence)
                    )
        return sessions

    async def _read_revocations(self) -> None:
        version, values = await self._run("revocations", self._revoked_version)
        own = self.store.id.encode()
        for value in values:
            gateway, _, revocation = value.partition(b" ")
            if gateway != own:
                try:
                    self._revoked(_revocations.decode(revocation))
                except msgspec.MsgspecError:
                    _log.error("a revocation cannot be read; did a newer gateway write it?")
        self._revoked_version = max(self._revoked_version, int(version))

    # ------------------------------------------------------------ who is present

    @asynccontextmanager
    async def subscribe(
        self, meeting: str, deliver: _Deliver, hosted: _DeliverHosted = lambda _: None
    ) -> AsyncIterator[None]:
        if (of_meeting := self._meetings.get(meeting)) is None:
            of_meeting = self._meetings[meeting] = MeetingPresence(meeting)
        of_meeting.users += 1
        subscription, channel = object(), self.store.channel(meeting, "presence")
        try:
            await self.store.pushes.subscribe(
                channel, partial(self._pushed_presence, of_meeting), partial(self._note_presence, of_meeting)
            )
            if of_meeting.version is None:
                await self._read_presence(of_meeting)
            of_meeting.add(subscription, deliver, hosted)
            yield
        finally:
            of_meeting.users -= 1
            of_meeting.remove(subscription)
            if not of_meeting.users:
                del self._meetings[meeting]
                await self.store.pushes.unsubscribe(channel)

    def _pushed_presence(self, of_meeting: MeetingPresence, data: bytes) -> None:
        if of_meeting.push(data):
            self._note_presence(of_meeting)

    def _note_presence(self, of_meeting: MeetingPresence) -> None:
        if of_meeting.version is not None:
            name = f"meeting {of_meeting.meeting}"
            self._missed.note(name, partial(self._read_presence, of_meeting))

    async def _read_presence(self, of_meeting: MeetingPresence) -> None:
        pushed = of_meeting.pushed
        version, fields, hosted = await self._run("present", of_meeting.meeting)
        of_meeting.read(int(version), fields, pushed, hosted)

    async def counts(self, tenant: str) -> TenantCounts:
        fields = (f"s:{tenant}", f"m:{tenant}")
        reply = await self.store.commands.run("HMGET", f"{self.store.prefix}tenants", *fields)
        return TenantCounts(*(int(count or 0) for count in reply))

    # ------------------------------------------------------------ being there

    async def sweep(self) -> None:
        self._sweeps += 1
        with tried("the session store could not be swept"):
            remembered_ms = REVOCATION_S * 1_000
            moved, revoked = await self._run(
                "sweep", self._keep_ms, _SWEPT, remembered_ms, patience_s=_SHORT_PATIENCE_S
            )
            if int(moved) != self._moved_count:
                self._missed.note("moved", self._check_own)
            if int(revoked) > self._revoked_version:
                self._missed.note("revoked", self._read_revocations)
            if self._sweeps % _CHECK_SWEEPS == 0:
                await self._check_versions()

    async def close(self) -> None:
        await self._missed.close()
        with tried("this gateway could not leave the session store"):
            await self._run("close", patience_s=_SHORT_PATIENCE_S)

    async def _check_versions(self) -> None:
        for meetings in _batches(tuple(self._meetings.values())):
            names = [each.meeting for each in meetings]
            versions = await self._run("versions", *names, patience_s=_SHORT_PATIENCE_S)
            for of_meeting, version in zip(meetings, versions, strict=True):
                if of_meeting.version != int(version):
                    self._note_presence(of_meeting)

    def _pushed_moved(self, data: bytes) -> None:
        count, fence, session = data.split(b" ", 2)
        if int(count) == self._moved_count + 1:
            self._moved_count += 1
        else:
            self._missed.note("moved", self._check_own)
        # A later resume may have brought it back.
        known = self._own.get(session)
        if known is not None and (not int(fence) or known < int(fence)):
            del self._own[session]
            self._moved(session, bool(int(fence)))

    async def _check_own(self) -> None:
        """Which sessions of this gateway others have taken or ended."""
        count = await self.store.commands.run("GET", f"{self.store.prefix}gateway:{self.store.id}:moved")
        for sessions in _batches(tuple(self._own.items())):
            reply = await self._run("own", *(part for session in sessions for part in session))
            fences = dict(sessions)
            for session, elsewhere in zip(reply[::2], reply[1::2], strict=True):
                if self._own.get(session) == fences[session]:
                    del self._own[session]
                    self._moved(session, elsewhere == b"1")
        self._moved_count = int(count or 0)

    async def _run(self, script: str, *arguments: Argument, patience_s: float | None = None) -> Any:
        shared = (self.store.prefix, self.store.id, round(LEASE_S * 1_000))
        return await self.store.run_script(f"session_store/{script}", *shared, *arguments, patience_s=patience_s)


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + _ASKED] for start in range(0, len(items), _ASKED))


def _most(bound: int | None) -> int:
    return -1 if bound is None else bound


def _shown(record: SessionRecord) -> tuple[str, bytes]:
    """The languages it reads, each once, and how the others see it."""
    return ",".join(dict.fromkeys(record.reads)), encode_present(Present.from_record(record))


def _token(used: UsedToken | None) -> tuple[bytes, str, int]:
    """A token's digest, its user, and until when that is remembered, in ms; an empty digest for none."""
    if used is None:
        return b"", "", 0
    digest = hashlib.blake2b(_encoder.encode((used.tenant, used.token_id)), digest_size=16).digest()
    return digest, used.user, round((used.until_s + _LATE_S) * 1_000)


def _refuse(reply: list[bytes], bounds: Bounds) -> NoReturn:
    """Raises what the script's refusal means."""
    what, counts = reply[0], [int(count) for count in reply[1:]]
    if what == b"languages":
        bounds.check_languages(*counts)
    elif what == b"sessions":
        bounds.check_sessions(*counts)
    elif what == b"meetings":
        bounds.check_meetings(*counts)
    elif what == b"joins":
        bounds.check_joins(counts[0] / 1_000)
    elif what == b"locked":
        raise MeetingLocked("The host has locked this meeting.")
    elif what == b"token":
        raise Unauthenticated(why="used")
    # It was ended before it had begun.
    raise unavailable("The session could not be begun.")

"""Every session of this process, connected or kept, and the meetings they are in.

Knows: how sessions begin, are resumed, kept and end, and how many there may be.
Must not know: sockets, the order of messages (`machine`), how translations are made.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from types import TracebackType
from typing import Self

from msgspec import Struct

from gateway import metrics
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import (
    Forbidden,
    GatewayError,
    InvalidValue,
    LogUnavailable,
    SessionReplaced,
)
from gateway.domain.grants import Grant, Revocation, account_of_tenant, meeting_key, tenant_of
from gateway.domain.log import Accepted, Unfinished
from gateway.domain.ports import EventLog, LiveChannel
from gateway.domain.sessions import Handover, KeptSession
from gateway.meeting.feed import Feed
from gateway.meeting.members import Member
from gateway.meeting.outbox import Outbox
from gateway.meeting.payload import Payload
from gateway.protocol.limits import Limits
from gateway.protocol.messages import ServerMessage
from gateway.sessions.effects import Accept, Join, Update
from gateway.sessions.grants import may_read
from gateway.sessions.joins import Joins
from gateway.sessions.lifetimes import Lifetimes
from gateway.sessions.machine import Session
from gateway.sessions.restored import recalled
from gateway.sessions.rooms import Rooms
from gateway.sessions.seat import Finish, Seat, member_of
from gateway.translation.finals import Finals
from gateway.translation.partials import Partials
from gateway.translation.quotas import Quotas

__all__ = ["Entry", "Registry"]

_log = logging.getLogger(__name__)


class Entry(Struct, frozen=True):
    """A session as it begins or goes on, with a feed that is not live yet: see `Room.stream_to`."""

    seat: Seat
    feed: Feed
    # Whether everything missed will follow; None where nothing was to be resumed.
    recovered: bool | None


class Registry:
    """Owns the sessions and their meetings; leaving the context waits for finals that are being accepted."""

    def __init__(
        self,
        *,
        log: EventLog,
        finals: Finals,
        partials: Partials,
        limits: Limits,
        # Connected and kept together; beyond it a newcomer ends a kept session, see `to_give_way`.
        max_sessions: int,
        # Utterances that a latecomer is shown.
        snapshot: int,
        # Joins of one address at once, and within a minute.
        joins_per_address: int = 1_000,
        # To other gateways; None if there are none.
        channel: LiveChannel | None = None,
        quotas: Quotas | None = None,
        # Whether what somebody presented is still a key of the gateway's.
        stands: Callable[[Grant], bool] = lambda _: True,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._finals = finals
        self._partials = partials
        self._limits = limits
        self._clock = clock or time.monotonic
        self._joins = Joins(
            quotas or Quotas(),
            joins_per_address=joins_per_address,
            max_sessions=max_sessions,
            meeting_languages=limits.meeting_languages,
        )
        self.lifetimes = Lifetimes(clock=self._clock, stands=stands)
        self._tasks = asyncio.TaskGroup()
        self._log = log
        self._rooms = Rooms(log, snapshot, channel, finals.cancel_here)
        # What this gateway has taken over and not begun.
        self._taken: list[Unfinished] = []
        # By the session's secret.
        self._seats: dict[str, Seat] = {}
        # Those of another process, with the seconds for which they can still be resumed once that is possible.
        self._restored: dict[Seat, float] = {}

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.__aexit__(kind, error, trace)

    @property
    def sessions(self) -> int:
        """Connected and kept."""
        return len(self._seats)

    def by_tenant(self) -> dict[str, Counter[str]]:
        """`sessions` and `meetings` that somebody is in, by tenant."""
        return {
            "sessions": Counter(tenant_of(seat.room.id) for seat in self._seats.values()),
            "meetings": Counter(tenant_of(room.id) for room in self._rooms if room.members),
        }

    @property
    def meetings(self) -> int:
        """Meetings with a session or with a translation that runs."""
        return len(self._rooms)

    # ------------------------------------------------------------ beginning and ending

    async def join(self, join: Join, state: Session, outbox: Outbox, finish: Finish, address: str = "") -> Entry:
        """A session begins, or goes on with this connection. address: the account of the client's address.

        Raises `RateLimited`, `InvalidValue`, `LimitExceeded`, `QuotaExceeded`, `TooManySessions`, `Forbidden`,
        `Unauthenticated` or `LogUnavailable`; then nothing has changed.
        """
        resume, grant = join.resume, state.grant
        self.lifetimes.spent.check(grant)
        self._joins.check_rate(address, grant.tenant, self._clock())
        account = account_of_tenant(grant, address)
        if resume is not None and (seat := self._seats.get(resume.session)) is not None:
            room = seat.room
            if (grant.tenant, grant.subject) != (seat.grant.tenant, seat.grant.subject):
                raise Forbidden("This session is somebody else's.", field="resume.session")
            if join.meeting is not None and meeting_key(grant.tenant, join.meeting) != room.id:
                raise InvalidValue("This session belongs to another meeting.", field="resume.session")
            if join.meeting is None and not room.private and not grant.any_meeting:
                raise Forbidden("The token is for private meetings only.", field="resume.session")
            self._joins.check_languages(room, seat.member, join.reads)
            async with room.reading(join.reads):
                page = await room.log.read(room.id, resume.offset, 1)
                newest = await room.latecomers_position()
                if self._seats.get(resume.session) is seat:
                    recovered = page.epoch == resume.epoch and page.first - 1 <= resume.offset <= page.last
                    after = resume.offset if recovered else newest
                    seat.member.account = account
                    return self._go_on(seat, join, state, outbox, finish, after, recovered=recovered)
        return await self._begin(join, state, outbox, finish, account)

    def away(self, seat: Seat, feed: Feed) -> None:
        """The connection that `feed` went to is lost; the session is kept for a while."""
        if seat.member.feed is feed:
            seat.disconnect()
            seat.away_since_s = self._clock()
            self._partials.speaker_away(seat.room, seat.member.participant)
            metrics.SESSIONS.dec()
            _log.info("session %s… is away", seat.member.participant)

    def end(self, seat: Seat) -> None:
        """The session ends for good. Does nothing the second time."""
        if self._seats.pop(seat.secret, None) is None:
            return
        self._restored.pop(seat, None)
        if seat.connected:
            metrics.SESSIONS.dec()
        seat.leave()
        room, participant = seat.room, seat.member.participant
        self._partials.speaker_left(room, participant)
        room.leave(seat.member)
        if room.private and not room.members:
            self._finals.abandon(room)
        _log.info("session %s… ended", participant)

    async def update(self, seat: Seat, update: Update) -> None:
        """Other languages, from the next utterance on.

        Raises `LimitExceeded` or `LogUnavailable`; then nothing has changed.
        """
        self._joins.check_languages(seat.room, seat.member, update.reads)
        connection = seat.finish
        async with seat.room.reading(update.reads):
            if seat.finish is not connection:
                return  # it has ended meanwhile, or goes on with another connection
            seat.room.update(
                seat.member,
                name=seat.member.name,
                speaks=update.speaks,
                reads=update.reads,
                stability=update.stability,
                originals=update.originals,
            )

    def revoke(self, revocation: Revocation) -> int:
        """Tokens are not valid any more; their sessions end at once, connected or kept. Returns how many."""
        return self._end_all(self.lifetimes.revoke(revocation, self._seats.values()))

    def _end_all(self, seats: Collection[Seat]) -> int:
        for seat in seats:
            self.end(seat)
        return len(seats)

    async def accept(self, seat: Seat, accept: Accept) -> bool:
        """Take on a final utterance of a session. Returns whether it was in the log before.

        Raises what `Finals.accept` raises; then nothing was accepted, and the session knows. Whoever awaits this
        may be cancelled; what was begun is carried through.
        """
        accepting = self._tasks.create_task(self._accept(seat, accept))
        accepted = await asyncio.shield(accepting)
        if isinstance(accepted, GatewayError):
            raise accepted
        return accepted.known

    async def _accept(self, seat: Seat, accept: Accept) -> Accepted | GatewayError:
        """The error that it was refused with, if it was: a task that raised would end all the others."""
        try:
            return await self._finals.accept(seat.room, accept.utterance)
        except Exception as error:
            seat.refused(accept)
            if isinstance(error, GatewayError):
                return error
            _log.exception("an utterance could not be accepted")
            return GatewayError("The gateway failed; this is a bug of the gateway.")

    def tell(self, message: ServerMessage) -> None:
        """Something that concerns every session that is connected."""
        payload = Payload(message)
        for seat in self._seats.values():
            if seat.member.feed is not None:
                seat.member.feed.tell(payload)

    async def sweep(self) -> None:
        """End sessions that were away for too long, let go of meetings that nobody is in."""
        await self._resume_unfinished()
        self._joins.sweep(self._clock())
        self._end_all(self.lifetimes.sweep(list(self._seats.values())))
        longest_s = self._clock() - self._limits.keep_s
        for seat in list(self._seats.values()):
            if seat.away_since_s is not None and seat.away_since_s <= longest_s:
                self.end(seat)
        with contextlib.suppress(LogUnavailable):
            for room in self._rooms.without_their_log():
                for seat in [seat for seat in self._seats.values() if seat.room is room]:
                    seat.lose_log()
                self._finals.abandon(room)
                await room.begin_again()
            await self._rooms.sweep(self._finals.busy)
        metrics.MEETINGS.set(len(self._rooms))
        metrics.SESSIONS_AWAY.set(sum(not seat.connected for seat in self._seats.values()))

    async def _resume_unfinished(self) -> None:
        """Go on with what nobody is translating: this gateway's own, and what others have left."""
        self._finals.resume()
        with contextlib.suppress(LogUnavailable):
            self._taken += await self._log.take_over()
            while self._taken:
                work = self._taken[0]
                async with self._rooms.enter(work.meeting, private=False, account=work.account) as room:
                    await self._finals.take_over(room, work)
                self._taken.pop(0)

    # ------------------------------------------------------------ restarts

    def engine_ready(self) -> None:
        """Another process's sessions can be resumed, and what is unfinished is gone on with."""
        for seat, left_s in self._restored.items():
            if not seat.connected:
                seat.away_since_s = self._clock() - self._limits.keep_s + left_s
        self._restored.clear()
        self._finals.resume()

    def kept(self) -> tuple[KeptSession, ...]:
        """What another process needs to let every session go on."""
        return tuple(seat.kept(self._left_s(seat)) for seat in self._seats.values())

    def _left_s(self, seat: Seat) -> float:
        if seat in self._restored:
            return self._restored[seat]
        away_s = 0.0 if seat.away_since_s is None else self._clock() - seat.away_since_s
        return max(0.0, self._limits.keep_s - away_s)

    async def restore(self, earlier: Handover) -> None:
        """Keep the sessions of an earlier process, whose meetings are in the log already.

        Raises `LogUnavailable`.
        """
        self.lifetimes.spent.restore(earlier.revocations, earlier.used_tokens)
        await self._resume_unfinished()  # first, so that sessions see what is on its way
        for kept in earlier.sessions:
            async with self._rooms.enter(kept.meeting, private=kept.private, account=kept.account) as room:
                room.private = kept.private
                seat = Seat(
                    secret=kept.session,
                    room=room,
                    state=await recalled(room, kept, self._limits),
                    member=member_of(kept),
                )
                self._seats[seat.secret] = seat
                self._restored[seat] = min(kept.left_s, self._limits.keep_s)
                room.join(seat.member, self._limits.participants_shown)

    # ------------------------------------------------------------ details

    async def _begin(self, join: Join, state: Session, outbox: Outbox, finish: Finish, account: str) -> Entry:
        meeting = meeting_key(state.grant.tenant, join.meeting or secrets.token_hex(8))
        async with contextlib.AsyncExitStack() as entering:
            room = await entering.enter_async_context(
                self._rooms.enter(meeting, private=join.meeting is None, account=account)
            )
            self._joins.check_languages(room, None, join.reads)
            await entering.enter_async_context(room.reading(join.reads))
            after = await room.latecomers_position()
            self._joins.check_begin(self._seats.values(), self._rooms, meeting)
            giving_way = self._joins.giving_way(self._seats.values(), account)
            member = Member(
                participant=secrets.token_hex(4),
                name=join.name,
                speaks=join.speaks,
                reads=join.reads,
                stability=join.stability,
                originals=join.originals,
                since=after + 1,
                account=account,
            )
            feed = Feed(outbox, after, participant=member.participant, wants=member.wants)
            seat = Seat(secret=secrets.token_hex(16), room=room, member=member, state=state)
            self.lifetimes.begin(seat, state.grant)
            if giving_way is not None:
                self.end(giving_way)
            seat.connect(feed, state, finish)
            self._seats[seat.secret] = seat
            room.join(member, self._limits.participants_shown)
        metrics.SESSIONS.inc()
        metrics.SESSIONS_STARTED.inc()
        _log.info("session %s… started", member.participant)
        self._finals.catch_up(room, member.reads)
        return Entry(seat, feed, None if join.resume is None else False)

    def _go_on(
        self,
        seat: Seat,
        join: Join,
        state: Session,
        outbox: Outbox,
        finish: Finish,
        after: int,
        *,
        recovered: bool,
    ) -> Entry:
        room, member = seat.room, seat.member
        self.lifetimes.begin(seat, state.grant)
        if seat.finish is not None:
            seat.finish(CloseCode.REPLACED, SessionReplaced("Another connection goes on with this session."))
        else:
            metrics.SESSIONS.inc()
        state.inherit(seat.state)
        # What is still on its way over the earlier connection is not this session's any more.
        seat.state.disconnected()
        self._restored.pop(seat, None)
        feed = Feed(outbox, after, participant=member.participant, wants=member.wants)
        seat.connect(feed, state, finish)
        room.update(
            member,
            name=join.name,
            speaks=join.speaks,
            reads=join.reads,
            stability=join.stability,
            originals=join.originals,
        )
        room.cut_off(member, partial(may_read, state.grant))
        if not recovered:
            room.start_over(member, after + 1)
        metrics.SESSIONS_RESUMED.labels("recovered" if recovered else "lost").inc()
        _log.info("session %s… goes on", member.participant)
        self._finals.catch_up(room, member.reads)
        return Entry(seat, feed, recovered)

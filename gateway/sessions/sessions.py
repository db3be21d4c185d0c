"""Every session of this gateway, connected or kept, and the meetings they are in.

Knows: how sessions begin, are resumed from whichever gateway had them, kept and end.
Must not know: sockets, the order of messages (`machine`), how translations are made, where the session store is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from gateway import metrics
from gateway.domain.errors import (
    GatewayError,
    LogUnavailable,
    SessionReplaced,
)
from gateway.domain.grants import Grant, Revocation, account_of_tenant, tenant_of
from gateway.domain.log import Accepted, Unfinished, Utterance
from gateway.domain.ports import EventLog, SessionStore
from gateway.domain.session_store import Bounds, Fence, TenantCounts
from gateway.domain.sessions import Handover, KeptSession
from gateway.meeting import traces
from gateway.meeting.outbox import Outbox, Payload
from gateway.meeting.room import Rooms
from gateway.protocol.limits import Limits
from gateway.protocol.messages import ServerMessage
from gateway.sessions.entrance import Client, Entrance, Entry, JoinLimits
from gateway.sessions.lifetimes import Lifetimes
from gateway.sessions.machine import Accept, Effect, Join, Session, Update, Withdraw
from gateway.sessions.seat import Finish, Seat, restored
from gateway.sessions.seats import Seats
from gateway.translation.finals import Finals
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.speech import Speech

_log = logging.getLogger(__name__)


class Sessions:
    """Owns the sessions and their meetings; leaving the context waits for finals that are being accepted."""

    def __init__(
        self,
        *,
        log: EventLog,
        session_store: SessionStore,
        rooms: Rooms,
        finals: Finals,
        speech: Speech,
        limits: Limits,
        # Connected and kept together; beyond it a newcomer ends a kept session, see `longest_away`.
        max_sessions: int,
        # Joins of one address at once, and within a minute.
        joins_per_address: int = 1_000,
        quotas: Quotas | None = None,
        # Whether the key that a grant comes from is still valid.
        stands: Callable[[Grant], bool] = lambda _: True,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._finals = finals
        self._speech = speech
        self._limits = limits
        self._clock = clock or time.monotonic
        self._join_limits = JoinLimits(
            quotas or Quotas(), limits, joins_per_address=joins_per_address, max_sessions=max_sessions
        )
        self.lifetimes = Lifetimes(clock=self._clock, stands=stands)
        self._tasks = asyncio.TaskGroup()
        self._log = log
        self._session_store = session_store
        self.rooms = rooms
        # What this gateway has taken over and not begun.
        self._taken: list[Unfinished] = []
        self.seats = Seats(session_store, self.lifetimes, finals, speech, self._tasks, self._clock)
        self._entrance = Entrance(
            session_store=session_store,
            seats=self.seats,
            rooms=self.rooms,
            join_limits=self._join_limits,
            lifetimes=self.lifetimes,
            finals=finals,
            limits=limits,
        )

    async def __aenter__(self) -> Self:
        """Raises `LogUnavailable`."""
        await self._session_store.open(self.seats.moved, self._revoked)
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._tasks.__aexit__(kind, error, trace)
        finally:
            self.seats.writes.close()
            await self.rooms.close()
            await self._session_store.close()

    def by_tenant(self) -> dict[str, Counter[str]]:
        """`sessions` and `meetings` with members, by tenant."""
        return {
            "sessions": Counter(tenant_of(seat.room.id) for seat in self.seats.all),
            "meetings": Counter(tenant_of(room.id) for room in self.rooms if room.members),
        }

    async def counts(self, tenant: str) -> TenantCounts:
        """What a tenant has over all gateways. Raises `LogUnavailable`."""
        return await self._session_store.counts(tenant)

    # ------------------------------------------------------------ beginning and ending

    async def join(self, join: Join, state: Session, outbox: Outbox, finish: Finish, address: str = "") -> Entry:
        """A session begins, or goes on with this connection. address: the account of the client's address.

        Raises `RateLimited`, `InvalidValue`, `LimitExceeded`, `QuotaExceeded`, `TooManySessions`, `Forbidden`,
        `Unauthenticated` or `LogUnavailable`; then nothing has changed.
        """
        grant = state.grant
        self.lifetimes.revocations.check(grant)
        self._join_limits.check_rate(address, grant.tenant, self._clock())
        client = Client(join, state, outbox, finish, account_of_tenant(grant, address))
        with traces.joining(resumes=join.resume is not None) as joined:
            entry = await self._entrance.enter(client)
            joined.meeting, joined.session = entry.seat.room.id, entry.seat.key.hex()[:12]
            joined.recovered = entry.recovered
            return entry

    async def update(self, seat: Seat, update: Update) -> None:
        """Other languages, from the next utterance on.

        Raises `LimitExceeded` or `LogUnavailable`; then nothing has changed.
        """
        self._join_limits.check_languages(seat.room, seat.member, update.reads)
        connection = seat.finish
        async with seat.room.reading(update.reads):
            if seat.finish is not connection:
                return  # it has ended meanwhile, or goes on with another connection
            record = replace(self.lifetimes.record(seat), speaks=update.speaks, reads=update.reads)
            try:
                bounds = self._join_limits.bounds(seat.room.id)
                await self._session_store.save(seat.key, seat.fence, record, bounds=bounds)
                if seat.finish is connection:
                    seat.room.update(seat.member, seat.member.name, update)
            finally:
                self.seats.save(seat)

    async def refresh(self, seat: Seat, grant: Grant) -> float | None:
        """A new token for a session: the seconds that it may last from now on, None for no end.

        Raises `Forbidden`, `TokenExpired`, `Unauthenticated` or `LogUnavailable`; then nothing has changed.
        """
        if (used := self.lifetimes.check_refresh(seat, grant)) is not None:
            await self._session_store.use(used)
        left_s = self.lifetimes.refresh(seat, grant)
        self.seats.save(seat)
        return left_s

    async def use(self, grant: Grant, user: str) -> None:
        """Use up a token or an invite that is for one user. Raises `Unauthenticated` or `LogUnavailable`."""
        if (used := self.lifetimes.revocations.used(grant, user)) is not None:
            await self._session_store.use(used)

    async def revoke(self, revocation: Revocation) -> int:
        """Tokens are not valid any more; their sessions end, connected or kept, here at once.

        Returns how many end over all gateways, as far as they can be counted. Raises `RateLimited`, or
        `LogUnavailable` if other gateways may not know of it; then it is to be repeated.
        """
        ended = self.lifetimes.revoke(revocation, self.seats.all)
        self._end_all(ended)
        # Others are told while it is counted: with many sessions, that takes a while.
        elsewhere, told = await asyncio.gather(
            self._session_store.count_revoked_by(revocation, {seat.key for seat in ended}),
            self._session_store.revoke(revocation),
            return_exceptions=True,
        )
        if isinstance(told, BaseException):
            raise told
        return len(ended) + (elsewhere if isinstance(elsewhere, int) else 0)

    def _revoked(self, revocation: Revocation) -> None:
        """Another gateway has revoked this."""
        self._end_all(self.lifetimes.revoke(revocation, self.seats.all, known=True))

    def _end_all(self, seats: Collection[Seat]) -> None:
        for seat in seats:
            self.seats.end(seat)

    async def hear(self, seat: Seat, utterance: Utterance) -> None:
        """A new revision of what is being said. What was begun is carried through if the caller is cancelled."""
        if self._speech.hear(seat.room, utterance):
            fence = Fence(seat.key, seat.fence)
            await asyncio.shield(self._tasks.create_task(self._settle(seat, utterance, fence)))

    async def _settle(self, seat: Seat, utterance: Utterance, fence: Fence) -> None:
        try:
            await self._speech.settle(seat.room, utterance, fence)
        except Exception:  # a task that raised would end all the others
            _log.exception("what is settled of an utterance could not be accepted")
        if self._speech.is_begun(seat.room, utterance.key):
            self._withdraw_all(seat, seat.state.accepted_in_part(utterance.id))

    def _refused(self, seat: Seat, accept: Accept) -> None:
        in_part = not accept.again and self._speech.is_begun(seat.room, accept.utterance.key)
        self._withdraw_all(seat, seat.refused(accept, in_part=in_part))

    def _withdraw_all(self, seat: Seat, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Withdraw):
                self.withdraw(seat, effect.id)

    def withdraw(self, seat: Seat, utterance_id: str, wait_s: float = 0.0) -> None:
        """A session gives up an utterance that is being said. wait_s: as in `Withdraw`."""
        self._speech.withdraw(seat.room, (seat.member.participant, utterance_id), wait_s)

    def cancel(self, seat: Seat, utterance_id: str) -> None:
        """A session wants no translation of an accepted utterance any more."""
        self._speech.cancel(seat.room, (seat.member.participant, utterance_id))

    async def accept(self, seat: Seat, accept: Accept) -> bool:
        """Take on a final utterance of a session. Returns whether all of it was in the log before.

        Raises what `Finals.accept` raises; then nothing was accepted, and the session knows. The caller may
        be cancelled; what was begun is carried through.
        """
        accepting = self._tasks.create_task(self._traced(seat, accept))
        accepted = await asyncio.shield(accepting)
        if isinstance(accepted, GatewayError):
            raise accepted
        return accepted is None or accepted.known

    async def _traced(self, seat: Seat, accept: Accept) -> Accepted | GatewayError | None:
        if not traces.concern(accept.utterance):
            return await self._accept(seat, accept)
        accepting = traces.Accepting(seat.room.id, accept.utterance, seat.key.hex()[:12], again=accept.again)
        with accepting.working():
            accepted = await self._accept(seat, Accept(accepting.utterance, accept.again))
        accepting.ended(accepted)
        return accepted

    async def _accept(self, seat: Seat, accept: Accept) -> Accepted | GatewayError | None:
        """The error of a refusal, as a task that raised would end all others; None: all was accepted before."""
        fence = Fence(seat.key, seat.fence)
        try:
            return await self._speech.accept(seat.room, accept.utterance, fence, again=accept.again)
        except SessionReplaced as error:
            if seat.fence != fence.number:
                # A later connection here has it.
                return await self._accept(seat, accept)
            self._refused(seat, accept)
            # It may have come back here since, in another seat.
            if self.seats.get(seat.key) is seat:
                self.seats.moved(seat.key, elsewhere=True)
            return error
        except Exception as error:
            self._refused(seat, accept)
            if isinstance(error, GatewayError):
                return error
            _log.exception("an utterance could not be accepted")
            return GatewayError("The gateway failed; this is a bug of the gateway.")

    def tell_everybody(self, message: ServerMessage) -> None:
        """Something that concerns every session that is connected."""
        payload = Payload(message)
        for seat in self.seats.all:
            if seat.member.feed is not None:
                seat.member.feed.tell(payload)

    async def sweep(self) -> None:
        """End sessions that were away for too long, let go of meetings without members."""
        self.seats.writes.retry()
        self._join_limits.sweep(self._clock())
        self._end_all(self.lifetimes.sweep(list(self.seats.all)))
        longest_s = self._clock() - self._limits.keep_s
        for seat in list(self.seats.all):
            if seat.away_since_s is not None and seat.away_since_s <= longest_s:
                self.seats.end(seat)
        await self._resume_unfinished()
        with contextlib.suppress(LogUnavailable):
            for room in self.rooms.without_their_log():
                for seat in [seat for seat in self.seats.all if seat.room is room]:
                    seat.lose_log()
                self._finals.abandon(room)
                await room.begin_again()
            await self.rooms.sweep(self._finals.busy)
        metrics.MEETINGS.set(len(self.rooms))
        metrics.SESSIONS_AWAY.set(sum(not seat.connected for seat in self.seats.all))

    async def _resume_unfinished(self) -> None:
        """Resume what is not being translated: this gateway's own work, and what others have left."""
        self._finals.resume()
        with contextlib.suppress(LogUnavailable):
            self._taken += await self._log.take_over()
        with contextlib.suppress(LogUnavailable):
            while self._taken:
                # What fails comes last the next time: with several stores, those of others may be there.
                self._taken.append(self._taken.pop(0))
                work = self._taken[-1]
                async with self.rooms.enter(work.meeting, private=False, account=work.account) as room:
                    traces.taken_over(work)
                    await self._finals.take_over(room, work)
                self._taken.pop()

    # ------------------------------------------------------------ restarts

    def engine_ready(self) -> None:
        """Another process's sessions can be resumed, and unfinished work resumes."""
        for seat in self.seats.all:
            if seat.restored_s is not None:
                seat.away_since_s = self._clock() - self._limits.keep_s + seat.restored_s
                seat.restored_s = None
        self._finals.resume()

    def kept_sessions(self) -> tuple[KeptSession, ...]:
        """What another process needs to let every session go on."""
        until = self.lifetimes.until_s
        return tuple(seat.kept(self._left_s(seat), until(seat)) for seat in self.seats.all)

    def _left_s(self, seat: Seat) -> float:
        if seat.restored_s is not None:
            return seat.restored_s
        away_s = 0.0 if seat.away_since_s is None else self._clock() - seat.away_since_s
        return max(0.0, self._limits.keep_s - away_s)

    async def restore(self, earlier: Handover) -> None:
        """Keep the sessions of an earlier process, whose meetings are in the log. Raises `LogUnavailable`."""
        for revocation in earlier.revocations:
            self.lifetimes.revocations.revoke(revocation, known=True)
            await self._session_store.revoke(revocation)
        for used in earlier.used_tokens:
            await self._session_store.use(used)
        await self._resume_unfinished()  # first, so that sessions see what is on its way
        for kept in earlier.sessions:
            async with self.rooms.enter(
                kept.meeting, private=kept.private, account=kept.account, record=kept.recorded
            ) as room:
                room.private = kept.private
                seat = restored(room, kept, kept.session, self._limits)
                self.lifetimes.recall(seat, kept)
                shown = Bounds(shown=self._limits.participants_shown)
                seat.fence = await self._session_store.begin(seat.key, seat.record(kept.until_s), shown)
                self.seats.add(seat)
                # Its time counts once it can be resumed.
                seat.away_since_s, seat.restored_s = None, min(kept.left_s, self._limits.keep_s)

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
from functools import partial
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from gateway import metrics
from gateway.domain.errors import GatewayError, LogUnavailable, SessionReplaced
from gateway.domain.grants import Grant, Revocation, account_of_tenant, tenant_of
from gateway.domain.log import Accepted, Unfinished, Utterance
from gateway.domain.ports import EventLog, SessionStore
from gateway.domain.session_store import Bounds, Fence, TenantCounts
from gateway.domain.sessions import Handover, KeptSession
from gateway.meeting import traces
from gateway.meeting.live_view import MOST_OPEN, MOST_SHOWN
from gateway.meeting.outbox import Outbox, Payload
from gateway.meeting.room import Rooms
from gateway.protocol.limits import Limits
from gateway.protocol.messages import ServerMessage, UtteranceCancelled
from gateway.sessions.entrance import Client, Entrance, Entry, JoinLimits
from gateway.sessions.hosting import Hosting
from gateway.sessions.lifetimes import Lifetimes
from gateway.sessions.local_session import Finish, LocalSession, restored
from gateway.sessions.local_sessions import LocalSessions
from gateway.sessions.machine import Accept, Effect, Join, SessionState, Show, Update, Withdraw
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
        self.local = LocalSessions(
            session_store, self.lifetimes, finals, speech, self._tasks, self._clock, self._muted
        )
        self.hosting = Hosting(
            session_store, log, self.local, self.lifetimes.revocations.check_room, self._revoked, self._tasks
        )
        self._entrance = Entrance(
            session_store=session_store,
            local=self.local,
            rooms=self.rooms,
            join_limits=self._join_limits,
            lifetimes=self.lifetimes,
            finals=finals,
            limits=limits,
        )

    async def __aenter__(self) -> Self:
        """Raises `LogUnavailable`."""
        await self._session_store.open(self.local.moved, self._revoked)
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._tasks.__aexit__(kind, error, trace)
        finally:
            self.local.writes.close()
            await self.rooms.close()
            await self._session_store.close()

    def by_tenant(self) -> dict[str, Counter[str]]:
        """`sessions` and `meetings` with members, by tenant."""
        return {
            "sessions": Counter(tenant_of(session.room.id) for session in self.local.all),
            "meetings": Counter(tenant_of(room.id) for room in self.rooms if room.members),
        }

    async def counts(self, tenant: str) -> TenantCounts:
        """What a tenant has over all gateways. Raises `LogUnavailable`."""
        return await self._session_store.counts(tenant)

    # ------------------------------------------------------------ beginning and ending

    async def join(
        self, join: Join, state: SessionState, outbox: Outbox, finish: Finish, address: str = ""
    ) -> Entry:
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
            joined.meeting, joined.session = entry.session.room.id, entry.session.key.hex()[:12]
            joined.recovered = entry.recovered
        if not entry.recovered:  # a session that comes back says again what the meeting was called at first
            await self.hosting.begin_with(entry.session, join.title)
        return entry

    async def update(self, session: LocalSession, update: Update) -> None:
        """Other languages, from the next utterance on.

        Raises `LimitExceeded` or `LogUnavailable`; then nothing has changed.
        """
        self._join_limits.check_languages(session.room, session.member, update.reads)
        connection = session.finish
        async with session.room.reading(update.reads):
            if session.finish is not connection:
                return  # it has ended meanwhile, or goes on with another connection
            record = replace(self.lifetimes.record(session), speaks=update.speaks, reads=update.reads)
            try:
                bounds = self._join_limits.bounds(session.room.id)
                await self._session_store.save(session.key, session.fence, record, bounds=bounds)
                if session.finish is connection:
                    session.room.update(session.member, session.member.name, update)
            finally:
                self.local.save(session)

    async def refresh(self, session: LocalSession, grant: Grant) -> float | None:
        """A new token for a session: the seconds that it may last from now on, None for no end.

        Raises `Forbidden`, `TokenExpired`, `Unauthenticated` or `LogUnavailable`; then nothing has changed.
        """
        if (used := self.lifetimes.check_refresh(session, grant)) is not None:
            await self._session_store.use(used)
        left_s = self.lifetimes.refresh(session, grant)
        self.local.save(session)
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
        ended = self.lifetimes.revoke(revocation, self.local.all)
        self._end_all(ended)
        # Others are told while it is counted: with many sessions, that takes a while.
        elsewhere, told = await asyncio.gather(
            self._session_store.count_revoked_by(revocation, {session.key for session in ended}),
            self._session_store.revoke(revocation),
            return_exceptions=True,
        )
        if isinstance(told, BaseException):
            raise told
        return len(ended) + (elsewhere if isinstance(elsewhere, int) else 0)

    def _revoked(self, revocation: Revocation) -> None:
        """This is revoked; other gateways know it."""
        self._end_all(self.lifetimes.revoke(revocation, self.local.all, known=True))

    def _end_all(self, local: Collection[LocalSession]) -> None:
        for session in local:
            self.local.end(session)

    async def hear(self, session: LocalSession, show: Show) -> None:
        """A new revision of what is being said. What was begun is carried through if the caller is cancelled.

        Where the meeting costs much, the newest is heard when it is the meeting's turn, and others never.
        """
        if show.last:
            begins = self._speech.hear(session.room, show.utterance)
            begun = self._tasks.create_task(self._settle(session, show.utterance)) if begins else None
        else:
            if (given_up := session.put_late(show)) is not None:
                session.room.lose_turn(session.member.participant, ("heard", given_up))
            late = session.late.get(show.utterance.id)
            begun = self._take_turn(session, show) if late is not None and not late.settling else None
        if begun is not None:
            await asyncio.shield(begun)

    def _take_turn(self, session: LocalSession, show: Show) -> asyncio.Task[None] | None:
        said, hear = show.utterance, partial(self._hear_in_turn, session, show.utterance)
        key, chars = ("heard", said.id), len(said.text)
        return session.room.take_turn(said.participant, key, hear, chars=chars, most=MOST_OPEN)

    def _hear_in_turn(self, session: LocalSession, utterance: Utterance) -> asyncio.Task[None] | None:
        late = session.late[utterance.id]
        late.show, late.unseen = None, False
        is_here = self.local.get(session.key) is session and session.connected
        late.settling = is_here and self._speech.hear(session.room, utterance)
        if late.settling:
            return self._tasks.create_task(self._settle_in_turn(session, utterance))
        self._heard(session, utterance.id)
        return None

    async def _settle_in_turn(self, session: LocalSession, utterance: Utterance) -> None:
        try:
            await self._settle(session, utterance)
        finally:
            self._heard(session, utterance.id)

    def _heard(self, session: LocalSession, utterance_id: str) -> None:
        """A revision was heard. Do what came meanwhile."""
        late = session.late[utterance_id]
        late.settling = False
        if late.show is not None:
            self._take_turn(session, late.show)
            return
        del session.late[utterance_id]
        if late.wait_s:
            self._speech.withdraw(session.room, (session.member.participant, utterance_id), late.wait_s)

    def _unheard(self, session: LocalSession, utterance_id: str) -> bool:
        """Nothing that waits of an utterance is heard any more. Returns whether nothing of it was shown."""
        if (late := session.late.get(utterance_id)) is None:
            return False
        unseen = late.unseen
        late.show, late.unseen, late.wait_s = None, False, 0.0
        if not late.settling:
            session.room.lose_turn(session.member.participant, ("heard", utterance_id))
            del session.late[utterance_id]
        return unseen

    async def _settle(self, session: LocalSession, utterance: Utterance) -> None:
        fence = Fence(session.key, session.fence)
        try:
            await self._speech.settle(session.room, utterance, fence)
        except Exception:  # a task that raised would end all the others
            _log.exception("what is settled of an utterance could not be accepted")
        if self._speech.is_begun(session.room, utterance.key):
            self._withdraw_all(session, session.state.accepted_in_part(utterance.id))

    def _refused(self, session: LocalSession, accept: Accept) -> None:
        in_part = not accept.again and self._speech.is_begun(session.room, accept.utterance.key)
        self._withdraw_all(session, session.refused(accept, in_part=in_part))

    def _withdraw_all(self, session: LocalSession, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Withdraw):
                self.withdraw(session, effect.id)

    def withdraw(self, session: LocalSession, utterance_id: str, wait_s: float = 0.0) -> None:
        """A session gives up an utterance that is being said. wait_s: as in `Withdraw`."""
        room, key = session.room, (session.member.participant, utterance_id)
        if wait_s and (late := session.late.get(utterance_id)) is not None:
            late.wait_s = wait_s  # from when it was shown
        elif wait_s:
            self._speech.withdraw(room, key, wait_s)
        elif not self._unheard(session, utterance_id):
            withdraw = partial(self._speech.withdraw, room, key)
            room.take_turn(key[0], ("withdrawn", utterance_id), withdraw, most=MOST_SHOWN)
        elif session.member.feed is not None:
            session.member.feed.send_now(Payload(UtteranceCancelled(*key)))

    def _muted(self, session: LocalSession) -> None:
        """A host has muted a session: what it is saying goes from every screen."""
        self._withdraw_all(session, session.state.withdraw_all())

    def cancel(self, session: LocalSession, utterance_id: str) -> None:
        """A session wants no translation of an accepted utterance any more."""
        self._speech.cancel(session.room, (session.member.participant, utterance_id))

    async def accept(self, session: LocalSession, accept: Accept) -> bool:
        """Take on a final utterance of a session. Returns whether all of it was in the log before.

        Raises what `Finals.accept` raises; then nothing was accepted, and the session knows. The caller may
        be cancelled; what was begun is carried through.
        """
        id = accept.utterance.id
        self._unheard(session, id)
        if session.room.lose_turn(session.member.participant, ("withdrawn", id)):
            self._speech.withdraw(session.room, (session.member.participant, id))
        accepting = self._tasks.create_task(self._traced(session, accept))
        accepted = await asyncio.shield(accepting)
        if isinstance(accepted, GatewayError):
            raise accepted
        return accepted is None or accepted.known

    async def _traced(self, session: LocalSession, accept: Accept) -> Accepted | GatewayError | None:
        if not traces.concern(accept.utterance):
            return await self._accept(session, accept)
        accepting = traces.Accepting(session.room.id, accept.utterance, session.key.hex()[:12], again=accept.again)
        with accepting.working():
            accepted = await self._accept(session, Accept(accepting.utterance, accept.again))
        accepting.ended(accepted)
        return accepted

    async def _accept(self, session: LocalSession, accept: Accept) -> Accepted | GatewayError | None:
        """The error of a refusal, as a task that raised would end all others; None: all was accepted before."""
        fence = Fence(session.key, session.fence)
        try:
            return await self._speech.accept(session.room, accept.utterance, fence, again=accept.again)
        except SessionReplaced as error:
            if session.fence != fence.number:
                # A later connection here has it.
                return await self._accept(session, accept)
            self._refused(session, accept)
            # It may have come back here since, in another session.
            if self.local.get(session.key) is session:
                self.local.moved(session.key, elsewhere=True)
            return error
        except Exception as error:
            self._refused(session, accept)
            if isinstance(error, GatewayError):
                return error
            _log.exception("an utterance could not be accepted")
            return GatewayError("The gateway failed; this is a bug of the gateway.")

    def tell_everybody(self, message: ServerMessage) -> None:
        """Something that concerns every session that is connected."""
        payload = Payload(message)
        for session in self.local.all:
            if session.member.feed is not None:
                session.member.feed.send_now(payload)

    async def sweep(self) -> None:
        """End sessions that were away for too long, let go of meetings without members."""
        self.local.writes.retry()
        self._join_limits.sweep(self._clock())
        self._end_all(self.lifetimes.sweep(list(self.local.all)))
        longest_s = self._clock() - self._limits.keep_s
        for session in list(self.local.all):
            if session.away_since_s is not None and session.away_since_s <= longest_s:
                self.local.end(session)
        await self._resume_unfinished()
        with contextlib.suppress(LogUnavailable):
            for room in self.rooms.without_their_log():
                for session in [session for session in self.local.all if session.room is room]:
                    session.lose_log()
                self._finals.abandon(room)
                await room.begin_again()
            await self.rooms.sweep(self._finals.busy)
        metrics.MEETINGS.set(len(self.rooms))
        metrics.SESSIONS_AWAY.set(sum(not session.connected for session in self.local.all))

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
        for session in self.local.all:
            if session.restored_s is not None:
                session.away_since_s = self._clock() - self._limits.keep_s + session.restored_s
                session.restored_s = None
        self._finals.resume()

    def kept_sessions(self) -> tuple[KeptSession, ...]:
        """What another process needs to let every session go on."""
        until = self.lifetimes.until_s
        return tuple(session.kept(self._left_s(session), until(session)) for session in self.local.all)

    def _left_s(self, session: LocalSession) -> float:
        if session.restored_s is not None:
            return session.restored_s
        away_s = 0.0 if session.away_since_s is None else self._clock() - session.away_since_s
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
                session = restored(room, kept, kept.session, self._limits)
                self.lifetimes.recall(session, kept)
                shown = Bounds(shown=self._limits.participants_shown)
                session.fence = await self._session_store.begin(session.key, session.record(kept.until_s), shown)
                self.local.add(session)
                # Its time counts once it can be resumed.
                session.away_since_s, session.restored_s = None, min(kept.left_s, self._limits.keep_s)
        for meeting in earlier.locked:
            await self._session_store.lock(meeting, True)
        for meeting, muted in earlier.muted.items():
            for who in muted:
                await self._session_store.mute(meeting, who, True)

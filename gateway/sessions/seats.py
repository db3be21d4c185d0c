"""The sessions that this gateway has, connected or kept, and how it loses them.

Knows: what ends with a session, and what does not; that other gateways may take one.
Must not know: how sessions begin, how long they may last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from msgspec import Struct

from gateway import metrics
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import LogUnavailable, SessionReplaced
from gateway.domain.ports import SessionStore
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.meeting.feed import Feed
from gateway.sessions.lifetimes import Lifetimes
from gateway.sessions.seat import Seat
from gateway.translation.finals import Finals
from gateway.translation.speech import Speech

_log = logging.getLogger(__name__)


class Seats:
    """Sessions by what the session store knows them as; it is told of each change."""

    def __init__(
        self,
        session_store: SessionStore,
        lifetimes: Lifetimes,
        finals: Finals,
        speech: Speech,
        tasks: asyncio.TaskGroup,
        # Monotonic, seconds.
        clock: Callable[[], float],
    ) -> None:
        self.writes = Writes(
            session_store,
            tasks,
            self._described,
            lambda seat, elsewhere: self.moved(seat.key, elsewhere=elsewhere),
        )
        self._lifetimes = lifetimes
        self._finals = finals
        self._speech = speech
        self._clock = clock
        self._seats: dict[bytes, Seat] = {}

    @property
    def all(self) -> Collection[Seat]:
        """It must not be held while sessions come and go."""
        return self._seats.values()

    def get(self, session: bytes) -> Seat | None:
        return self._seats.get(session)

    def add(self, seat: Seat) -> None:
        """A session that has begun, or that another gateway or process had; away, if it has no connection."""
        if not seat.connected:
            seat.away_since_s = self._clock()
        self._seats[seat.key] = seat
        seat.room.join(seat.member)

    def save(self, seat: Seat) -> None:
        """The session store is to know what a session is like now."""
        if self._seats.get(seat.key) is seat:
            self.writes.save(seat)

    def away(self, seat: Seat, feed: Feed) -> None:
        """The connection that `feed` went to is lost; the session is kept for a while."""
        if seat.member.feed is feed:
            seat.disconnect()
            seat.away_since_s = self._clock()
            self.writes.save(seat)
            self._speech.speaker_away(seat.room, seat.member.participant)
            metrics.SESSIONS.dec()
            _log.info("session %s… is away", seat.member.participant)

    def end(self, seat: Seat) -> None:
        """The session ends for good. Does nothing the second time."""
        if self._let_go(seat, for_good=True):
            self.writes.end(seat.key, seat.fence)
            if seat.room.private and not seat.room.members:
                self._finals.abandon(seat.room)
            _log.info("session %s… ended", seat.member.participant)

    def _let_go(self, seat: Seat, *, for_good: bool = False) -> bool:
        """The session is not this gateway's any more. Returns whether it was. for_good: nor another one's."""
        if self._seats.get(seat.key) is not seat:
            return False
        del self._seats[seat.key]
        if seat.connected:
            metrics.SESSIONS.dec()
        seat.leave()
        self._speech.speaker_left(seat.room, seat.member.participant, for_good=for_good)
        seat.room.leave(seat.member)
        return True

    def moved(self, session: bytes, elsewhere: bool) -> None:
        """Another gateway has this session now; or, if not `elsewhere`, it has ended."""
        if (seat := self._seats.get(session)) is None:
            return
        finish = seat.finish
        self._let_go(seat, for_good=not elsewhere)
        seat.state.disconnected()
        if finish is not None and elsewhere:
            finish(CloseCode.REPLACED, replaced())
        elif finish is not None:
            finish(CloseCode.RESTART, _lost())
        _log.info("session %s… is not here any more", seat.member.participant)

    def _described(self, seat: Seat) -> tuple[SessionRecord, float | None]:
        away_s = None if seat.away_since_s is None else self._clock() - seat.away_since_s
        return self._lifetimes.record(seat), away_s


def replaced() -> SessionReplaced:
    """What the earlier connection of a session is told."""
    return SessionReplaced("Another connection goes on with this session.")


def _lost() -> LogUnavailable:
    return LogUnavailable("The session has ended while the store was out of reach; reconnect.", retry_after_ms=0)


_AT_ONCE = 256


class _Ending(Struct, frozen=True):
    fence: int
    # Whether it ends; if not, this gateway may or may not have it, and lets go of it.
    ends: bool = True
    # The token that it has used up for nothing.
    unused: UsedToken | None = None


class Writes:
    """Tells the session store in the background; what failed is told again by `retry`."""

    def __init__(
        self,
        session_store: SessionStore,
        tasks: asyncio.TaskGroup,
        # What a session is like now, and for how many seconds it is away; None: it is connected.
        describe: Callable[[Seat], tuple[SessionRecord, float | None]],
        # Is told of a session that turns out to be another gateway's.
        moved: Callable[[Seat, bool], None],
    ) -> None:
        self._session_store = session_store
        self._tasks = tasks
        self._describe = describe
        self._moved = moved
        self._waiting: dict[bytes, Seat | _Ending] = {}
        # Those that are being told.
        self._under_way: dict[bytes, Seat | _Ending] = {}
        # Sessions that wait and could not be told of. They come last: with several stores, others may be there.
        self._failed: set[bytes] = set()
        self._worker: asyncio.Task[None] | None = None
        self._is_closed = False

    def save(self, seat: Seat) -> None:
        self._wait(seat.key, seat)

    def end(self, session: bytes, fence: int, unused: UsedToken | None = None) -> None:
        """A session has ended, or is not to begin. unused: as in `SessionStore.end`."""
        self._wait(session, _Ending(fence, unused=unused))

    def release(self, session: bytes, fence: int) -> None:
        """This gateway has no session with this fence, or with the next one."""
        self._wait(session, _Ending(fence, ends=False))

    def is_ending(self, session: bytes) -> bool:
        """Whether a session has ended and the session store may not know it."""
        last = self._waiting.get(session, self._under_way.get(session))
        return isinstance(last, _Ending) and last.ends

    def is_giving_back(self, used: UsedToken) -> bool:
        """Whether a token is not used up, and the session store may not know it."""
        token = used.tenant, used.token_id
        return any(
            isinstance(last, _Ending)
            and last.unused is not None
            and (last.unused.tenant, last.unused.token_id) == token
            for last in (*self._waiting.values(), *self._under_way.values())
        )

    def retry(self) -> None:
        """To be called every second."""
        if self._waiting and not self._is_closed and (self._worker is None or self._worker.done()):
            self._worker = self._tasks.create_task(self._work())

    def close(self) -> None:
        """Nothing more is told: a client that disconnects now is away since this gateway has left."""
        self._is_closed = True

    def _wait(self, session: bytes, last: Seat | _Ending) -> None:
        self._waiting[session] = last
        self.retry()

    async def _work(self) -> None:
        is_reachable = True
        while self._waiting and is_reachable:
            sessions = sorted(self._waiting, key=self._failed.__contains__)[:_AT_ONCE]
            self._under_way = {session: self._waiting.pop(session) for session in sessions}
            told = await asyncio.gather(*(self._tell(*each) for each in self._under_way.items()))
            for (session, last), done in zip(self._under_way.items(), told, strict=True):
                if done:
                    self._failed.discard(session)
                else:
                    is_reachable = False
                    self._failed.add(session)
                    self._waiting.setdefault(session, last)
            self._under_way = {}

    async def _tell(self, session: bytes, last: Seat | _Ending) -> bool:
        """False if it is to be told again. Never raises."""
        try:
            match last:
                case _Ending(ends=True, fence=fence, unused=unused):
                    await self._session_store.end(session, fence, unused)
                case _Ending(fence=fence):
                    await self._session_store.release(session, fence)
                    await self._session_store.release(session, fence + 1)
                case Seat():
                    await self._save(last)
        except LogUnavailable:
            return False
        except Exception:
            _log.exception("the session store could not be told of a session")
        return True

    async def _save(self, seat: Seat) -> None:
        fence = seat.fence
        record, away_s = self._describe(seat)
        saved = await self._session_store.save(seat.key, fence, record, away_s=away_s)
        if not saved and seat.fence == fence and not self.is_ending(seat.key):
            held = await self._session_store.find(seat.key)
            self._moved(seat, held is not None and held.fence > fence)

"""The sessions that this gateway has, connected or kept, and how it loses them.

Knows: what ends with a session, and what does not; that other gateways may take one.
Must not know: how sessions begin, how long they may last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from functools import partial

from msgspec import Struct

from gateway import metrics
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import LogUnavailable, SessionReplaced
from gateway.domain.ports import SessionStore
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.meeting.feed import Feed
from gateway.sessions.lifetimes import Lifetimes
from gateway.sessions.local_session import LocalSession
from gateway.translation.finals import Finals
from gateway.translation.speech import Speech

_log = logging.getLogger(__name__)


class LocalSessions:
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
        # Is told of a session that a host has muted.
        muted: Callable[[LocalSession], None],
    ) -> None:
        self._muted = muted
        self.writes = Writes(
            session_store,
            tasks,
            self._described,
            lambda session, elsewhere: self.moved(session.key, elsewhere=elsewhere),
        )
        self._lifetimes = lifetimes
        self._finals = finals
        self._speech = speech
        self._clock = clock
        self._sessions: dict[bytes, LocalSession] = {}

    @property
    def all(self) -> Collection[LocalSession]:
        """It must not be held while sessions come and go."""
        return self._sessions.values()

    def get(self, key: bytes) -> LocalSession | None:
        return self._sessions.get(key)

    def add(self, session: LocalSession) -> None:
        """A session that has begun, or that another gateway or process had; away, if it has no connection."""
        if not session.connected:
            session.away_since_s = self._clock()
        self._sessions[session.key] = session
        session.member.on_muted = partial(self._muted, session)
        session.room.join(session.member)

    def save(self, session: LocalSession) -> None:
        """The session store is to know what a session is like now."""
        if self._sessions.get(session.key) is session:
            self.writes.save(session)

    def away(self, session: LocalSession, feed: Feed) -> None:
        """The connection that `feed` went to is lost; the session is kept for a while."""
        if session.member.feed is feed:
            session.disconnect()
            session.away_since_s = self._clock()
            self.writes.save(session)
            self._speech.speaker_away(session.room, session.member.participant)
            metrics.SESSIONS.dec()
            _log.info("session %s… is away", session.member.participant)

    def end(self, session: LocalSession) -> None:
        """The session ends for good. Does nothing the second time."""
        if self._let_go(session, for_good=True):
            self.writes.end(session.key, session.fence)
            if session.room.private and not session.room.members:
                self._finals.abandon(session.room)
            _log.info("session %s… ended", session.member.participant)

    def _let_go(self, session: LocalSession, *, for_good: bool = False) -> bool:
        """The session is not this gateway's any more. Returns whether it was. for_good: nor another one's."""
        if self._sessions.get(session.key) is not session:
            return False
        del self._sessions[session.key]
        if session.connected:
            metrics.SESSIONS.dec()
        session.leave()
        self._speech.speaker_left(session.room, session.member.participant, for_good=for_good)
        session.room.leave(session.member)
        return True

    def moved(self, key: bytes, elsewhere: bool) -> None:
        """Another gateway has this session now; or, if not `elsewhere`, it has ended."""
        if (session := self._sessions.get(key)) is None:
            return
        finish = session.finish
        self._let_go(session, for_good=not elsewhere)
        session.state.disconnected()
        if finish is not None and elsewhere:
            finish(CloseCode.REPLACED, replaced())
        elif finish is not None:
            finish(CloseCode.RESTART, _lost())
        _log.info("session %s… is not here any more", session.member.participant)

    def _described(self, session: LocalSession) -> tuple[SessionRecord, float | None]:
        away_s = None if session.away_since_s is None else self._clock() - session.away_since_s
        return self._lifetimes.record(session), away_s


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
        describe: Callable[[LocalSession], tuple[SessionRecord, float | None]],
        # Is told of a session that turns out to be another gateway's.
        moved: Callable[[LocalSession, bool], None],
    ) -> None:
        self._session_store = session_store
        self._tasks = tasks
        self._describe = describe
        self._moved = moved
        self._waiting: dict[bytes, LocalSession | _Ending] = {}
        # Those that are being told.
        self._under_way: dict[bytes, LocalSession | _Ending] = {}
        # Sessions that wait and could not be told of. They come last: with several stores, others may be there.
        self._failed: set[bytes] = set()
        self._worker: asyncio.Task[None] | None = None
        self._is_closed = False

    def save(self, session: LocalSession) -> None:
        self._wait(session.key, session)

    def end(self, key: bytes, fence: int, unused: UsedToken | None = None) -> None:
        """A session has ended, or is not to begin. unused: as in `SessionStore.end`."""
        self._wait(key, _Ending(fence, unused=unused))

    def release(self, key: bytes, fence: int) -> None:
        """This gateway has no session with this fence, or with the next one."""
        self._wait(key, _Ending(fence, ends=False))

    def is_ending(self, key: bytes) -> bool:
        """Whether a session has ended and the session store may not know it."""
        last = self._waiting.get(key, self._under_way.get(key))
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

    def _wait(self, key: bytes, last: LocalSession | _Ending) -> None:
        self._waiting[key] = last
        self.retry()

    async def _work(self) -> None:
        is_reachable = True
        while self._waiting and is_reachable:
            keys = sorted(self._waiting, key=self._failed.__contains__)[:_AT_ONCE]
            self._under_way = {key: self._waiting.pop(key) for key in keys}
            told = await asyncio.gather(*(self._tell(*each) for each in self._under_way.items()))
            for (key, last), done in zip(self._under_way.items(), told, strict=True):
                if done:
                    self._failed.discard(key)
                else:
                    is_reachable = False
                    self._failed.add(key)
                    self._waiting.setdefault(key, last)
            self._under_way = {}

    async def _tell(self, key: bytes, last: LocalSession | _Ending) -> bool:
        """False if it is to be told again. Never raises."""
        try:
            match last:
                case _Ending(ends=True, fence=fence, unused=unused):
                    await self._session_store.end(key, fence, unused)
                case _Ending(fence=fence):
                    await self._session_store.release(key, fence)
                    await self._session_store.release(key, fence + 1)
                case LocalSession():
                    await self._save(last)
        except LogUnavailable:
            return False
        except Exception:
            _log.exception("the session store could not be told of a session")
        return True

    async def _save(self, session: LocalSession) -> None:
        fence = session.fence
        record, away_s = self._describe(session)
        saved = await self._session_store.save(session.key, fence, record, away_s=away_s)
        if not saved and session.fence == fence and not self.is_ending(session.key):
            held = await self._session_store.find(session.key)
            self._moved(session, held is not None and held.fence > fence)

"""What the register is still to be told of sessions: the newest state of each, repeated until it is done.

Knows: sessions that have changed or ended, and that the register may be out of reach.
Must not know: why they have changed, rooms, connections.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from gateway.domain.errors import LogUnavailable
from gateway.domain.ports import Register
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.sessions.seat import Seat

_log = logging.getLogger(__name__)

_AT_ONCE = 256


class _End(Enum):
    # It ends.
    ENDED = "ended"
    # This gateway may or may not have it, and lets go of it.
    RELEASED = "released"


class _Ending(Struct, frozen=True):
    kind: _End
    fence: int
    # The token that it has used up for nothing.
    unused: UsedToken | None = None


class Writes:
    """Tells the register in the background; what failed is told again by `retry`."""

    def __init__(
        self,
        register: Register,
        tasks: asyncio.TaskGroup,
        # What a session is like now, and for how many seconds it is away; None: it is connected.
        describe: Callable[[Seat], tuple[SessionRecord, float | None]],
        # Is told of a session that turns out to be another gateway's.
        moved: Callable[[Seat, bool], None],
    ) -> None:
        self._register = register
        self._tasks = tasks
        self._describe = describe
        self._moved = moved
        self._waiting: dict[bytes, Seat | _Ending] = {}
        # Those that are being told.
        self._under_way: dict[bytes, Seat | _Ending] = {}
        # Of those that wait, what could not be told. It comes last: with several stores, others may be there.
        self._failed: set[bytes] = set()
        self._worker: asyncio.Task[None] | None = None
        self._is_closed = False

    def save(self, seat: Seat) -> None:
        """A session is not what it was."""
        self._wait(seat.key, seat)

    def end(self, session: bytes, fence: int, unused: UsedToken | None = None) -> None:
        """A session has ended, or is not to begin. unused: as in `Register.end`."""
        self._wait(session, _Ending(_End.ENDED, fence, unused))

    def release(self, session: bytes, fence: int) -> None:
        """Nobody here has a session with this fence, or with the next one."""
        self._wait(session, _Ending(_End.RELEASED, fence))

    def ends(self, session: bytes) -> bool:
        """Whether a session has ended and the register may not know it."""
        last = self._waiting.get(session, self._under_way.get(session))
        return isinstance(last, _Ending) and last.kind is _End.ENDED

    def gives_back(self, used: UsedToken) -> bool:
        """Whether a token is not used up, and the register may not know it."""
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
        """Nothing more is told: whoever disconnects now is away since this gateway has left."""
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
                case _Ending(kind=_End.ENDED, fence=fence, unused=unused):
                    await self._register.end(session, fence, unused)
                case _Ending(fence=fence):
                    await self._register.release(session, fence)
                    await self._register.release(session, fence + 1)
                case Seat():
                    await self._save(last)
        except LogUnavailable:
            return False
        except Exception:
            _log.exception("the register could not be told of a session")
        return True

    async def _save(self, seat: Seat) -> None:
        fence = seat.fence
        record, away_s = self._describe(seat)
        saved = await self._register.save(seat.key, fence, record, away_s=away_s)
        if not saved and seat.fence == fence and not self.ends(seat.key):
            held = await self._register.find(seat.key)
            self._moved(seat, held is not None and held.fence > fence)

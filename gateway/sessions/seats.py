"""The sessions that this gateway has, connected or kept, and how it loses them.

Knows: what ends with a session, and what does not; that other gateways may take one.
Must not know: how sessions begin, how long they may last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from gateway import metrics
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import LogUnavailable, SessionReplaced
from gateway.domain.ports import Register
from gateway.domain.sessions import SessionRecord
from gateway.meeting.feed import Feed
from gateway.sessions.lifetimes import Lifetimes
from gateway.sessions.seat import Seat
from gateway.sessions.writes import Writes
from gateway.translation.finals import Finals
from gateway.translation.partials import Partials

_log = logging.getLogger(__name__)


class Seats:
    """Sessions by what the register knows them as; it is told of each change."""

    def __init__(
        self,
        register: Register,
        lifetimes: Lifetimes,
        finals: Finals,
        partials: Partials,
        tasks: asyncio.TaskGroup,
        # Monotonic, seconds.
        clock: Callable[[], float],
    ) -> None:
        self.writes = Writes(
            register, tasks, self._described, lambda seat, elsewhere: self.moved(seat.key, elsewhere=elsewhere)
        )
        self._lifetimes = lifetimes
        self._finals = finals
        self._partials = partials
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
        """The register is to know what a session is like now."""
        if self._seats.get(seat.key) is seat:
            self.writes.save(seat)

    def away(self, seat: Seat, feed: Feed) -> None:
        """The connection that `feed` went to is lost; the session is kept for a while."""
        if seat.member.feed is feed:
            seat.disconnect()
            seat.away_since_s = self._clock()
            self.writes.save(seat)
            self._partials.speaker_away(seat.room, seat.member.participant)
            metrics.SESSIONS.dec()
            _log.info("session %s… is away", seat.member.participant)

    def end(self, seat: Seat) -> None:
        """The session ends for good. Does nothing the second time."""
        if self._let_go(seat):
            self.writes.end(seat.key, seat.fence)
            if seat.room.private and not seat.room.members:
                self._finals.abandon(seat.room)
            _log.info("session %s… ended", seat.member.participant)

    def _let_go(self, seat: Seat) -> bool:
        """The session is not this gateway's any more. Returns whether it was."""
        if self._seats.get(seat.key) is not seat:
            return False
        del self._seats[seat.key]
        if seat.connected:
            metrics.SESSIONS.dec()
        seat.leave()
        self._partials.speaker_left(seat.room, seat.member.participant)
        seat.room.leave(seat.member)
        return True

    def moved(self, session: bytes, elsewhere: bool) -> None:
        """Another gateway has this session now; or, if not `elsewhere`, it has ended."""
        if (seat := self._seats.get(session)) is None:
            return
        finish = seat.finish
        self._let_go(seat)
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

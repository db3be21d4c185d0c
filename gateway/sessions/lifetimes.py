"""How long sessions may last: their tokens' time, refreshes, revocations.

Knows: grants, clocks, which sessions are warned or over. Must not know: how tokens are verified, sockets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import (
    Forbidden,
    GatewayError,
    MeetingEnded,
    Removed,
    TokenExpired,
    TokenRevoked,
    Unauthenticated,
)
from gateway.domain.grants import Grant, Revocation
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.meeting.outbox import Payload
from gateway.protocol.messages import TokenExpiring
from gateway.sessions.grants import Revocations, check_meeting, check_reads, check_recorded, check_speaks
from gateway.sessions.local_session import LocalSession
from gateway.sessions.machine import State

_log = logging.getLogger(__name__)

# Before a session's time is over its client is told, so that it gets a new token; a short one in the middle of its
# time, or a client that is given a new token at once would ask for the next.
_WARNING_S = 60.0

# For what was accepted to be delivered once a session's time is over.
_GRACE_S = 30.0

# A token was valid when it was presented, and its session begins soon after; clocks differ, too. Who presented it
# with the handshake and waits, such as for the engine, needs a new one.
_LATE_S = 60.0


class Lifetimes:
    """Bounds every session by what its token allows. `sweep` is called every second."""

    def __init__(
        self,
        *,
        # Monotonic, seconds.
        clock: Callable[[], float],
        # Seconds since 1970.
        wall_clock: Callable[[], float] = time.time,
        # Whether the key that a grant comes from is still valid.
        stands: Callable[[Grant], bool] = lambda _: True,
    ) -> None:
        self.revocations = Revocations()
        self._clock = clock
        self._wall_clock = wall_clock
        self._stands = stands

    def is_valid(self, grant: Grant) -> bool:
        """Whether it was not revoked, and the key that it comes from is still there."""
        return self._stands(grant) and not self.revocations.is_revoked(grant)

    def check(self, grant: Grant, participant: str, earlier: SessionRecord | None = None) -> UsedToken | None:
        """What a token uses up by opening a session, or letting `earlier` go on. Raises `Unauthenticated`."""
        if grant.expires_s is not None and self._wall_clock() > grant.expires_s + _LATE_S:
            raise Unauthenticated(why="expired")
        # The same token again gives no more time than it has given.
        until_s = earlier.until_s if earlier is not None and grant.token_id == earlier.grant.token_id else None
        if until_s is not None and until_s < self._wall_clock():
            raise Unauthenticated(why="expired")
        return self.revocations.used(grant, participant)

    def begin(self, session: LocalSession, grant: Grant) -> float | None:
        """A session begins or goes on with what `grant` allows: the seconds that it may last, None for no end.

        Raises `Unauthenticated`; then nothing has changed.
        """
        self.check(grant, session.member.participant, None if session.until_s is None else self.record(session))
        left_s = self._left_s(grant)
        if session.until_s is not None and grant.token_id == session.grant.token_id:
            left_s = session.until_s - self._clock()
        session.until_s = None if left_s is None else self._clock() + left_s
        session.warned = False
        session.warning_s = _WARNING_S if left_s is None else min(_WARNING_S, left_s / 2)
        return left_s

    def record(self, session: LocalSession) -> SessionRecord:
        """A session as another gateway can go on with it."""
        return session.record(self.until_s(session))

    def until_s(self, session: LocalSession) -> float | None:
        """When a session's time is over, in seconds since 1970; None: never."""
        return None if session.until_s is None else self._wall_clock() + session.until_s - self._clock()

    def recall(self, session: LocalSession, record: SessionRecord) -> None:
        """A session that another gateway or process had lasts as long as it would have there."""
        if record.until_s is not None:
            session.until_s = self._clock() + record.until_s - self._wall_clock()

    def check_refresh(self, session: LocalSession, grant: Grant) -> UsedToken | None:
        """What a new token uses up. Raises `Forbidden`, `TokenExpired` or `Unauthenticated`."""
        earlier, member = session.grant, session.member
        if session.state.state is not State.OPEN:
            # While the token was verified.
            raise TokenExpired("The session's time is over; a new token resumes it.")
        if (grant.tenant, grant.subject) != (earlier.tenant, earlier.subject):
            raise Forbidden("The token is somebody else's.", field="token")
        if grant.meeting != earlier.meeting or grant.any_meeting != earlier.any_meeting:
            raise Forbidden("The token is for another meeting.", field="token")
        check_meeting(grant, None)
        check_recorded(grant, None, session.room.recorded)
        check_reads(grant, member.reads, originals=member.originals)
        if member.speaks is not None:
            check_speaks(grant, member.speaks, "speaks")
        return self.check(grant, member.participant, self.record(session))

    def refresh(self, session: LocalSession, grant: Grant) -> float | None:
        """Go on with a new token. Returns for how many seconds (None: no end). Raises as `check_refresh`."""
        self.check_refresh(session, grant)
        left_s = self.begin(session, grant)
        session.state.grant = grant
        return left_s

    def sweep(self, sessions: Iterable[LocalSession]) -> list[LocalSession]:
        """Warn and close what is due. Returns the sessions that are revoked: they end for good."""
        now_s = self._clock()
        revoked = []
        for session in sessions:
            if not self._stands(session.grant):
                revoked.append(session)
            elif session.until_s is not None and session.connected:
                self._hold_to(session, session.until_s - now_s)
        self.revocations.sweep(self._wall_clock())
        for session in revoked:
            self._close_revoked(session, *_why())
        return revoked

    def revoke(
        self, revocation: Revocation, sessions: Iterable[LocalSession], *, known: bool = False
    ) -> list[LocalSession]:
        """Tokens are not valid any more. known: another gateway has it already.

        Returns the sessions that end for good. Raises what `Revocations.revoke` raises.
        """
        self.revocations.revoke(revocation, known=known)
        # Also what was issued by a clock that is ahead of ours: it is there, so it was issued before.
        revoked = [
            session
            for session in sessions
            if revocation.ends(session.grant, session.room.id, session.member.participant)
        ]
        for session in revoked:
            self._close_revoked(session, *_why(revocation))
        return revoked

    def _hold_to(self, session: LocalSession, left_s: float) -> None:
        if left_s <= -_GRACE_S:
            self._close(session, CloseCode.TOKEN_EXPIRED, TokenExpired("The session's time is over."))
        elif left_s <= 0:
            session.expire()
        elif left_s <= session.warning_s and not session.warned and session.member.feed is not None:
            session.warned = True
            session.member.feed.send_now(Payload(TokenExpiring(expires_in_ms=max(1, round(left_s * 1_000)))))

    def _close_revoked(self, session: LocalSession, code: CloseCode, why: GatewayError) -> None:
        _log.info("session %s… is revoked", session.member.participant)
        # From now on nothing is taken from its connection, which may take a while to close.
        session.state.disconnected()
        self._close(session, code, why)

    def _close(self, session: LocalSession, code: CloseCode, reason: GatewayError) -> None:
        if session.finish is not None:
            session.finish(code, reason)

    def _left_s(self, grant: Grant) -> float | None:
        if grant.max_s is not None:
            return grant.max_s
        return None if grant.expires_s is None else max(0.0, grant.expires_s - self._wall_clock())


def _why(revocation: Revocation | None = None) -> tuple[CloseCode, GatewayError]:
    """What those are told whose sessions end. revocation: None where their key is gone."""
    by_operator = revocation is not None and revocation.by_operator
    by_host = revocation is not None and revocation.by_host
    if revocation is not None and revocation.ends_meeting:
        who = "The host has ended" if by_host else "The operator has ended"
        why = f"{who} this meeting." if by_operator else "This meeting has been ended."
        return CloseCode.MEETING_ENDED, MeetingEnded(why)
    if by_host:
        return CloseCode.TOKEN_REVOKED, Removed("The host has removed you from this meeting.")
    why = "The operator has removed you from this meeting." if by_operator else "The token was revoked."
    return CloseCode.TOKEN_REVOKED, TokenRevoked(why)

"""One session's presence in a meeting, over one or more connections.

Knows: the session's secret, its protocol state, its member, and how its connection is closed.
Must not know: other sessions, sockets, how long it is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import GatewayError, LogUnavailable
from gateway.domain.grants import Grant
from gateway.domain.sessions import KeptSession
from gateway.meeting.feed import Feed
from gateway.meeting.members import Member
from gateway.meeting.room import Room
from gateway.sessions.effects import Accept, Close, Effect
from gateway.sessions.machine import Session

__all__ = ["Finish", "Seat", "member_of"]

# Closes a connection after what is in its outbox, with the reason.
Finish = Callable[[CloseCode, GatewayError | None], None]


@dataclass(eq=False, kw_only=True)
class Seat:
    """What outlives a connection of a session, and what belongs to the connection it has now."""

    # The secret with which a client resumes the session.
    secret: str
    room: Room
    member: Member
    # The protocol's state; the next connection takes it over.
    state: Session
    # Closes the connection; None while there is none.
    finish: Finish | None = None
    # By the registry's clock, while there is no connection.
    away_since_s: float | None = None
    # By the registry's clock: when its time is over; None: never.
    until_s: float | None = None
    # Whether its client was told that this is soon.
    warned: bool = False

    def __post_init__(self) -> None:
        self.member.on_finished = self._utterance_finished

    @property
    def account(self) -> str:
        """Who is charged for it."""
        return self.member.account

    @property
    def grant(self) -> Grant:
        """What its newest token allows."""
        return self.state.grant

    @property
    def connected(self) -> bool:
        return self.member.feed is not None

    def connect(self, feed: Feed, state: Session, finish: Finish) -> None:
        """A connection: the first one, or one that goes on with the session."""
        state.participant = self.member.participant
        self.member.feed, self.state, self.finish, self.away_since_s = feed, state, finish, None

    def disconnect(self) -> None:
        self.member.feed = self.finish = None

    def leave(self) -> None:
        """The session has ended."""
        self.disconnect()
        # It holds this seat, and would keep the meeting's texts until the next pass of the garbage collector.
        self.member.on_finished = None

    def refused(self, accept: Accept) -> None:
        """A final of this session was not accepted."""
        self._carry_out(self.state.refused(accept))

    def lose_log(self) -> None:
        """What was said is lost, and what is said next is in another log."""
        self.state.lose_in_flight()
        if self.finish is not None:
            lost = LogUnavailable("The meeting's log was lost; reconnect.", retry_after_ms=0)
            self.finish(CloseCode.RESTART, lost)

    def expire(self) -> None:
        """Its time is over: nothing more is taken, and the connection closes after what was accepted."""
        self._carry_out(self.state.expire())

    def kept(self, left_s: float) -> KeptSession:
        """What another process needs to let the session go on within `left_s`."""
        member = self.member
        return KeptSession(
            session=self.secret,
            participant=member.participant,
            meeting=self.room.id,
            private=self.room.private,
            name=member.name,
            speaks=member.speaks,
            reads=member.reads,
            stability=member.stability,
            originals=member.originals,
            since=member.since,
            stopped=member.stopped,
            left_s=left_s,
            account=member.account,
            grant=self.grant,
        )

    def _utterance_finished(self, utterance: str, failed: bool) -> None:
        # By then the session may have another connection, whose state took over.
        self._carry_out(self.state.settled(utterance, failed=failed))

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Close) and self.finish is not None:
                self.finish(effect.code, effect.reason)


def member_of(kept: KeptSession) -> Member:
    """The member that another process kept, away."""
    return Member(
        participant=kept.participant,
        name=kept.name,
        speaks=kept.speaks,
        reads=kept.reads,
        stability=kept.stability,
        originals=kept.originals,
        since=kept.since,
        stopped=dict(kept.stopped),
        account=kept.account,
    )

"""One session at this gateway, over one or more connections; it may have been at another one before.

Knows: the session's secret, its protocol state, its member, and how its connection is closed.
Must not know: other sessions, sockets, how long it is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import asdict

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import GatewayError, LogUnavailable
from gateway.domain.grants import Grant
from gateway.domain.sessions import KeptSession, SessionRecord
from gateway.meeting.feed import Feed
from gateway.meeting.live_view import MOST_OPEN
from gateway.meeting.members import Member
from gateway.meeting.room import Room
from gateway.protocol.limits import Limits
from gateway.sessions.machine import Accept, Close, Effect, SessionState, Show

# Closes a connection after what is in its outbox, with the reason.
Finish = Callable[[CloseCode, GatewayError | None], None]


@dataclass(eq=False)
class Late:
    """An utterance whose newest revision waits for its turn, or for the end of what is being settled."""

    # None: an earlier one is being settled.
    show: Show | None = None
    # Nothing of it was shown yet.
    unseen: bool = False
    settling: bool = False
    # Its final was refused for the moment: see `Withdraw`.
    wait_s: float = 0.0


@dataclass(eq=False, kw_only=True)
class LocalSession:
    """What outlives a connection of a session, and what belongs to the connection it has now."""

    # The secret with which a client resumes the session.
    secret: str
    # By which the session store knows the session.
    key: bytes = field(init=False)
    # The session store's: counts up with every resume, at whichever gateway.
    fence: int = 0
    room: Room
    member: Member
    # The protocol's state; the next connection takes it over.
    state: SessionState
    # Closes the connection; None while there is none.
    finish: Finish | None = None
    # By the clock of `Sessions`, while there is no connection.
    away_since_s: float | None = None
    # By the clock of `Sessions`: when its time is over; None: never.
    until_s: float | None = None
    # Seconds for which a session of an earlier process can be resumed, from when the engine is ready on.
    restored_s: float | None = None
    # How long before its client is told, in seconds, and whether it was.
    warning_s: float = 0.0
    warned: bool = False
    # By utterance, the least recently revised first; few, see `put_late`.
    late: dict[str, Late] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = key_of(self.secret)
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

    def connect(self, feed: Feed, state: SessionState, finish: Finish) -> None:
        """A connection: the first one, or one that goes on with the session."""
        state.participant, state.person = self.member.participant, self.member.person
        state.is_muted = partial(self.room.presence.is_muted, self.member)
        self.member.feed, self.state, self.finish = feed, state, finish
        self.away_since_s = self.restored_s = None

    def disconnect(self) -> None:
        self.member.feed = self.finish = None

    def leave(self) -> None:
        """The session has ended."""
        self.disconnect()
        # It holds this session, and would keep the meeting's texts until the next pass of the garbage collector.
        self.member.on_finished = self.member.on_muted = None

    def put_late(self, show: Show) -> str | None:
        """A revision waits. Returns the utterance that has no room, and does not wait any more; None: all have."""
        id = show.utterance.id
        late = self.late[id] = self.late.pop(id) if id in self.late else Late()
        late.show, late.unseen, late.wait_s = show, late.unseen or show.first, 0.0
        if len(self.late) <= MOST_OPEN:
            return None
        given_up = next(id for id, each in self.late.items() if not each.settling)
        del self.late[given_up]
        return given_up

    def refused(self, accept: Accept, *, in_part: bool) -> list[Effect]:
        """A final of this session was not accepted, or only some of its segments. Returns what is left to do."""
        effects = self.state.refused(accept, in_part=in_part)
        self._carry_out(effects)
        return effects

    def lose_log(self) -> None:
        """What was said is lost, and what is said next is in another log."""
        self.state.lose_in_flight()
        if self.finish is not None:
            lost = LogUnavailable("The meeting's log was erased or lost; reconnect.", retry_after_ms=0)
            self.finish(CloseCode.RESTART, lost)

    def expire(self) -> None:
        """Its time is over: nothing more is taken, and the connection closes after what was accepted."""
        self._carry_out(self.state.expire())

    def record(self, until_s: float | None = None) -> SessionRecord:
        """What another gateway needs to go on with it. until_s: when its time is over, in seconds since 1970."""
        member = self.member
        return SessionRecord(
            participant=member.participant,
            meeting=self.room.id,
            private=self.room.private,
            name=member.name,
            speaks=member.speaks,
            reads=member.reads,
            stability=member.stability,
            originals=member.originals,
            since=member.since,
            stopped=dict(member.stopped),
            account=member.account,
            grant=self.grant,
            until_s=until_s,
            recorded=self.room.recorded,
            person=member.person,
        )

    def kept(self, left_s: float, until_s: float | None = None) -> KeptSession:
        """What another process needs to let the session go on within `left_s`."""
        return KeptSession(**asdict(self.record(until_s)), session=self.secret, left_s=left_s)

    def _utterance_finished(self, utterance: str, failed: bool) -> None:
        # By then the session may have another connection, whose state took over.
        self._carry_out(self.state.settled(utterance, failed=failed))

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Close) and self.finish is not None:
                self.finish(effect.code, effect.reason)


def key_of(secret: str) -> bytes:
    """By what the session store knows a session: who reads the store cannot resume it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def recalled(room: Room, record: SessionRecord, limits: Limits) -> SessionState:
    """A session's protocol state, as far as the room tells it: what it said lately, and what is not finished.

    If it sends an older final again, the log recognises that.
    """
    state = SessionState(limits)
    state.participant, state.person, state.grant = record.participant, record.person, record.grant
    for said in room.history.said_by(record.participant):
        missing = bool(said.missing())
        if not said.utterance.is_segment:
            state.recall(said.utterance, failed=not missing and said.failed, in_flight=missing)
        elif not said.utterance.continues and room.history.unfinished_segments(said.utterance.whole):
            state.recall_in_flight(said.utterance)
    state.recalled()
    return state


def restored(room: Room, record: SessionRecord, secret: str, limits: Limits, fence: int = 0) -> LocalSession:
    """The session, away."""
    member = Member(
        participant=record.participant,
        name=record.name,
        speaks=record.speaks,
        reads=record.reads,
        stability=record.stability,
        originals=record.originals,
        since=record.since,
        stopped=dict(record.stopped),
        account=record.account,
        person=record.person,
    )
    return LocalSession(secret=secret, fence=fence, room=room, member=member, state=recalled(room, record, limits))

"""Who is here: every session of this process, connected or kept, and the meetings they are in.

Knows: how sessions begin, are resumed, kept and end, and how many there may be.
Must not know: sockets, the order of messages (`session`), how translations are made (`publisher`).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable

from msgspec import Struct

from gateway import metrics
from gateway.domain.errors import (
    CloseCode,
    GatewayError,
    InvalidValue,
    LimitExceeded,
    SessionReplaced,
    TooManySessions,
)
from gateway.domain.ports import EventLog
from gateway.domain.sessions import Handover, KeptMeeting, KeptSession
from gateway.meeting.feed import Feed
from gateway.meeting.history import Recent, RecentUtterances
from gateway.meeting.members import Member, Members
from gateway.meeting.outbox import Outbox
from gateway.meeting.payload import Payload
from gateway.meeting.room import Meeting
from gateway.protocol.limits import Limits
from gateway.protocol.messages import ServerMessage
from gateway.sessions.machine import Accept, Close, Effect, Join, Session, Update
from gateway.translation.finals import Publisher, Settled

__all__ = ["Attendance", "Entry", "Finish"]

_log = logging.getLogger(__name__)

# Closes a connection after what is in its outbox, with the reason.
Finish = Callable[[CloseCode, GatewayError | None], None]


class Entry(Struct, frozen=True):
    """A session as it begins or goes on, with a feed that is not live yet: see `Meeting.stream_to`.

    recovered: whether everything missed will follow; null where nothing was to be resumed.
    """

    member: Member
    feed: Feed
    recovered: bool | None


class Attendance:
    """The register.

    max_sessions: connected and kept together; a newcomer ends the kept session that is away for longest.
    snapshot: utterances that a newcomer is shown.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        publisher: Publisher,
        limits: Limits,
        max_sessions: int,
        snapshot: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._event_log = log
        self._publisher = publisher
        self._limits = limits
        self._max_sessions = max_sessions
        self._snapshot = snapshot
        self._clock = clock
        self._meetings: dict[str, Meeting] = {}
        self._entering: dict[Meeting, int] = {}
        self._members: dict[str, Member] = {}
        # Those of another process, with the seconds for which they can still be resumed once that is possible.
        self._restored: dict[Member, float] = {}

    @property
    def sessions(self) -> int:
        """Connected and kept."""
        return len(self._members)

    @property
    def meetings(self) -> int:
        """Meetings with a session or with a translation that runs."""
        return len(self._meetings)

    # ------------------------------------------------------------ coming and going

    async def join(self, join: Join, state: Session, outbox: Outbox, finish: Finish) -> Entry:
        """A session begins, or goes on with this connection.

        Raises `InvalidValue`, `LimitExceeded`, `TooManySessions` or `LogUnavailable`; then nothing has changed.
        """
        resume = join.resume
        if resume is not None and (member := self._members.get(resume.session)) is not None:
            meeting = member.meeting
            if join.meeting is not None and join.meeting != meeting.id:
                raise InvalidValue("This session belongs to another meeting.", field="resume.session")
            self._check_languages(meeting, member, join.reads)
            page = await meeting.log.read(meeting.id, resume.offset, 1)
            newest = await meeting.newcomers_position()
            if self._members.get(resume.session) is member:
                recovered = page.epoch == resume.epoch and page.first - 1 <= resume.offset <= page.last
                after = resume.offset if recovered else newest
                return self._go_on(member, join, state, outbox, finish, after, recovered=recovered)
        return await self._begin(join, state, outbox, finish)

    def away(self, member: Member, feed: Feed) -> None:
        """The connection that `feed` went to is lost; the session is kept for a while."""
        if member.feed is feed:
            member.feed = member.finish = None
            member.away_since_s = self._clock()
            member.meeting.live.close_all(member.participant)
            metrics.SESSIONS.dec()
            _log.info("session %s… is away", member.participant)

    def end(self, member: Member) -> None:
        """The session ends for good. Does nothing the second time."""
        if self._members.pop(member.session, None) is None:
            return
        self._restored.pop(member, None)
        meeting = member.meeting
        if member.feed is not None:
            metrics.SESSIONS.dec()
            member.feed = member.finish = None
        meeting.leave(member)
        if meeting.private and not meeting.members:
            self._publisher.abandon(meeting)
        _log.info("session %s… ended", member.participant)

    def update(self, member: Member, update: Update) -> None:
        """Other languages, from the next utterance on. Raises `LimitExceeded`; then nothing has changed."""
        self._check_languages(member.meeting, member, update.reads)
        member.meeting.update(
            member,
            name=member.name,
            speaks=update.speaks,
            reads=update.reads,
            stability=update.stability,
            originals=update.originals,
        )

    async def accept(self, member: Member, accept: Accept) -> None:
        """Take on a final utterance of a member.

        Raises what `Publisher.accept` raises; then nothing was accepted, and the session knows.
        """

        def refused() -> None:
            self._carry_out(member, member.state.refused(accept))

        utterance, settled = accept.utterance, self._settled(member, accept.utterance.id)
        await self._publisher.accept(member.meeting, utterance, settled, refused, again=accept.again)

    def tell(self, message: ServerMessage) -> None:
        """Something that concerns every session that is connected."""
        payload = Payload(message)
        for member in self._members.values():
            if member.feed is not None:
                member.feed.tell(payload)

    def catch_up(self) -> None:
        """The engine takes work: another process's sessions can be resumed, and what it left is gone on with."""
        for member, left_s in self._restored.items():
            if member.feed is None:
                member.away_since_s = self._clock() - self._limits.keep_s + left_s
        self._restored.clear()
        self._pay()

    async def sweep(self) -> None:
        """End sessions that were away for too long, let go of meetings that nobody is in."""
        self._pay()
        longest_s = self._clock() - self._limits.keep_s
        for member in list(self._members.values()):
            if member.away_since_s is not None and member.away_since_s <= longest_s:
                self.end(member)
        for meeting in list(self._meetings.values()):
            if not (meeting.members or meeting.running or meeting.debts or meeting in self._entering):
                del self._meetings[meeting.id]
                await meeting.close()
        metrics.MEETINGS.set(len(self._meetings))
        metrics.SESSIONS_AWAY.set(sum(member.feed is None for member in self._members.values()))

    def _pay(self) -> None:
        for meeting in self._meetings.values():
            if meeting.debts:

                def settled(debt: Recent, members: Members = meeting.members) -> Settled:
                    speaker = members.get(debt.utterance.participant)
                    return (lambda _: None) if speaker is None else self._settled(speaker, debt.utterance.id)

                self._publisher.pay(meeting, settled)

    # ------------------------------------------------------------ restarts

    def kept(self) -> tuple[KeptSession, ...]:
        """What another process needs to let every session go on."""
        return tuple(
            KeptSession(
                session=member.session,
                participant=member.participant,
                meeting=member.meeting.id,
                private=member.meeting.private,
                name=member.name,
                speaks=member.speaks,
                reads=member.reads,
                stability=member.stability,
                originals=member.originals,
                since=member.since,
                stopped=member.stopped,
                left_s=self._left_s(member),
            )
            for member in self._members.values()
        )

    def _left_s(self, member: Member) -> float:
        if member in self._restored:
            return self._restored[member]
        away_s = 0.0 if member.away_since_s is None else self._clock() - member.away_since_s
        return max(0.0, self._limits.keep_s - away_s)

    async def restore(self, earlier: Handover) -> None:
        """Keep the sessions of an earlier process, whose meetings are in the log already.

        Raises `LogUnavailable`.
        """
        for unfinished in filter(_is_unfinished, earlier.meetings):
            self._entered(await self._enter(unfinished.meeting, private=False))
        for kept in earlier.sessions:
            meeting = await self._enter(kept.meeting, private=kept.private)
            meeting.private = kept.private
            state = Session(self._limits)
            state.participant = kept.participant
            for recent in await meeting.said_by(kept.participant):
                missing = bool(recent.missing())
                failed = not missing and not all(recent.ended.values())
                state.recall(recent.utterance, failed=failed, in_flight=missing)
            member = Member(
                meeting=meeting,
                session=kept.session,
                participant=kept.participant,
                name=kept.name,
                speaks=kept.speaks,
                reads=kept.reads,
                stability=kept.stability,
                originals=kept.originals,
                since=kept.since,
                stopped=dict(kept.stopped),
                state=state,
            )
            self._members[member.session] = member
            self._restored[member] = min(kept.left_s, self._limits.keep_s)
            meeting.join(member, self._limits.participants_shown)
            self._entered(meeting)

    # ------------------------------------------------------------ details

    async def _begin(self, join: Join, state: Session, outbox: Outbox, finish: Finish) -> Entry:
        meeting = await self._enter(join.meeting or secrets.token_hex(8), private=join.meeting is None)
        try:
            self._check_languages(meeting, None, join.reads)
            after = await meeting.newcomers_position()
            self._make_room()
            participant = secrets.token_hex(4)
            member = Member(
                meeting=meeting,
                session=secrets.token_hex(16),
                participant=participant,
                name=join.name,
                speaks=join.speaks,
                reads=join.reads,
                stability=join.stability,
                originals=join.originals,
                state=state,
                finish=finish,
            )
            state.participant = participant
            member.since = after + 1
            member.feed = feed = Feed(outbox, after, participant=participant, wants=member.wants)
            self._members[member.session] = member
            meeting.join(member, self._limits.participants_shown)
        finally:
            self._entered(meeting)
        metrics.SESSIONS.inc()
        metrics.SESSIONS_STARTED.inc()
        _log.info("session %s… started", participant)
        self._publisher.fill(meeting, member.reads)
        return Entry(member, feed, None if join.resume is None else False)

    def _go_on(
        self,
        member: Member,
        join: Join,
        state: Session,
        outbox: Outbox,
        finish: Finish,
        after: int,
        *,
        recovered: bool,
    ) -> Entry:
        meeting = member.meeting
        if member.finish is not None:
            member.finish(CloseCode.REPLACED, SessionReplaced("Another connection goes on with this session."))
        else:
            metrics.SESSIONS.inc()
        state.inherit(member.state)
        # What is still on its way over the earlier connection is not this session's any more.
        member.state.disconnected()
        self._restored.pop(member, None)
        state.participant = member.participant
        member.state, member.finish, member.away_since_s = state, finish, None
        member.feed = feed = Feed(outbox, after, participant=member.participant, wants=member.wants)
        meeting.update(
            member,
            name=join.name,
            speaks=join.speaks,
            reads=join.reads,
            stability=join.stability,
            originals=join.originals,
        )
        if not recovered:
            meeting.begin_anew(member, after + 1)
        metrics.SESSIONS_RESUMED.labels("recovered" if recovered else "lost").inc()
        _log.info("session %s… goes on", member.participant)
        self._publisher.fill(meeting, member.reads)
        return Entry(member, feed, recovered)

    def _settled(self, member: Member, utterance: str) -> Settled:
        # By then the member may be away, or here with another connection, whose state took over.
        return lambda failed: self._carry_out(member, member.state.settled(utterance, failed=failed))

    def _carry_out(self, member: Member, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Close) and member.finish is not None:
                member.finish(effect.code, None)

    def _check_languages(self, meeting: Meeting, member: Member | None, reads: tuple[str, ...]) -> None:
        """Raises `LimitExceeded`: each language of a meeting is a translation of everything that is said."""
        others = meeting.languages(but=member)
        if len({*others, *reads}) > max(self._limits.meeting_languages, len(others)):
            raise LimitExceeded(
                f"{len(others)} languages are read in this meeting already; the limit meeting_languages is "
                f"{self._limits.meeting_languages}.",
                field="reads",
            )

    async def _enter(self, meeting_id: str, *, private: bool) -> Meeting:
        """The meeting, open; call `_entered` once somebody is in it."""
        meeting = self._meetings.get(meeting_id)
        if meeting is None:
            meeting = Meeting(meeting_id, self._event_log, private=private, snapshot=self._snapshot)
            self._meetings[meeting_id] = meeting
        self._entering[meeting] = self._entering.get(meeting, 0) + 1
        try:
            await meeting.open()
        except BaseException:
            self._entered(meeting)
            raise
        return meeting

    def _entered(self, meeting: Meeting) -> None:
        self._entering[meeting] -= 1
        if not self._entering[meeting]:
            del self._entering[meeting]

    def _make_room(self) -> None:
        if len(self._members) < self._max_sessions:
            return
        away = [member for member in self._members.values() if member.away_since_s is not None]
        if not away:
            raise TooManySessions(f"This gateway holds {self._max_sessions} sessions already.")
        self.end(min(away, key=lambda member: member.away_since_s or 0.0))


def _is_unfinished(meeting: KeptMeeting) -> bool:
    """Whether something that was accepted has no outcome in some language."""
    recent = RecentUtterances(0)
    for publication in meeting.publications:
        recent.note(publication)
    return bool(recent.unfinished())

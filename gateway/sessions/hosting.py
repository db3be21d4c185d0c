"""What a host may do in a meeting: end it for everyone, remove or mute a participant, lock it, name it.

Knows: how each is made to hold at every gateway. Must not know: who is a host (`sessions.grants`), sockets, the
order of messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import asdict

from gateway.domain.errors import InvalidValue, LogUnavailable
from gateway.domain.grants import LEEWAY_S, Grant, Revocation, meeting_name, tenant_of
from gateway.domain.log import Title
from gateway.domain.ports import EventLog, SessionStore
from gateway.domain.session_store import StoredSession, ends
from gateway.meeting.outbox import Payload
from gateway.protocol.checks import one_line
from gateway.protocol.messages import MeetingLocked, MeetingTitled, ParticipantUpdated, ServerMessage
from gateway.sessions.local_session import LocalSession
from gateway.sessions.local_sessions import LocalSessions


class Hosting:
    def __init__(
        self,
        session_store: SessionStore,
        log: EventLog,
        local: LocalSessions,
        # Raises `RateLimited` if a revocation would be one too many.
        check_room: Callable[[Revocation], None],
        # Ends the sessions of this gateway that a revocation means.
        end_here: Callable[[Revocation], None],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._session_store = session_store
        self._log = log
        self._local = local
        self._check_room = check_room
        self._end_here = end_here
        self._tasks = tasks

    async def carry_through(self, work: Coroutine[Any, Any, None]) -> None:
        """Also if the caller is cancelled: the connection of a host who ends the meeting may close first."""

        async def outcome() -> Exception | None:
            try:
                await work
            except Exception as error:  # a task that raised would end all the others
                return error
            return None

        if (error := await asyncio.shield(self._tasks.create_task(outcome()))) is not None:
            raise error

    async def end_meeting(self, host: LocalSession) -> None:
        """End the meeting for everyone, at every gateway.

        Raises `RateLimited` or `LogUnavailable`; then nothing has changed.
        """
        stored = await self._session_store.sessions(host.room.id)
        # Also tokens of those who have not come yet, from an issuer whose clock is ahead of ours.
        before_s = 0.0 if host.grant.is_open else time.time() + LEEWAY_S
        await self._revoke(_revocation(host, before_s), stored)

    async def remove(self, host: LocalSession, participant: str) -> None:
        """Another participant leaves the meeting, and does not come back with the same token.

        Their other sessions in the meeting end as well. Raises `InvalidValue` if they are not there, `RateLimited`
        or `LogUnavailable`; then nothing has changed.
        """
        stored = await self._session_store.sessions(host.room.id)
        grant, _ = self._find(host.room.id, participant, stored)
        # Without tokens, or with a key for every meeting, there is nothing to refuse later. A host's own tokens
        # stay valid.
        if grant.is_open or grant.any_meeting or grant.subject == host.grant.subject:
            await self._revoke(_revocation(host, 0.0, subject="", participant=participant), stored)
            return
        # By their subject, as a new token may have been issued since.
        before_s = max(time.time(), grant.issued_s)
        await self._revoke(_revocation(host, before_s, grant.subject, participant), stored)

    async def mute(self, host: LocalSession, participant: str, muted: bool) -> None:
        """What a participant says is refused until that is undone, in all their sessions, or is taken again.

        Raises `InvalidValue` if they are not there, `LimitExceeded` or `LogUnavailable`; then nothing has changed.
        """
        meeting = host.room.id
        _, person = self._find(meeting, participant, await self._session_store.sessions(meeting))
        # If this changes nothing, nobody is told: the host is, as it waits for an answer.
        before = host.room.presence.seen(participant)
        # Another session of the host's own is muted alone.
        is_alone = person in ("", host.member.person)
        if not muted and not is_alone:
            await self._session_store.mute(meeting, participant, False)
        await self._session_store.mute(meeting, participant if is_alone else person, muted)
        if before is not None and (before.muted is True) == muted:
            _answer(host, ParticipantUpdated(**asdict(before)))

    async def lock(self, host: LocalSession, locked: bool) -> None:
        """Let nobody else in but hosts, or let them in again; everybody is told. Raises `LogUnavailable`."""
        # If this changes nothing, nobody is told: the host is, as it waits for an answer.
        is_so = host.room.presence.is_locked == locked
        await self._session_store.lock(host.room.id, locked)
        if is_so:
            _answer(host, MeetingLocked(locked))

    async def entitle(self, host: LocalSession, text: str) -> None:
        """The meeting is called so, empty: in no way; everybody is told. Raises `LogUnavailable`."""
        room = host.room
        title = Title(text, one_line(host.member.name) if text else "")
        if title == room.title:
            _answer(host, MeetingTitled(title.text, title.held_by))
        await self._log.entitle(room.id, title)
        await self._session_store.entitle(room.id, title)
        room.entitle(title)

    async def begin_with(self, session: LocalSession, text: str) -> None:
        """A session has begun that names its meeting, as a host or as the first one may. Never raises."""
        room = session.room
        is_first = room.presence.is_alone(session.member) and room.offset == 0
        if text and not room.title.text and not room.has_set_title and (session.grant.is_host or is_first):
            with suppress(LogUnavailable):
                await self.entitle(session, text)

    def _find(self, meeting: str, participant: str, stored: Sequence[StoredSession]) -> tuple[Grant, str]:
        """The grant of a participant, and who it is, as `grants.person_of`. Raises `InvalidValue` if nobody is."""
        for session in self._local.all:  # what the store knows of them may be older
            if session.room.id == meeting and session.member.participant == participant:
                return session.grant, session.member.person
        for each in stored:
            if each.record.participant == participant:
                return each.record.grant, each.record.person
        raise InvalidValue("There is no such participant in this meeting.", field="participant")

    async def _revoke(self, revocation: Revocation, stored: Sequence[StoredSession]) -> None:
        """stored: the sessions in the meeting, as they were before."""
        self._check_room(revocation)
        # The store first: if other gateways cannot be told, the host gets the error and may ask again.
        await self._session_store.revoke(revocation)
        self._end_here(revocation)
        # Those that are away may have no gateway any more that ends them. The connected ones are told why by their
        # gateway, so they must not end before.
        for each in stored:
            if each.away and ends(revocation, each.record) and not self._local.writes.is_ending(each.key):
                self._local.writes.end(each.key, each.fence)


def _answer(host: LocalSession, message: ServerMessage) -> None:
    if host.member.feed is not None:
        host.member.feed.send_now(Payload(message))


def _revocation(
    host: LocalSession, before_s: float, subject: str | None = None, participant: str | None = None
) -> Revocation:
    return Revocation(
        tenant=tenant_of(host.room.id),
        before_s=before_s,
        meeting=meeting_name(host.room.id),
        subject=subject,
        by_operator=True,
        participant=participant,
        by_host=True,
    )

"""What a host may do in a meeting: end it for everyone, remove a participant, lock it.

Knows: how each is made to hold at every gateway. Must not know: who is a host (`sessions.grants`), sockets, the
order of messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from gateway.domain.errors import InvalidValue, LogUnavailable
from gateway.domain.grants import Revocation, meeting_name, tenant_of
from gateway.domain.ports import SessionStore
from gateway.domain.sessions import SessionRecord
from gateway.sessions.local_session import LocalSession
from gateway.sessions.local_sessions import LocalSessions


class Hosting:
    def __init__(
        self,
        session_store: SessionStore,
        local: LocalSessions,
        # Ends the sessions of this gateway that a revocation means.
        end_here: Callable[[Revocation], None],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._session_store = session_store
        self._local = local
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
        """End the meeting for everyone, at every gateway. Raises `LogUnavailable`; then nothing has changed."""
        await self._revoke(_revocation(host))

    async def remove(self, host: LocalSession, participant: str) -> None:
        """A participant leaves the meeting, and does not come back with the same token.

        Raises `InvalidValue` if they are not there, or `LogUnavailable`; then nothing has changed.
        """
        others = host.room.presence.participants(but=host.member.participant)
        if participant not in {each.participant for each in others}:
            raise _absent()
        if (record := await self._record(host.room.id, participant)) is None:
            raise _absent()
        # By their subject, as a new token may have been issued since.
        await self._revoke(_revocation(host, record.grant.subject, participant))

    async def lock(self, host: LocalSession, locked: bool) -> None:
        """Let nobody else in but hosts, or let them in again. Raises `LogUnavailable`."""
        await self._session_store.lock(host.room.id, locked)

    async def is_locked(self, session: LocalSession) -> bool:
        """Never raises: without an answer of the store it is taken for open."""
        with suppress(LogUnavailable):
            return await self._session_store.is_locked(session.room.id)
        return False

    async def _record(self, meeting: str, participant: str) -> SessionRecord | None:
        for session in self._local.all:
            if session.room.id == meeting and session.member.participant == participant:
                return session.record()
        for each in await self._session_store.sessions():
            if each.record.meeting == meeting and each.record.participant == participant:
                return each.record
        return None

    async def _revoke(self, revocation: Revocation) -> None:
        # The store first: where other gateways cannot be told, the host is, and asks again.
        await self._session_store.revoke(revocation)
        self._end_here(revocation)


def _revocation(host: LocalSession, subject: str | None = None, participant: str | None = None) -> Revocation:
    return Revocation(
        tenant=tenant_of(host.room.id),
        # Where there are no tokens, none is to be refused later.
        before_s=0.0 if host.grant.is_open else time.time(),
        meeting=meeting_name(host.room.id),
        subject=subject,
        by_operator=True,
        participant=participant,
        by_host=True,
    )


def _absent() -> InvalidValue:
    return InvalidValue("There is no such participant in this meeting.", field="participant")

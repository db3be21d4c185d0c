"""Meetings and sessions over all gateways of a store: to see them, to end them, to erase what was said.

Knows: the log, the session store, who is meant. Must not know: sockets, processes, which gateway has a session.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from http import HTTPStatus

from msgspec import Struct
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.domain.errors import UnknownMeeting
from gateway.domain.grants import Revocation, meeting_key, meeting_name, tenant_of
from gateway.domain.log import LoggedMeeting
from gateway.domain.ports import EventLog, SessionStore
from gateway.domain.roles import NAME
from gateway.domain.session_store import StoredSession
from gateway.server.administration.operators import Operators, note
from gateway.server.http.responses import Resource, StatusError, json_response
from gateway.server.http.transcripts import erase


class Meeting(Struct, frozen=True, kw_only=True):
    """A meeting that somebody is in, or of which something is kept."""

    tenant: str
    meeting: str
    # Whether it is of one participant, who named no meeting.
    private: bool
    # Sessions with a connection, and those that can be resumed.
    connected: int
    away: int
    # Utterances and translations that are kept, and their estimated bytes.
    publications: int
    bytes: int
    # When the newest publication was appended. None: nothing is kept.
    newest_at: datetime | None


class MeetingsAnswer(Struct, frozen=True):
    meetings: list[Meeting]


class Session(Struct, frozen=True, kw_only=True):
    """A participant in a meeting."""

    tenant: str
    meeting: str
    participant: str
    name: str
    speaks: str | None
    reads: tuple[str, ...]
    # Whether it has no connection now.
    away: bool
    # Subject of the token, in its issuer's words. None where sessions need no token.
    sub: str | None


class SessionsAnswer(Struct, frozen=True):
    sessions: list[Session]


class EndedAnswer(Struct, frozen=True):
    sessions: int


class ErasedAnswer(Struct, frozen=True):
    """Whether anything was kept."""

    erased: bool


_ONE = "/admin/meetings/{tenant}/{meeting}"


def routes(
    operators: Operators,
    log: EventLog,
    session_store: SessionStore,
    revoke: Callable[[Revocation], Awaitable[int]],
) -> list[BaseRoute]:
    """revoke: ends the sessions that it means, at every gateway, and returns how many."""
    meetings = _Meetings(log, session_store, revoke)
    only = operators.only
    return [
        Route("/admin/meetings", Resource(GET=only(meetings.all))),
        Route("/admin/sessions", Resource(GET=only(meetings.sessions))),
        Route(_ONE, Resource(GET=only(meetings.one), DELETE=only(meetings.end))),
        Route(f"{_ONE}/participants/{{participant}}", Resource(DELETE=only(meetings.disconnect))),
        Route(f"{_ONE}/transcript", Resource(DELETE=only(meetings.erase))),
    ]


class _Meetings(Struct, frozen=True):
    log: EventLog
    session_store: SessionStore
    revoke: Callable[[Revocation], Awaitable[int]]

    async def all(self, request: Request) -> ASGIApp:
        found = _meetings(await self.session_store.sessions(), await self.log.meetings())
        tenant = request.query_params.get("tenant")
        return json_response(MeetingsAnswer([each for each in found if tenant in (None, each.tenant)]))

    async def sessions(self, request: Request) -> ASGIApp:
        tenant = request.query_params.get("tenant")
        found = [_session(each) for each in await self.session_store.sessions()]
        return json_response(SessionsAnswer([each for each in found if tenant in (None, each.tenant)]))

    async def one(self, request: Request) -> ASGIApp:
        tenant, meeting = _named(request)
        return json_response(SessionsAnswer([_session(each) for each in await self._in(tenant, meeting)]))

    async def end(self, request: Request) -> ASGIApp:
        tenant, meeting = _named(request)
        ended = await self.revoke(_revocation(tenant, meeting))
        note(request, "meeting ended", tenant=tenant, meeting=meeting, sessions=ended)
        return json_response(EndedAnswer(ended))

    async def disconnect(self, request: Request) -> ASGIApp:
        tenant, meeting = _named(request)
        participant = request.path_params["participant"]
        meant = [each.record for each in await self._in(tenant, meeting) if each.record.participant == participant]
        if not meant:
            raise StatusError(HTTPStatus.NOT_FOUND, "There is no such participant in this meeting.")
        # Their token is not valid any more either: by their subject, as a new one may have been issued since.
        subject = meant[0].grant.subject
        ended = await self.revoke(_revocation(tenant, meeting, subject=subject, participant=participant))
        note(request, "participant removed", tenant=tenant, meeting=meeting, participant=participant)
        return json_response(EndedAnswer(ended))

    async def erase(self, request: Request) -> ASGIApp:
        tenant, meeting = _named(request)
        erased = await erase(self.log, self.session_store, meeting_key(tenant, meeting))
        note(request, "transcript erased", tenant=tenant, meeting=meeting, there_was_one=erased)
        return json_response(ErasedAnswer(erased))

    async def _in(self, tenant: str, meeting: str) -> tuple[StoredSession, ...]:
        return await self.session_store.sessions(meeting_key(tenant, meeting))


def _revocation(
    tenant: str, meeting: str, subject: str | None = None, participant: str | None = None
) -> Revocation:
    return Revocation(
        tenant=tenant,
        before_s=time.time(),
        meeting=meeting,
        subject=subject,
        by_operator=True,
        participant=participant,
    )


def _named(request: Request) -> tuple[str, str]:
    """Tenant and meeting. Raises `UnknownMeeting` if there can be none of these names."""
    tenant, meeting = request.path_params["tenant"], request.path_params["meeting"]
    if not re.match(NAME, tenant) or not re.match(NAME, meeting):
        raise UnknownMeeting("No meeting can have this tenant and id.")
    return tenant, meeting


def _meetings(sessions: tuple[StoredSession, ...], logs: tuple[LoggedMeeting, ...]) -> list[Meeting]:
    """Those that somebody is in, and those of which something is kept, by their names."""
    connected: Counter[str] = Counter(each.record.meeting for each in sessions if not each.away)
    away: Counter[str] = Counter(each.record.meeting for each in sessions if each.away)
    private = {each.record.meeting for each in sessions if each.record.private}
    kept = {each.meeting: each for each in logs}
    found = []
    for key in {*connected, *away, *kept}:
        log = kept.get(key, LoggedMeeting(key, 0, 0))
        if log.newest_ms is None and not connected[key] and not away[key]:
            continue
        at_s = None if log.newest_ms is None else log.newest_ms / 1_000
        found.append(
            Meeting(
                tenant=tenant_of(key),
                meeting=meeting_name(key),
                private=key in private,
                connected=connected[key],
                away=away[key],
                publications=log.publications,
                bytes=log.bytes,
                newest_at=None if at_s is None else datetime.fromtimestamp(at_s, UTC),
            )
        )
    return sorted(found, key=lambda each: (each.tenant, each.meeting))


def _session(registered: StoredSession) -> Session:
    record = registered.record
    return Session(
        tenant=tenant_of(record.meeting),
        meeting=meeting_name(record.meeting),
        participant=record.participant,
        name=record.name,
        speaks=record.speaks,
        reads=record.reads,
        away=registered.away,
        sub=record.grant.subject or None,
    )

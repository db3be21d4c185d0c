"""`POST /v1/tokens`, `POST /v1/revocations`: tokens and invites for backends, tokens for guests, and their end.

Knows: who may ask for what. Must not know: how tokens are signed and verified, what a session does with them.
"""

from __future__ import annotations

import time
from http import HTTPStatus

from msgspec.structs import replace
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.domain.errors import Forbidden
from gateway.domain.ports import Issuer
from gateway.server.guard.audit import Attempt, Audit
from gateway.server.guard.identity import Identity
from gateway.server.http.request_bodies import decoded, read_json
from gateway.server.http.responses import Resource, StatusError, json_response
from gateway.server.http.token_bodies import (
    REVOCATION,
    TOKEN,
    InviteAnswer,
    RevocationAnswer,
    TokenAnswer,
    check_guest,
)
from gateway.sessions.grants import check_role
from gateway.sessions.sessions import Sessions

_BODY_BYTES = 16_384


def routes(sessions: Sessions, identity: Identity, issuer: Issuer | None, audit: Audit) -> list[BaseRoute]:
    """issuer: None where nobody needs a token."""
    tokens = _Tokens(sessions, identity, issuer, audit)
    return [
        Route("/v1/tokens", Resource(POST=tokens.issue)),
        Route("/v1/revocations", Resource(POST=tokens.revoke)),
    ]


class _Tokens:
    def __init__(self, sessions: Sessions, identity: Identity, issuer: Issuer | None, audit: Audit) -> None:
        self._sessions = sessions
        self._identity = identity
        self._issuer = issuer
        self._audit = audit

    async def issue(self, request: Request) -> ASGIApp:
        issuer = self._needed()
        body = decoded(TOKEN, await read_json(request, _BODY_BYTES))
        if isinstance(body.invite, str):
            check_guest(body.guest)
            with self._audit.attempt("exchange", request) as attempt:
                return json_response(await self._admit(issuer, body.invite, body.guest, attempt))
        with self._audit.attempt("invite" if body.invite else "token", request) as attempt:
            attempt.grant = asking = await self._identity.of(request)
            attempt.meeting = body.meeting
            if not asking.any_meeting:
                raise Forbidden("Tokens are issued to whoever has an API key of the tenant.")
            issued = issuer.issue(body.grant(asking.tenant), for_s=body.valid_s, invite=body.invite)
            attempt.grant, attempt.detail = issued.grant, asking.subject
        return json_response(InviteAnswer.of(issued) if body.invite else TokenAnswer.of(issued))

    async def _admit(self, issuer: Issuer, invite: str, guest: str, attempt: Attempt) -> TokenAnswer:
        attempt.grant = invited = await issuer.invited(invite)
        attempt.meeting = invited.meeting
        issued = issuer.admit(invited, guest)
        # Revoked, or for one guest only and another's: as if it were no invite.
        await self._sessions.use(invited, issued.grant.subject)
        # A guest who was thrown out: what they had was not issued later than the invite.
        self._sessions.lifetimes.spent.check(replace(issued.grant, issued_s=invited.issued_s))
        attempt.grant, attempt.detail = issued.grant, invited.token_id
        return TokenAnswer.of(issued, invited=invited)

    async def revoke(self, request: Request) -> ASGIApp:
        self._needed()
        with self._audit.attempt("revoke", request) as attempt:
            attempt.grant = asking = await self._identity.of(request)
            check_role(asking, "admin")
            body = decoded(REVOCATION, await read_json(request, _BODY_BYTES))
            revocation = body.revocation(asking.tenant, time.time())
            attempt.meeting = revocation.meeting
            meant = {"jti": revocation.token_id, "sub": revocation.subject}
            attempt.detail = " ".join(f"{name} {value}" for name, value in meant.items() if value) or "all"
            if not asking.any_meeting and (asking.meeting is None or revocation.meeting != asking.meeting):
                raise Forbidden("The token is for another meeting.", field="meeting")
            return json_response(RevocationAnswer(await self._sessions.revoke(revocation)))

    def _needed(self) -> Issuer:
        if self._issuer is None:
            raise StatusError(HTTPStatus.NOT_FOUND, "Nobody needs a token here: this gateway has no keys.")
        return self._issuer

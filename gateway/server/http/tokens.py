"""`POST /v1/tokens`, `POST /v1/revocations`: tokens and invites for backends, tokens for guests, and their end.

Knows: who may ask for what, bodies and their bounds; a part of `/openapi.json` is generated from these.
Must not know: how tokens are signed and verified, what a session does with them.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.domain.errors import Forbidden, InvalidValue
from gateway.domain.grants import Grant, Issued, Revocation
from gateway.domain.languages import normalised
from gateway.domain.ports import Issuer
from gateway.domain.roles import NAME_CHARS, SHOWN_NAME_CHARS, Role
from gateway.protocol.checks import MEETING_ID, check_language_tag, is_meeting_id
from gateway.protocol.fields import Lang
from gateway.server.guard.audit import Attempt, Audit
from gateway.server.guard.identity import Identity
from gateway.server.http.request_bodies import decoded, read_json
from gateway.server.http.responses import Resource, StatusError, json_response
from gateway.sessions.grants import check_role
from gateway.sessions.sessions import Sessions

# Seconds that an invite and a token are valid if nothing is said.
_INVITE_S = 86_400
_TOKEN_S = 600

_GUEST_CHARS = 16

_Id = Annotated[str, Meta(min_length=1, max_length=128)]


class TokenBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a token or an invite is to allow; or an invite and a guest, to get a token for."""

    invite: Annotated[
        bool | str, Meta(description="`true`: issue an invite instead of a token. An invite: get a token for it.")
    ] = False
    guest: Annotated[
        str,
        Meta(
            max_length=128,
            description="With an invite: a random secret that a guest keeps, 16 characters or more.",
        ),
    ] = ""
    sub: Annotated[_Id, Meta(description="Who it is for, in your own words.")] | None = None
    meeting: (
        Annotated[
            str,
            Meta(
                max_length=NAME_CHARS,
                description="The one meeting; null: only private ones.",
                extra_json_schema={"pattern": f"^{MEETING_ID}$"},
            ),
        ]
        | None
    ) = None
    roles: Annotated[tuple[Role, ...], Meta(description="What it allows.")] = ("speak", "read")
    langs: Annotated[list[Lang], Meta(description="Languages that may be read; null: all.")] | None = None
    speaks: Annotated[list[Lang], Meta(description="Languages that may be spoken; null: all.")] | None = None
    name: (
        Annotated[str, Meta(max_length=SHOWN_NAME_CHARS, description="The participant's name; null: they choose.")]
        | None
    ) = None
    max_s: (
        Annotated[int, Meta(ge=1, le=86_400, description="Seconds a session may last; null: until it expires.")]
        | None
    ) = None
    once: Annotated[bool, Meta(description="It opens one session, or an invite is for one guest.")] = False
    record: (
        Annotated[
            bool, Meta(description="Whether its meetings have to be recorded, or must not be; null: neither.")
        ]
        | None
    ) = None
    expires_s: (
        Annotated[int, Meta(ge=1, description="Seconds it is valid: a token 600 at most, an invite 604800.")]
        | None
    ) = None

    @property
    def valid_s(self) -> int:
        return self.expires_s or (_INVITE_S if self.invite else _TOKEN_S)

    def grant(self, tenant: str) -> Grant:
        """What it is to allow, for a tenant. Raises `InvalidValue`."""
        if self.meeting is not None and not is_meeting_id(self.meeting):
            raise InvalidValue(
                "A meeting id has only letters, digits and . _ ~ -, and not only dots.", field="meeting"
            )
        if self.sub is None and not self.invite:
            raise InvalidValue("A token needs to say who it is for.", field="sub")
        for field, tags in (("langs", self.langs), ("speaks", self.speaks)):
            for n, tag in enumerate(tags or ()):
                check_language_tag(tag, f"{field}[{n}]")
        return Grant(
            tenant=tenant,
            subject=self.sub or "guests",
            roles=frozenset(self.roles),
            meeting=self.meeting,
            langs=normalised(self.langs),
            speaks=normalised(self.speaks),
            name=self.name,
            max_s=self.max_s,
            once=self.once,
            record=self.record,
        )


class TokenAnswer(Struct, frozen=True):
    """A token, and what it allows."""

    token: str
    expires_at: datetime
    expires_in_s: int
    meeting: str | None
    roles: list[Role]
    name: str | None
    langs: Annotated[list[str] | None, Meta(description="Languages that may be read; null: all.")]
    speaks: Annotated[list[str] | None, Meta(description="Languages that may be spoken; null: all.")]
    once: Annotated[bool, Meta(description="It opens one session, or the invite was for one guest.")]
    record: Annotated[
        bool | None, Meta(description="Whether its meetings have to be recorded, or must not be; null: neither.")
    ] = None

    @classmethod
    def from_issued(cls, issued: Issued, *, invited: Grant | None = None) -> TokenAnswer:
        """invited: what the invite allows that the token was issued for."""
        grant = issued.grant
        expires_s = grant.expires_s or 0.0
        return cls(
            token=issued.token,
            expires_at=datetime.fromtimestamp(expires_s, UTC),
            expires_in_s=round(expires_s - grant.issued_s),
            meeting=grant.meeting,
            roles=sorted(grant.roles),
            name=grant.name,
            langs=_listed(grant.langs),
            speaks=_listed(grant.speaks),
            # The token of an invite's only guest opens sessions again.
            once=(invited or grant).once,
            record=grant.record,
        )


class InviteAnswer(Struct, frozen=True):
    """An invite. A link to the page with `#` and the fragment lets people in."""

    invite: str
    expires_at: datetime
    fragment: str

    @classmethod
    def from_issued(cls, issued: Issued) -> InviteAnswer:
        expires_at = datetime.fromtimestamp(issued.grant.expires_s or 0.0, UTC)
        return cls(issued.token, expires_at, f"invite={issued.token}")


class RevocationBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tokens and invites, issued until now, are not valid any more: those that match all that is given."""

    jti: Annotated[_Id, Meta(description="Id of a token or an invite.")] | None = None
    sub: Annotated[_Id, Meta(description="Whose.")] | None = None
    meeting: Annotated[_Id, Meta(description="For which meeting.")] | None = None
    all: Annotated[bool, Meta(description="Everything of the tenant.")] = False

    def revocation(self, tenant: str, now_s: float) -> Revocation:
        """Raises `InvalidValue`."""
        if self.all == any((self.jti, self.sub, self.meeting)):
            raise InvalidValue(
                "Give jti, sub or meeting; or all alone, for everything of the tenant.", field="all"
            )
        return Revocation(tenant=tenant, before_s=now_s, token_id=self.jti, subject=self.sub, meeting=self.meeting)


class RevocationAnswer(Struct, frozen=True):
    """How many sessions end by it, connected or kept, at all gateways."""

    sessions: int


def _check_guest(guest: str) -> None:
    """Raises `InvalidValue`."""
    if len(guest) < _GUEST_CHARS:
        raise InvalidValue(f"A guest's secret has at least {_GUEST_CHARS} characters.", field="guest")


def _listed(langs: Collection[str] | None) -> list[str] | None:
    return None if langs is None else sorted(langs)


TOKEN = msgspec.json.Decoder(TokenBody)
REVOCATION = msgspec.json.Decoder(RevocationBody)


_BODY_BYTES = 16_384


def routes(sessions: Sessions, identity: Identity, issuer: Issuer | None, audit: Audit) -> list[BaseRoute]:
    """issuer: None where nobody needs a token."""
    tokens = _Tokens(sessions, identity, issuer, audit)
    return [
        Route("/v1/tokens", Resource(POST=tokens.issue)),
        Route("/v1/revocations", Resource(POST=tokens.revoke)),
    ]


class _Tokens(Struct, frozen=True):
    sessions: Sessions
    identity: Identity
    issuer: Issuer | None
    audit: Audit

    async def issue(self, request: Request) -> ASGIApp:
        issuer = self._needed()
        body = decoded(TOKEN, await read_json(request, _BODY_BYTES))
        if isinstance(body.invite, str):
            _check_guest(body.guest)
            with self.audit.attempt("exchange", request) as attempt:
                return json_response(await self._admit(issuer, body.invite, body.guest, attempt))
        with self.audit.attempt("invite" if body.invite else "token", request) as attempt:
            attempt.grant = asking = await self.identity.grant_of(request)
            attempt.meeting = body.meeting
            if not asking.any_meeting:
                raise Forbidden("Tokens are issued to whoever has an API key of the tenant.")
            issued = issuer.issue(body.grant(asking.tenant), for_s=body.valid_s, invite=body.invite)
            attempt.grant, attempt.detail = issued.grant, asking.subject
        return json_response(InviteAnswer.from_issued(issued) if body.invite else TokenAnswer.from_issued(issued))

    async def _admit(self, issuer: Issuer, invite: str, guest: str, attempt: Attempt) -> TokenAnswer:
        attempt.grant = invited = await issuer.invited(invite)
        attempt.meeting = invited.meeting
        issued = issuer.admit(invited, guest)
        # Revoked, or for one guest only and another's: as if it were no invite.
        await self.sessions.use(invited, issued.grant.subject)
        # A guest who was thrown out: what they had was not issued later than the invite.
        self.sessions.lifetimes.revocations.check(replace(issued.grant, issued_s=invited.issued_s))
        attempt.grant, attempt.detail = issued.grant, invited.token_id
        return TokenAnswer.from_issued(issued, invited=invited)

    async def revoke(self, request: Request) -> ASGIApp:
        self._needed()
        with self.audit.attempt("revoke", request) as attempt:
            attempt.grant = asking = await self.identity.grant_of(request)
            check_role(asking, "admin")
            body = decoded(REVOCATION, await read_json(request, _BODY_BYTES))
            revocation = body.revocation(asking.tenant, time.time())
            attempt.meeting = revocation.meeting
            meant = {"jti": revocation.token_id, "sub": revocation.subject}
            attempt.detail = " ".join(f"{name} {value}" for name, value in meant.items() if value) or "all"
            if not asking.any_meeting and (asking.meeting is None or revocation.meeting != asking.meeting):
                raise Forbidden("The token is for another meeting.", field="meeting")
            return json_response(RevocationAnswer(await self.sessions.revoke(revocation)))

    def _needed(self) -> Issuer:
        if self.issuer is None:
            raise StatusError(HTTPStatus.NOT_FOUND, "Nobody needs a token here: this gateway has no keys.")
        return self.issuer

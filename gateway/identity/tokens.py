"""Tokens: JSON Web Tokens (RFC 7519) with what they allow in one claim, `gw`. Writes and verifies them.

Knows: every rule of a token, and how a key is used. Must not know: where keys come from, who asks, what was
revoked.

Everything that is wrong with a token is one and the same `Unauthenticated` for its bearer; `why` is for the log.
The algorithm belongs to the key, not to the token; addresses of keys in a token (`jku`, `x5u`) and keys in it
(`jwk`, `x5c`) are refused.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import jwt
import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.domain.errors import Unauthenticated
from gateway.domain.grants import LEEWAY_S, Grant
from gateway.domain.languages import normalised
from gateway.domain.roles import NAME, SHOWN_NAME_CHARS, Role

TOKEN_BYTES = 8_192
# The first part is read before it is known who has signed it.
_HEAD_CHARS = 2_048
# From `iat` to `exp`.
TOKEN_MAX_S = 600
INVITE_MAX_S = 7 * 86_400

# Nothing else than letters of base64url: with padding or white space, one token could be written in many ways.
_FORM = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_REFUSED_HEADERS = {"jku", "x5u", "jwk", "x5c", "crit", "b64", "zip"}
_TYPES = {"jwt", "at+jwt"}

_Name = Annotated[str, Meta(pattern=NAME)]
_Text = Annotated[str, Meta(min_length=1, max_length=128)]
_Lang = Annotated[str, Meta(min_length=2, max_length=32)]
_Time = Annotated[int, Meta(ge=0, le=2**40)] | Annotated[float, Meta(ge=0, le=2**40)]
_Algorithm = Literal["HS256", "RS256", "ES256", "EdDSA"]


class Key(Struct, frozen=True):
    """A key that tokens are verified with, for one algorithm and one issuer."""

    kid: str
    algorithm: _Algorithm
    # What PyJWT takes: the secret's bytes, or a public key.
    material: Any
    # The only `iss` of its tokens.
    issuer: str
    # The only tenant of its tokens; None: any.
    tenant: str | None = None

    def __repr__(self) -> str:
        return f"Key({self.kid!r}, {self.algorithm}, …)"  # the secret must not be logged


class Allowed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    tenant: _Name = "default"
    meeting: _Name | None = None
    roles: frozenset[Role] = frozenset()
    langs: frozenset[_Lang] | None = None
    speaks: frozenset[_Lang] | None = None
    name: Annotated[str, Meta(max_length=SHOWN_NAME_CHARS)] | None = None
    # Seconds.
    max_s: Annotated[int, Meta(ge=1, le=86_400)] | None = None
    once: bool = False
    # Whether the meeting has to be recorded, or must not be.
    record: bool | None = None
    # Id of the invite that the token was exchanged for.
    invite: _Text | None = None


class Claims(Struct, frozen=True, kw_only=True):
    """A token's contents. Others than these are ignored; times are in seconds since 1970."""

    iss: _Text
    aud: str | list[str]
    sub: _Text
    jti: _Text
    iat: _Time
    exp: _Time
    gw: Allowed
    nbf: _Time | UnsetType = UNSET

    @classmethod
    def of_grant(cls, grant: Grant, *, issuer: str, audience: str) -> Claims:
        """What a token says that allows this. Its times must be set. Raises `ValueError` for what none may say."""
        claims = cls(
            iss=issuer,
            aud=audience,
            sub=grant.subject,
            jti=grant.token_id,
            iat=grant.issued_s,
            exp=grant.expires_s or 0,
            gw=Allowed(
                tenant=grant.tenant,
                meeting=grant.meeting,
                roles=grant.roles,
                langs=grant.langs,
                speaks=grant.speaks,
                name=grant.name,
                max_s=None if grant.max_s is None else int(grant.max_s),
                once=grant.once,
                record=grant.record,
                invite=grant.invite_id or None,
            ),
        )
        # Constructing checks nothing, decoding does.
        return _decoded(claims)

    def grant(self) -> Grant:
        gw = self.gw
        return Grant(
            tenant=gw.tenant,
            subject=self.sub,
            token_id=self.jti,
            roles=gw.roles,
            meeting=gw.meeting,
            langs=normalised(gw.langs),
            speaks=normalised(gw.speaks),
            name=gw.name,
            issued_s=self.iat,
            expires_s=self.exp,
            max_s=gw.max_s,
            once=gw.once,
            record=gw.record,
            invite_id=gw.invite or "",
        )


def sign(claims: Claims, key: Key) -> str:
    """A token. The key's material must be able to sign. Raises `ValueError` if it would be too long."""
    payload = msgspec.to_builtins(claims, builtin_types=(), order="sorted")
    # Without `typ`, which says nothing: an invite is a part of links, and of QR codes.
    token = jwt.encode(payload, key.material, key.algorithm, headers={"kid": key.kid, "typ": None})
    if len(token) > TOKEN_BYTES:
        raise ValueError(f"it would have more than {TOKEN_BYTES} bytes")
    return token


# What PyJWT and msgspec raise → the code of the reason; the first that fits.
_WHY: tuple[tuple[type[Exception], str], ...] = (
    (jwt.InvalidSignatureError, "bad_signature"),
    (jwt.ExpiredSignatureError, "expired"),
    (jwt.ImmatureSignatureError, "not_yet_valid"),
    (jwt.InvalidAudienceError, "wrong_audience"),
    (jwt.InvalidIssuerError, "wrong_issuer"),
    (jwt.DecodeError, "malformed"),
    (jwt.InvalidTokenError, "bad_claims"),
    (msgspec.MsgspecError, "bad_claims"),
)


def verify(token: str, find: Callable[[str], Key | None], *, audience: str, most_s: float = TOKEN_MAX_S) -> Claims:
    """What a valid token says. find: the key with a `kid`. most_s: the longest life it may have, in seconds.

    Raises `Unauthenticated`.
    """
    try:
        return _verified(token, find, audience, most_s)
    # `RecursionError` for what is nested without end, `OverflowError` for numbers without end.
    except (jwt.PyJWTError, msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError) as error:
        why = next((why for kind, why in _WHY if isinstance(error, kind)), "malformed")
        raise Unauthenticated(why=why) from None


def _verified(token: str, find: Callable[[str], Key | None], audience: str, most_s: float) -> Claims:
    if len(token) > TOKEN_BYTES or not _FORM.fullmatch(token):
        raise ValueError
    head, body, _ = token.split(".")
    if len(head) > _HEAD_CHARS:
        raise ValueError
    header = _object(head)
    kid = header.get("kid")
    if not isinstance(kid, str) or not 0 < len(kid) <= 128 or header.keys() & _REFUSED_HEADERS:
        raise ValueError
    if str(header.get("typ", "JWT")).lower() not in _TYPES:
        raise ValueError
    if (key := find(kid)) is None:
        raise Unauthenticated(why="unknown_key")
    if header.get("alg") != key.algorithm:
        raise Unauthenticated(why="wrong_algorithm")
    jwt.decode(
        token,
        key.material,
        algorithms=[key.algorithm],
        audience=audience,
        issuer=key.issuer,
        leeway=LEEWAY_S,
        options={"require": ["iss", "aud", "sub", "jti", "iat", "exp", "gw"]},
    )
    # Only now: what nobody has signed is not worth the time.
    claims = _decoded(_object(body))
    if not 0 < claims.exp - claims.iat <= most_s or key.tenant not in (None, claims.gw.tenant):
        raise Unauthenticated(why="bad_claims")
    return claims


def _object(part: str) -> dict[str, Any]:
    """A part of a token. Raises `ValueError`, also for a name given twice: readers differ in which counts."""
    data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()
    found = json.loads(data, object_pairs_hook=_once_each, parse_constant=_no_number)
    if not isinstance(found, dict):
        raise TypeError
    return found


def _decoded(claims: Claims | dict[str, Any]) -> Claims:
    """Checked, by way of JSON, which unlike Python knows no halves of letters. Raises `ValueError`."""
    return msgspec.json.decode(msgspec.json.encode(claims), type=Claims)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _no_number(_: str) -> None:
    raise ValueError

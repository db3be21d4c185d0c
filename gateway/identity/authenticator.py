"""Tells who a client is by what it presents: a token or an API key. Issues tokens and invites.

Knows: all keys there are, and when the key file has changed. Must not know: sessions, HTTP, what was revoked.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import jwt
from msgspec.structs import replace

from gateway.domain.errors import Forbidden, InvalidValue, StartupError, Unauthenticated
from gateway.domain.grants import Grant, Issued
from gateway.domain.quotas import Quota
from gateway.domain.roles import ROLES
from gateway.identity import key_file
from gateway.identity.jwks import PublicKeys
from gateway.identity.key_file import API_KEY_PREFIX, KeyFile, SigningKey
from gateway.identity.tokens import INVITE_MAX_S, TOKEN_BYTES, TOKEN_MAX_S, Claims, Key, sign, verify

_log = logging.getLogger(__name__)


# The subject of a client with an API key begins so; subjects of tokens are the issuer's own words.
_API_KEY_SUBJECT = "api-key:"


class Keys:
    """`Authenticator` and `Issuer` of `domain.ports`. Raises `StartupError` if the key file cannot be used."""

    required = True

    def __init__(
        self,
        path: Path | None,
        public: PublicKeys | None = None,
        *,
        audience: str,
        # Seconds since 1970.
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._public = public
        self._audience = audience
        self._clock = clock
        # Before it is read: what changes meanwhile is read again.
        self._changed = self._stamp()
        self._file = KeyFile() if path is None else key_file.load(path)

    # ------------------------------------------------------------ who it is

    async def verify(self, presented: str) -> Grant:
        """The grant of a client that presents this. Raises `Unauthenticated`."""
        is_key = presented.startswith(API_KEY_PREFIX)
        grant = (
            self._api_key(presented) if is_key else await self._verified(presented, self._audience, TOKEN_MAX_S)
        )
        return grant if self._file.records(grant.tenant) else replace(grant, record=False)

    def stands(self, grant: Grant) -> bool:
        """Whether the key that was presented still exists; tokens have an end of their own."""
        key_id = grant.subject.removeprefix(_API_KEY_SUBJECT)
        return not grant.any_meeting or key_id == grant.subject or any(key.id == key_id for key in self._file.api)

    async def operator(self, presented: str) -> str:
        """The id of an operator's key. Raises `Unauthenticated`."""
        await self.reload()
        key = self._file.admin_key(presented) if len(presented) <= TOKEN_BYTES else None
        if key is None:
            raise Unauthenticated(
                "The administration needs an operator's key, from `gateway key admin`.", why="unknown_key"
            )
        return key.id

    @property
    def has_operators(self) -> bool:
        return bool(self._file.admin)

    def quota(self, tenant: str) -> Quota:
        return self._file.quota(tenant)

    def _api_key(self, presented: str) -> Grant:
        key = self._file.api_key(presented) if len(presented) <= TOKEN_BYTES else None
        if key is None:
            raise Unauthenticated(why="unknown_key")
        return Grant(
            tenant=key.tenant,
            subject=f"{_API_KEY_SUBJECT}{key.id}",
            token_id=f"{_API_KEY_SUBJECT}{key.id}",
            roles=ROLES,
            any_meeting=True,
            # Revoking what was issued until now does not mean the key: that is removed from the file.
            issued_s=math.inf,
        )

    async def _verified(self, token: str, audience: str, most_s: float) -> Grant:
        if self._public is not None and len(token) <= TOKEN_BYTES:
            with suppress(jwt.PyJWTError, ValueError, RecursionError):
                kid = jwt.get_unverified_header(token).get("kid")
                if isinstance(kid, str) and self._own(kid) is None:
                    await self._public.look_for(kid)
        # Here, not in a thread: it takes a tenth of a millisecond, and would wait for others' work there.
        return verify(token, self._find, audience=audience, most_s=most_s).grant()

    def _find(self, kid: str) -> Key | None:
        return self._own(kid) or (self._public.find(kid) if self._public is not None else None)

    def _own(self, kid: str) -> Key | None:
        return next((_key(key) for key in self._file.signing if key.kid == kid), None)

    # ------------------------------------------------------------ issuing

    def issue(self, grant: Grant, *, for_s: float, invite: bool = False) -> Issued:
        """Sign what `grant` says, for `for_s` seconds from now. Raises `InvalidValue` or `Forbidden`."""
        return issue(self._file, grant, for_s=for_s, invite=invite, audience=self._audience, now_s=self._clock())

    async def invited(self, invite: str) -> Grant:
        """What an invite allows those whom it invites. Raises `Unauthenticated`."""
        return await self._verified(invite, _invites(self._audience), INVITE_MAX_S)

    def admit(self, invited: Grant, guest: str) -> Issued:
        """A token for a guest with an invite. guest: the guest's secret; the same secret is the same person."""
        secret = f"{invited.token_id}\n{guest}".encode("utf-8", "surrogatepass")
        name = f"guest:{hashlib.sha256(secret).hexdigest()[:32]}"
        left_s = (invited.expires_s or 0.0) - self._clock()
        grant = replace(invited, subject=name, token_id="", invite_id=invited.token_id, once=False)
        return self.issue(grant, for_s=max(1.0, min(TOKEN_MAX_S, left_s)))

    # ------------------------------------------------------------ the key file

    async def reload(self) -> None:
        """Read the key file again if it has changed. Never raises: if that fails, all stays as it was."""
        if self._path is None or (stamp := await asyncio.to_thread(self._stamp)) == self._changed:
            return
        self._changed = stamp
        try:
            self._file = await asyncio.to_thread(key_file.load, self._path)
        except StartupError as error:
            _log.error("the keys stay as they were: %s", error.message)
        else:
            _log.info("the keys were read again from %s", self._path)

    def _stamp(self) -> tuple[int, ...]:
        if self._path is not None:
            with suppress(OSError):
                found = self._path.stat()
                # A new owner changes this time, too; the mode is compared, as the clock may be too coarse to tell.
                return (found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode)
        return ()


def issue(
    keys: KeyFile,
    grant: Grant,
    *,
    for_s: float,
    now_s: float,
    invite: bool = False,
    audience: str,
) -> Issued:
    """Sign what `grant` says, for `for_s` seconds from `now_s`, with the first key that may.

    Its token id is made here. Raises `InvalidValue` for what no token may say, `Forbidden` if no key may sign.
    """
    most_s = INVITE_MAX_S if invite else TOKEN_MAX_S
    if not 1 <= for_s <= most_s:
        raise InvalidValue(f"expires_s has to be 1 to {most_s} here.", field="expires_s")
    key = next((_key(key) for key in keys.signing if key.tenant in (None, grant.tenant)), None)
    if key is None:
        raise Forbidden("There is no key that may sign tokens of this tenant; `gateway key new` makes one.")
    # With a fraction, so that what is issued right after a revocation is valid; one that sums exactly.
    issued_s = math.floor(now_s * 65_536) / 65_536
    grant = replace(
        grant,
        token_id=secrets.token_urlsafe(9),
        issued_s=issued_s,
        expires_s=issued_s + math.floor(for_s),
    )
    for_whom = _invites(audience) if invite else audience
    try:
        return Issued(sign(Claims.of_grant(grant, issuer=key.issuer, audience=for_whom), key), grant)
    except ValueError as error:
        raise InvalidValue(f"No token may say this: {error}.") from None


def _invites(audience: str) -> str:
    return f"{audience}/invite"


def _key(key: SigningKey) -> Key:
    return Key(key.kid, "HS256", key.secret.encode(), key.issuer, key.tenant)

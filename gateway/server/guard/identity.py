"""Who asks: what the bearer of a request or a connection may do, and which account it is charged to.

Knows: the Authorization header, forms of addresses, whether a token is needed.
Must not know: tokens, keys, endpoints.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from http import HTTPStatus

from starlette.requests import HTTPConnection
from starlette.types import Scope

from gateway.domain.errors import Unauthenticated
from gateway.domain.grants import OPEN, Grant
from gateway.domain.ports import Authenticator


class Identity:
    def __init__(
        self,
        # None: nobody needs a token.
        authenticator: Authenticator | None = None,
        # Raises `Unauthenticated` for a token that was revoked.
        check: Callable[[Grant], None] = lambda _: None,
    ) -> None:
        self._authenticator = authenticator
        self._check = check

    @property
    def required(self) -> bool:
        """Whether nobody is served without a token."""
        return self._authenticator is not None

    async def grant(self, presented: str | None) -> Grant:
        """The grant of a client with this token or API key; None: it presents none. Raises `Unauthenticated`."""
        if self._authenticator is None:
            return OPEN
        if presented is None:
            raise Unauthenticated
        grant = await self._authenticator.verify(presented)
        self._check(grant)
        return grant

    async def grant_of(self, connection: HTTPConnection) -> Grant:
        """What the sender of a request may, by its header. Raises `Unauthenticated`."""
        # Without keys here, the header is meant for another server: a proxy, for example.
        return await self.grant(bearer(connection) if self.required else None)

    async def of_handshake(self, connection: HTTPConnection) -> Grant | None:
        """As `grant_of`; None for a client without such a header: a browser's token comes with `session.start`."""
        if not self.required or bearer(connection) is None:
            return None
        return await self.grant_of(connection)


def bearer(connection: HTTPConnection, *schemes: str) -> str | None:
    """What comes as `Authorization: Bearer …` or with one of `schemes`; None without. Raises `Unauthenticated`."""
    headers = connection.headers.getlist("authorization")
    if not headers:
        return None
    scheme, _, presented = headers[0].partition(" ")
    if len(headers) > 1 or scheme.lower() not in ("bearer", *schemes) or not presented.strip():
        raise Unauthenticated(why="malformed")
    return presented.strip()


def note_why(scope: Scope, error: Exception) -> None:
    """Keep the reason why nobody is known by their token, for the line of the log: the client is not told."""
    if isinstance(error, Unauthenticated):
        scope.setdefault("state", {})["why"] = error.why


def challenge(status: int) -> dict[str, str]:
    """The header that says how to say who one is, where that is missing (RFC 6750)."""
    return {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}


# A provider gives each customer at least a network of this size, with 2⁶⁴ addresses to choose from.
_IPV6_NETWORK_BITS = 64


def account_of(address: str) -> str:
    """An IPv4 address itself, or the /64 network of an IPv6 address; anything else is `local`."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "local"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), _IPV6_NETWORK_BITS), strict=False))


def client_account(connection: HTTPConnection) -> str:
    return account_of(connection.client.host if connection.client is not None else "")

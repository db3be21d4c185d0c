"""Refuses requests for other names than this gateway's: a page of another site whose name was made to lead here.

Knows: the Host header. Must not know: what is asked for, origins.

A browser lets a page read from its own host, so an attacker who lets a name of his own resolve to the gateway's
address (DNS rebinding) could read meetings through a visitor's browser. The Host header then has that name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_LOOPBACK_NAMES = ("localhost",)
HEALTH = ("/healthz", "/readyz")


class AllowedHosts:
    """Middleware.

    names: under which the gateway is reached; `*.example.com` for subdomains, `*` for any.
    addresses: whether any IP address will do, which no foreign page has as its host, or only those of loopback.
    """

    def __init__(self, app: ASGIApp, *, names: Collection[str], addresses: bool) -> None:
        self._app = app
        self._names = frozenset(name.lower().rstrip(".") for name in names if not name.startswith("*."))
        self._suffixes = tuple(name[1:].lower() for name in names if name.startswith("*."))
        self._addresses = addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Health checks come under any name, or under none, and learn nothing.
        if scope["type"] == "lifespan" or scope["path"] in HEALTH:
            await self._app(scope, receive, send)
            return
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        if name is not None and self._allowed(name):
            await self._app(scope, receive, send)
        elif name is None:
            await PlainTextResponse("A request needs one valid Host header.\n", 400)(scope, receive, send)
        else:
            why = f"This gateway is not reached as {name[:100]}; its operator can allow it (allowed_hosts).\n"
            await PlainTextResponse(why, 421)(scope, receive, send)

    def _allowed(self, name: str) -> bool:
        if "*" in self._names or name in self._names or name.endswith(self._suffixes):
            return True
        return is_loopback(name) or (self._addresses and _address(name) is not None)


def only_for(host: str, allowed_hosts: Collection[str]) -> list[Middleware]:
    """What listens on loopback is reached by its addresses only, anything else by every address."""
    return [Middleware(AllowedHosts, names={host, *allowed_hosts} - {""}, addresses=not is_loopback(host))]


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own, which no other reaches."""
    address = _address(host)
    return host in _LOOPBACK_NAMES if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def host_name(header: str) -> str | None:
    """The name or address in a Host header, in lower case and without brackets; None if it is not valid."""
    name, colon, port = header.rpartition(":")
    if not colon or header.endswith("]"):
        name, port = header, ""
    if port and not (port.isascii() and port.isdigit()):
        return None
    if name.startswith("["):
        name = name[1:-1] if name.endswith("]") else ""
    elif ":" in name:
        return None
    name = name.lower().rstrip(".")
    return name if name and name.isascii() and not set(name) & set(" /\\@?#,") else None

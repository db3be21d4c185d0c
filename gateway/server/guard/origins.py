"""Which web pages may use the gateway, by the Origin header that browsers send.

Knows: the gateway's own pages and the origins that its operator allows. Must not know: what is asked for, tokens.

A browser lets any page open a WebSocket, and tells which one does. What it lets a page read over HTTP is what the
gateway's answer says (CORS).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.domain.errors import ForeignOrigin

_log = logging.getLogger(__name__)

CLOSE_REASON = "Pages of this origin may not use this gateway; its operator can allow them (allowed_origins)."
"""What the script of a refused page can read; at most 123 bytes fit into a close frame."""

# Origins that were refused and are remembered, so that each is logged once; the header may say anything.
_MOST_LOGGED = 100
_ORIGIN_CHARS = 200

_API = "/v1/"

_OWN_PORTS = {"http": ":80", "https": ":443"}


class Origins:
    """Decides about WebSockets. allowed: origins besides the gateway's own; `*` is any."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        self._allowed = frozenset(allowed)
        self._logged: set[str] = set()

    def check(self, connection: HTTPConnection) -> None:
        """Raises `ForeignOrigin`. Programs send no Origin."""
        origin = connection.headers.get("origin")
        if origin is None or not self._allowed.isdisjoint({origin, "*"}):
            return
        if not _is_of_host(origin, connection.headers.get("host", "")):
            self._log_once(origin[:_ORIGIN_CHARS])
            raise ForeignOrigin(CLOSE_REASON)

    def _log_once(self, origin: str) -> None:
        if origin in self._logged or len(self._logged) >= _MOST_LOGGED:
            return
        self._logged.add(origin)
        rest = "; no more origins are logged" if len(self._logged) == _MOST_LOGGED else ""
        _log.warning("refused a page of %r: it is not in allowed_origins%s", origin, rest)


def cross_origin(allowed: Collection[str]) -> list[Middleware]:
    """Lets pages of these origins read what `/v1` answers; `*` is any. None: no middleware is needed.

    Without cookies: there are none, and a token comes in a header that a page's script has to set itself.
    """
    return [Middleware(_CrossOrigin, allowed=allowed)] if allowed else []


class _CrossOrigin:
    def __init__(self, app: ASGIApp, *, allowed: Collection[str]) -> None:
        self._app = app
        self._api = CORSMiddleware(
            app,
            allow_origins=allowed,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("Authorization", "Content-Type"),
            # Public pages may be allowed to use a gateway in a private network.
            allow_private_network=True,
            expose_headers=("Retry-After", "WWW-Authenticate"),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_api = scope["type"] == "http" and scope["path"].startswith(_API)
        await (self._api if is_api else self._app)(scope, receive, send)


def _is_of_host(origin: str, host: str) -> bool:
    """Whether a page of this origin came from this host. Browsers omit a scheme's own port, proxies may not."""
    try:
        scheme, authority, *_ = urlsplit(origin)
    except ValueError:
        return False
    own_port = _OWN_PORTS.get(scheme, "")
    named, asked = (each.lower().removesuffix(own_port) for each in (authority, host))
    return named != "" and named == asked

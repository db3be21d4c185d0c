"""The page: static files from `web_demo`, with the headers that keep it to itself.

Knows: where the files lie in a checkout and in an installed package. Must not know: what the page does.
"""

from __future__ import annotations

from pathlib import Path

from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

__all__ = ["routes"]

_PACKAGE = Path(__file__).parent
_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    # Always ask again: an unchanged file costs one 304.
    (b"cache-control", b"no-cache"),
)


def routes() -> list[BaseRoute]:
    """The page at `/` and its files beside it."""
    checkout, installed = _PACKAGE.parent / "web_demo", _PACKAGE / "_web_demo"
    folder = checkout if checkout.is_dir() else installed
    return [Mount("/", _Guarded(StaticFiles(directory=folder, html=True)))]


class _Guarded:
    """Adds the security headers to every answer of an ASGI application."""

    def __init__(self, app: StaticFiles) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        await self._app(scope, receive, send_guarded)

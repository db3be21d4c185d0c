"""Draws a link as a QR code, for the phones of people in the same room.

Knows: which links it accepts, and how a code is drawn. Must not know: meetings, other endpoints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import groupby

import segno
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.domain.errors import InvalidValue, LimitExceeded
from gateway.server.guard.fair_thread import FairThread
from gateway.server.guard.identity import client_account
from gateway.server.http.bodies import QR_LINK_CHARS

# An address in its percent-encoded form: printable ASCII without spaces.
_LINK = re.compile(r"https?://[^/?#][!-~]*", re.ASCII | re.IGNORECASE)
# Width of the light border that scanners need, in modules (ISO/IEC 18004, 9.1).
_QUIET = 4
_HEADERS = {
    # The code of a link never changes. Private, because shared caches should not learn the ids of meetings.
    "Cache-Control": "private, max-age=86400",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}


class QrCodes(Struct, frozen=True):
    """The endpoints. thread: draws the codes, which takes milliseconds."""

    thread: FairThread

    async def get(self, request: Request) -> Response:
        """`GET /qr.svg?link=https://…`. Raises `InvalidValue`, `LimitExceeded` or `RateLimited`."""
        return await self._answer(request, request.query_params.get("link", ""), drawing, {})

    async def post(self, request: Request) -> Response:
        """`POST /qr.svg` with the link as the body, for links with secrets: a body is in no log and in no cache.

        Raises `InvalidValue`, `LimitExceeded` or `RateLimited`.
        """
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > QR_LINK_CHARS:
                break
        return await self._answer(request, body.decode("ascii", "replace"), _draw, {"Cache-Control": "no-store"})

    async def _answer(
        self, request: Request, link: str, draw: Callable[[str], str], headers: dict[str, str]
    ) -> Response:
        if len(link) > QR_LINK_CHARS:
            raise LimitExceeded(f"The link has more than {QR_LINK_CHARS} characters.", field="link")
        if not _LINK.fullmatch(link):
            raise InvalidValue("Give the whole link, from http:// or https:// on, percent-encoded.", field="link")
        content = await self.thread.run(client_account(request), lambda: draw(link))
        return Response(content, headers={**_HEADERS, **headers}, media_type="image/svg+xml")


@lru_cache(maxsize=64)
def drawing(link: str) -> str:
    """The code as a scalable SVG. It is always dark on light, because scanners need that."""
    return _draw(link)


def _draw(link: str) -> str:
    matrix = segno.make_qr(link, error="m", encoding="utf-8", boost_error=False).matrix
    size = len(matrix) + 2 * _QUIET
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" shape-rendering="crispEdges">'
        f'<path fill="#fff" d="M0 0h{size}v{size}H0z"/><path d="{"".join(_bars(matrix))}"/></svg>'
    )


def _bars(matrix: tuple[bytearray, ...]) -> Iterator[str]:
    """The dark modules as SVG paths; adjacent modules in a row are one path."""
    for y, row in enumerate(matrix, _QUIET):
        x = _QUIET
        for dark, modules in groupby(row):
            width = len(list(modules))
            if dark:
                yield f"M{x} {y}h{width}v1h-{width}z"
            x += width

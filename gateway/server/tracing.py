"""A span for each request over HTTP that does something, with the trace that the client is in.

Knows: requests, their routes and how they were answered. Must not know: what is asked for, who records spans.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.server.access_log import route_of
from gateway.tracing import spans

# Reading the page, health, metrics and languages is not worth a span.
_READS = ("GET", "HEAD", "OPTIONS")
_INTERFACE = "/v1/"


class Traced:
    """Middleware: everything behind it works for the span of its request, or for the client's over a WebSocket.

    An answer from status 500 on is a failure; one that refuses the request is not.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parent = ""
        if scope["type"] != "lifespan":
            given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"]
            parent = given[0] if len(given) == 1 else ""
        if scope["type"] == "websocket":
            with spans.within(spans.remote(parent)):
                await self._app(scope, receive, send)
        elif scope["type"] == "http" and (scope["method"] not in _READS or scope["path"].startswith(_INTERFACE)):
            await self._request(parent, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, parent: str, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        span = spans.begin(method, {"method": method}, parent=parent, kind="server")
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            with spans.within(span):
                await self._app(scope, receive, watched)
        finally:
            route = route_of(scope)
            span.set(status=status, route=route, request_id=scope.get("state", {}).get("request_id") or "")
            span.rename(f"{method} {route}")
            if status >= 500:
                span.fail(str(status))
            span.end()

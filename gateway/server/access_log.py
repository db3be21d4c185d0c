"""One line of the log for each HTTP request and each WebSocket: who, how long, how much, why; and a span for a
request that does something.

Knows: addresses, ids of requests, their routes, what is said of a meeting without its name.
Must not know: what was said, who records spans.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import Any

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.domain.close_codes import CloseCode
from gateway.domain.grants import hash_of_meeting, meeting_name, tenant_of
from gateway.meeting.outbox import Outbox
from gateway.protocol.rate_limit import TokenBucket
from gateway.server.writer import CARRIED, Traffic
from gateway.sessions.local_session import LocalSession
from gateway.tracing import spans

_log = logging.getLogger(__name__)

_REQUEST_ID = b"x-request-id"
_VALID_ID = re.compile(rb"[\w.:+/=@-]{1,128}", re.ASCII)

# Lines a second, and at once, of what was refused and of what was answered: otherwise anybody could fill a disk.
# Sessions have rates of their own.
_REFUSED = (1.0, 20.0)
_ANSWERED = (50.0, 500.0)

# Most characters of what clients write about themselves.
_MOST_CHARACTERS = 200

# The page's files, and what is asked so often that it would hide everything else.
_QUIET = ("/{path}", "/health", "/healthz", "/readyz", "/metrics")


class _Lines:
    """How fast lines of one kind may come."""

    def __init__(self, rate: float, burst: float) -> None:
        self._bucket = TokenBucket(rate, burst)
        self._left_out = 0

    def write(self, level: int, fields: dict[str, Any], message: str, *arguments: object) -> None:
        """Or count it; the next line says how many there were."""
        if self._bucket.take(time.monotonic()):
            self._left_out += 1
            return
        if self._left_out:
            fields["left_out"], self._left_out = self._left_out, 0
        _log.log(level, message, *arguments, extra={"fields": fields})


_refused, _answered = _Lines(*_REFUSED), _Lines(*_ANSWERED)


class AccessLog:
    """Middleware: gives every request an id, the client's or a new one, and logs how a request over HTTP ended.

    The id is in the answer's `X-Request-Id`. Addresses are logged without what stands for a meeting in them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == _REQUEST_ID]
        is_valid = len(given) == 1 and _VALID_ID.fullmatch(given[0]) is not None
        id = given[0] if is_valid else secrets.token_hex(8).encode()
        scope.setdefault("state", {})["request_id"] = id.decode()
        begun_s = time.monotonic()
        status = sent = 0

        async def watched(message: Message) -> None:
            nonlocal status, sent
            # A WebSocket that is refused is answered like a request.
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), (_REQUEST_ID, id)]}
            elif message["type"] in ("http.response.body", "websocket.http.response.body"):
                sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            status = status or 500  # as middleware further out answers
            raise
        finally:
            if scope["type"] == "http" or status:
                _log_request(scope, status, sent, time.monotonic() - begun_s)


def _log_request(scope: Scope, status: int, sent: int, duration_s: float) -> None:
    route = route_of(scope)
    is_fault = status >= 500 and status != 503
    level = logging.ERROR if is_fault else logging.DEBUG if route in _QUIET else logging.INFO
    if not _log.isEnabledFor(level):
        return
    method = scope.get("method", "GET")
    fields = {"event": "request", **_client(scope), "method": method, "route": route, "status": status}
    fields |= {"duration_s": round(duration_s, 3), "sent_bytes": sent}
    lines = _refused if status >= 400 else _answered
    lines.write(level, fields, "%s %s: %d%s after %.3f s", method, route, status, _why(scope, fields), duration_s)


def _why(scope: Scope, fields: dict[str, Any]) -> str:
    """Why nobody is known by their token, if that was it; also added to the fields."""
    if (why := scope.get("state", {}).get("why")) is None:
        return ""
    fields["why"] = why
    return f" ({why})"


def route_of(scope: Scope) -> str:
    """The address as the gateway knows it, with names for what varies in it."""
    endpoint = scope.get("endpoint")
    known = (route.path_format for route in scope["app"].routes if route.endpoint is endpoint)
    return "-" if endpoint is None else next(known, "-")


def log_websocket(
    traffic: Traffic,
    websocket: HTTPConnection,
    code: int | None,
    reason: str,
    session: LocalSession | None,
    outbox: Outbox | None = None,
) -> None:
    """Log how it ended. code: the gateway's, if it was the one to close. session, outbox: of a session, if any."""
    if code is None:
        code, reason = traffic.client_code, "left" if traffic.client_code == CloseCode.NORMAL else "lost"
    elif not reason:
        reason = CloseCode(code).name.lower()
    fields = {"event": "websocket", **_client(websocket.scope), "close_code": code, "reason": reason}
    if session is not None:
        tenant, name = tenant_of(session.room.id), meeting_name(session.room.id)
        fields |= {"session": session.key.hex()[:12], "participant": session.member.participant}
        fields |= {"tenant": tenant, "meeting": hash_of_meeting(tenant, name)}
    duration_s = time.monotonic() - traffic.begun_s
    fields |= {"duration_s": round(duration_s, 3), **{name: getattr(traffic, name) for name in CARRIED}}
    if outbox is not None:
        fields |= {"lag_bytes": outbox.most_bytes, "lag_merged": outbox.merged}
    level = logging.ERROR if code == CloseCode.INTERNAL else logging.INFO
    arguments = ("WebSocket: %s %s%s after %.1f s", code, reason, _why(websocket.scope, fields), duration_s)
    if session is None:
        _refused.write(level, fields, *arguments)
    else:
        _log.log(level, *arguments, extra={"fields": fields})


def _client(scope: Scope) -> dict[str, Any]:
    agents = [value.decode("latin-1") for name, value in scope["headers"] if name == b"user-agent"]
    return {
        "request_id": scope.get("state", {}).get("request_id"),
        "address": scope["client"][0] if scope.get("client") else "",
        "user_agent": agents[0][:_MOST_CHARACTERS] if agents else "",
    }


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

"""`GET /v1/stream`: every open WebSocket, from its handshake to its close.

Knows: origins, subprotocols, how many connections there may be, draining.
Must not know: what is said on a connection (`connection`), rules of the protocol (`sessions.machine`).
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus

from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocket

from gateway import metrics
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import (
    Draining,
    ForeignOrigin,
    GatewayError,
    RateLimited,
    SessionIdle,
    TooManySessions,
)
from gateway.protocol.codec import negotiate
from gateway.protocol.messages import SessionDraining
from gateway.protocol.rate_limit import TokenBucket
from gateway.runtime import within
from gateway.server.access_log import log_websocket
from gateway.server.connection import Connection, Core, leaving
from gateway.server.guard.identity import challenge, client_account, note_why
from gateway.server.guard.origins import Origins
from gateway.server.writer import Traffic

# Connections that have not started a session yet.
_MOST_UNSTARTED = 1_000

# WebSockets of pages that may not use this gateway that are opened to tell them so: a second, and at once, of one
# address. They do not count as connections, and a peer that does not answer the close holds one for some seconds.
_FOREIGN_PAGES = (0.5, 8.0)

_MOST_RATES = 10_000

# After which the gateway that restarts may be there again.
_RESTART_MS = 1_000

# Connections of one address of which it is not known yet who they are.
_MOST_ANONYMOUS = 64


class _ForeignPages:
    """How often a WebSocket is opened for pages only to tell them that they may not use it."""

    def __init__(self) -> None:
        self._rates: dict[str, TokenBucket] = {}

    def too_many(self, account: str) -> bool:
        """Whether one more of this account is one too many; otherwise it counts."""
        if account not in self._rates and len(self._rates) >= _MOST_RATES:
            self._rates.clear()
        rate = self._rates.setdefault(account, TokenBucket(*_FOREIGN_PAGES))
        return rate.take(time.monotonic()) > 0


class Stream:
    """Owns every open connection; `endpoint` is the route."""

    def __init__(
        self,
        core: Core,
        *,
        # The bound of one connection's outbox.
        outbox_bytes: int,
        max_sessions: int,
        origins: Origins,
        # How many one client's address may have; a trusted proxy tells the address.
        max_connections_per_account: int = 1_000,
    ) -> None:
        self._core = core
        self._outbox_bytes = outbox_bytes
        self._max_sessions = max_sessions
        self._origins = origins
        self._max_per_account = max_connections_per_account
        self._accounts: dict[str, set[Connection]] = {}
        self._connections: set[Connection] = set()
        self._foreign_pages = _ForeignPages()
        # Something was said on each of them since then, by the monotonic clock.
        self._active_s = 0.0
        self._empty = asyncio.Event()
        self._empty.set()

    async def endpoint(self, websocket: WebSocket) -> None:
        """Serve one WebSocket from its handshake to its close."""
        try:
            codec, subprotocol = negotiate(websocket.scope.get("subprotocols", []))
            self._origins.check(websocket)
            grant = await self._core.identity.of_handshake(websocket)
        except ForeignOrigin as error:
            metrics.ERRORS.labels(error.code).inc()
            self._core.audit.record("join", websocket, error.code)
            account = client_account(websocket)
            if self._crowded(account) is not None or self._foreign_pages.too_many(account):
                await _refuse(websocket, error)
                return
            # A page's script cannot read a refused handshake. Nothing is read and nothing is kept for this one.
            await websocket.accept(subprotocol=subprotocol)
            await websocket.close(CloseCode.FOREIGN_ORIGIN, error.message)
            log_websocket(Traffic(), websocket, CloseCode.FOREIGN_ORIGIN, error.code, None)
            return
        except GatewayError as error:
            # Before the handshake there is no frame to send: the HTTP refusal carries the reason.
            metrics.ERRORS.labels(error.code).inc()
            self._core.audit.record("join", websocket, error.code)
            note_why(websocket.scope, error)
            await _refuse(websocket, error)
            return
        await websocket.accept(subprotocol=subprotocol)
        account = client_account(websocket)
        connection = Connection(self._core, websocket, codec, self._outbox_bytes, account, grant)
        if self._core.draining:
            await connection.turn_away(leaving(), CloseCode.DRAINING)
        elif (crowded := self._crowded(account, is_known=connection.admitted)) is not None:
            await connection.turn_away(crowded, CloseCode.TOO_MANY_SESSIONS)
        else:
            self._connections.add(connection)
            self._accounts.setdefault(account, set()).add(connection)
            self._empty.clear()
            try:
                await connection.run()
            finally:
                self._connections.discard(connection)
                self._accounts[account].discard(connection)
                if not self._accounts[account]:
                    del self._accounts[account]
                if not self._connections:
                    self._empty.set()

    def _crowded(self, account: str, *, is_known: bool = True) -> RateLimited | TooManySessions | None:
        """Why one more connection is one too many. is_known: whether it is known who they are."""
        others = self._accounts.get(account, set())
        if len(others) >= self._max_per_account or (
            not is_known and sum(not other.admitted for other in others) >= _MOST_ANONYMOUS
        ):
            return RateLimited(f"This address has {len(others)} connections already.")
        if len(self._connections) >= self._max_sessions + _MOST_UNSTARTED:
            # Below that no client is turned away before it is known whether they resume a session.
            return TooManySessions(f"This gateway holds {self._max_sessions} sessions already.")
        return None

    @property
    def open_sessions(self) -> int:
        """Connections being served now."""
        return len(self._connections)

    def announce_drain(self, deadline_s: float) -> None:
        """Tell every client that the gateway is leaving."""
        for connection in self._connections:
            connection.outbox.put(SessionDraining(deadline_ms=round(deadline_s * 1000)))

    def close_idle(self) -> None:
        """Close every connection on which nothing was said for `limits.idle_s`; called now and then."""
        idle_s, now_s = self._core.limits.idle_s, time.monotonic()
        since_s = now_s - idle_s
        if since_s < self._active_s:
            return
        self._active_s = min((connection.active_s for connection in self._connections), default=now_s)
        for connection in self._connections:
            if connection.active_s <= since_s:
                connection.finish(
                    CloseCode.IDLE,
                    SessionIdle(
                        f"Nothing was sent on this connection for {idle_s} s; reconnect to go on.",
                        retry_after_ms=0,
                    ),
                )

    async def close_all(self, deadline_s: float, *, elsewhere: bool = False) -> None:
        """Close every connection with 1012, after what is in its outbox; a peer that reads slowly has so long.

        elsewhere: whether other gateways can go on with these sessions, at once.
        """
        why = Draining("The gateway restarts; reconnect.", retry_after_ms=0 if elsewhere else _RESTART_MS)
        for connection in self._connections:
            connection.finish(CloseCode.RESTART, why)
        await within(deadline_s, self._empty.wait())


async def nowhere(websocket: WebSocket) -> None:
    """Any other address of a WebSocket."""
    detail = "There is no WebSocket at this address; the one of the gateway is /v1/stream."
    await websocket.send_denial_response(PlainTextResponse(detail, HTTPStatus.NOT_FOUND))


async def _refuse(websocket: WebSocket, error: GatewayError) -> None:
    """Answer the handshake with the error's status."""
    await websocket.send_denial_response(
        PlainTextResponse(error.message, error.http_status, challenge(error.http_status))
    )

"""Slows down refusals of an address that is refused all the time, so that they cost their sender something, too.

Knows: addresses, statuses, how often each address was refused. Must not know: what was asked for, why it is
refused.

A refusal costs the gateway a millisecond. A client that waits for it before it asks again cannot take more of the
event loop than these bounds allow, however many connections it asks on.
"""

from __future__ import annotations

import asyncio

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.server.guard.hosts import HEALTH
from gateway.server.guard.identity import client_account

# Refusals of one address that are answered at once: a second, and of those that come together.
_PER_S, _BURST = 50.0, 100.0
# Longest time that a refusal waits.
_MOST_S = 2.0

_MOST_ACCOUNTS = 10_000


class SlowRefusals:
    """Middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # Account → until when all of its refusals so far are paid for.
        self._paid_s: dict[str, float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in HEALTH:
            await self._app(scope, receive, send)
            return

        async def paced(message: Message) -> None:
            starts = message["type"] in ("http.response.start", "websocket.http.response.start")
            if starts and message["status"] >= 400 and (wait_s := self._wait_s(scope)):
                await asyncio.sleep(wait_s)
            await send(message)

        await self._app(scope, receive, paced)

    def _wait_s(self, scope: Scope) -> float:
        """How long the refusal of one more request waits, which is counted."""
        now_s = asyncio.get_running_loop().time()
        if len(self._paid_s) >= _MOST_ACCOUNTS:
            self._paid_s = {each: paid_s for each, paid_s in self._paid_s.items() if paid_s > now_s}
        account = client_account(HTTPConnection(scope))
        paid_s = max(self._paid_s.get(account, 0.0), now_s - _BURST / _PER_S) + 1 / _PER_S
        # What is owed is forgotten beyond what is waited for.
        self._paid_s[account] = min(paid_s, now_s + _MOST_S)
        return max(0.0, self._paid_s[account] - now_s)

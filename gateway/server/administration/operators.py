"""Lets operators in, and writes down what they do.

Knows: how an operator's key is presented, the log. Must not know: how keys are verified, what is done.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from gateway.domain.grants import hash_of_meeting
from gateway.server.guard.identity import bearer
from gateway.server.http.responses import Endpoint

_log = logging.getLogger(__name__)


class Operators:
    """verify: the id of the key that is presented. Raises `Unauthenticated`."""

    def __init__(self, verify: Callable[[str], Awaitable[str]]) -> None:
        self._verify = verify

    def only(self, endpoint: Endpoint) -> Endpoint:
        async def guarded(request: Request) -> ASGIApp:
            request.state.operator = await self._verify(bearer(request) or "")
            return await endpoint(request)

        return guarded


def note(
    request: Request, done: str, *, tenant: str | None = None, meeting: str | None = None, **about: Any
) -> None:
    """Write down what an operator has done. meeting: its id, of which only a hash is written."""
    fields: dict[str, Any] = {"event": "admin", "operator": request.state.operator, "action": done}
    sentence = f"operator {request.state.operator}: {done}"
    if tenant is not None and meeting is not None:
        about = {"tenant": tenant, "meeting": hash_of_meeting(tenant, meeting), **about}
    for name, value in about.items():
        sentence += f", {name} {value}"
    # A warning, so that it is there at almost every level.
    _log.warning("%s", sentence, extra={"fields": fields | about})

"""What a session gives to the task that iterates it, and sessions that reconnect at once."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from gateway.client import ClientSession, Reconnect, SessionEvent, connect
from tests.scripted_gateway import Peer, scripted_gateway

AT_ONCE = Reconnect(jitter=lambda: 0.0)

connect_at_once = functools.partial(connect, reconnect=AT_ONCE, reads=["ja"])


@asynccontextmanager
async def session_of(
    script: Callable[[Peer], Awaitable[None]], *, statuses: tuple[int, ...] = (), **options: Any
) -> AsyncGenerator[ClientSession, None]:
    """A session at a gateway that follows the script. options: of `connect`; it reconnects at once."""
    async with scripted_gateway(script, statuses=statuses) as url, connect_at_once(url, **options) as session:
        yield session


async def everything(session: ClientSession) -> list[SessionEvent]:
    return [message async for message in session]


async def until(session: ClientSession, kind: type[SessionEvent]) -> list[SessionEvent]:
    """Everything up to the first event of a kind."""
    events: list[SessionEvent] = []
    async for event in session:
        events.append(event)
        if isinstance(event, kind):
            break
    return events


def kinds(events: list[SessionEvent]) -> list[str]:
    return [type(event).__name__ for event in events]

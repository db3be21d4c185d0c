"""What a session gives to the task that iterates it, and sessions that reconnect at once."""

from __future__ import annotations

import functools

from gateway.client import ClientSession, SessionEvent, connect

connect_at_once = functools.partial(connect, jitter=lambda: 0.0, reads=["ja"])


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

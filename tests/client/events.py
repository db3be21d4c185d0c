"""What a session gives whoever iterates it."""

from __future__ import annotations

from gateway.client import (
    ClientSession,
    SessionEvent,
)


async def everything(session: ClientSession) -> list[SessionEvent]:
    return [message async for message in session]

"""The live channel between gateways of one process: those of a test.

Knows: who listens where. Must not know: what the events mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gateway.domain.live import LiveEvent

_Deliver = Callable[[str, LiveEvent], None]


class Switchboard:
    """What the live channels of one store share."""

    def __init__(self) -> None:
        # Meeting → who listens there.
        self.listeners: dict[str, list[tuple[str, _Deliver]]] = {}
        self.gateways = 0


class MemoryLiveChannel:
    """One gateway's access."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._listeners = switchboard.listeners
        switchboard.gateways += 1
        self._gateway = f"gateway {switchboard.gateways}"

    @asynccontextmanager
    async def listen(self, meeting: str, deliver: _Deliver, missed: Callable[[], None]) -> AsyncIterator[None]:
        listener = (self._gateway, deliver)
        self._listeners.setdefault(meeting, []).append(listener)
        asyncio.get_running_loop().call_soon(missed)
        try:
            yield
        finally:
            self._listeners[meeting].remove(listener)
            if not self._listeners[meeting]:
                del self._listeners[meeting]

    def is_heard(self, meeting: str) -> bool:
        return any(gateway != self._gateway for gateway, _ in self._listeners.get(meeting, ()))

    def send(self, meeting: str, event: LiveEvent) -> None:
        for gateway, deliver in self._listeners.get(meeting, ()):
            if gateway != self._gateway:
                asyncio.get_running_loop().call_soon(deliver, self._gateway, event)

"""Ends translations whose time is over, with one timer for all of them.

Knows: tickets that have not ended, when each is to. Must not know: how one is ended, who waits, the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.translation.scheduling.ticket import Ticket


class Deadlines:
    """Each ticket has the same time from when it was added, so the first that was added is the first that is due.

    after_s: how long it has, seconds. expire: is told of each whose time is over; maybe more than once, until it
    is removed.
    """

    def __init__(self, after_s: float, expire: Callable[[Ticket], None]) -> None:
        self._after_s = after_s
        self._expire = expire
        # Ticket → when its time is over, by the event loop's clock; in this order.
        self._due_s: dict[Ticket, float] = {}
        # None: nothing was added since all were gone.
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Tickets that have not ended."""
        return len(self._due_s)

    def add(self, ticket: Ticket) -> None:
        """Its time begins."""
        loop = asyncio.get_running_loop()
        self._due_s[ticket] = due_s = loop.time() + self._after_s
        if self._timer is None:
            self._timer = loop.call_at(due_s, self._look)

    def remove(self, ticket: Ticket) -> None:
        """It has ended."""
        self._due_s.pop(ticket, None)

    def _look(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        for ticket, due_s in list(self._due_s.items()):
            if due_s > loop.time():
                self._timer = loop.call_at(due_s, self._look)
                return
            self._expire(ticket)

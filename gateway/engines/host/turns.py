"""Lets a generation run alone in an engine, while all others wait.

Knows: what runs and what waits. Must not know: texts, engines, gateways.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable


class Turns:
    """Generations run together, but for those that run alone; these come first."""

    def __init__(self) -> None:
        self._together = 0
        self._alone = 0
        self._one = asyncio.Lock()
        self._waiting: set[asyncio.Future[None]] = set()

    def free(self, *, alone: bool) -> bool:
        """Whether a turn would come at once."""
        return not self._alone and not (alone and self._together)

    @contextlib.asynccontextmanager
    async def turn(self, *, alone: bool) -> AsyncIterator[None]:
        """The turn lasts as long as the context."""
        if not alone:
            await self._until(lambda: not self._alone)
            self._together += 1
            try:
                yield
            finally:
                self._together -= 1
                self._wake()
            return
        self._alone += 1
        try:
            async with self._one:
                await self._until(lambda: not self._together)
                yield
        finally:
            self._alone -= 1
            self._wake()

    async def _until(self, free: Callable[[], bool]) -> None:
        while not free():
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(woken)
            try:
                await woken
            finally:
                self._waiting.discard(woken)

    def _wake(self) -> None:
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)

"""Lets a generation run alone in an engine, whoever else has something to run, here or in another process.

Knows: who runs and who waits. Must not know: texts, engines, gateways, how many processes there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager

from gateway.engines.host.messages import OfPause, Pause, Paused, Resume


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


class Pauses:
    """The pauses of the two ends of a channel: those that the other end is asked for, and those it asks for here.

    say: sends a message to the other end. pausing: while its context lasts, nothing runs here but what the other
    end runs; entered once for each pause.
    """

    def __init__(
        self, say: Callable[[OfPause], None], pausing: Callable[[], AbstractAsyncContextManager[None]]
    ) -> None:
        self._say = say
        self._pausing = pausing
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[None]] = {}
        self._given: dict[int, asyncio.Task[None]] = {}

    @contextlib.contextmanager
    def asked(self) -> Iterator[asyncio.Future[None]]:
        """The other end pauses as long as the context lasts, from when the future is done."""
        number = next(self._numbers)
        self._asked[number] = paused = asyncio.get_running_loop().create_future()
        self._say(Pause(number))
        try:
            yield paused
        finally:
            del self._asked[number]
            self._say(Resume(number))

    @contextlib.asynccontextmanager
    async def lasting(self) -> AsyncIterator[None]:
        """The other end pauses as long as the context lasts."""
        with self.asked() as paused:
            await paused
            yield

    def heard(self, message: OfPause) -> None:
        """The other end says this."""
        number = message.number
        match message:
            case Pause():
                self._given[number] = task = asyncio.create_task(self._pause(number))
                task.add_done_callback(lambda _: self._given.pop(number))
            case Resume():
                if (given := self._given.get(number)) is not None:
                    given.cancel()
            case Paused():
                # What was given up meanwhile is not there any more.
                if (asked := self._asked.get(number)) is not None and not asked.done():
                    asked.set_result(None)

    async def _pause(self, number: int) -> None:
        async with self._pausing():
            self._say(Paused(number))
            await asyncio.Event().wait()

    async def close(self) -> None:
        """The other end is gone, and so is what it has asked for."""
        given = [*self._given.values()]
        for task in given:
            task.cancel()
        if given:
            await asyncio.wait(given)

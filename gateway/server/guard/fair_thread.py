"""A thread for what would hold up the event loop. Accounts share it: what one wants waits behind its own.

Knows: accounts, and for how long each has had the thread. Must not know: what is done in it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from gateway.domain.errors import RateLimited

# Turns of one account that are waited for; accounts that are remembered, before those that owe nothing go.
_MOST_WAITING = 64
_MOST_ACCOUNTS = 1_000

_RETRY_MS = 1_000

_Result = TypeVar("_Result")


class FairThread:
    """One thread, so that at most one of its kind takes the interpreter from live meetings.

    The next turn is that of the account that has had the least of it, in seconds, whatever became of its work.
    """

    def __init__(self, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._clock = clock
        self._busy = False
        # Account → its turns that are waited for, in order.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # Account → seconds that it has had. One that is new, or was away, begins with what the last turn's had.
        self._spent_s: dict[str, float] = {}
        self._least_s = 0.0

    async def run(self, account: str, work: Callable[[], _Result], *, goes_on: bool = False) -> _Result:
        """What `work` gives, once it is the account's turn. Raises what it raises, or `RateLimited`.

        goes_on: it comes after earlier work of the same call, whose result takes memory until this is done. So it
        is the account's next, and never refused.
        """
        async with self.turn(account, goes_on=goes_on):
            return await self.run_now(work)

    async def run_now(self, work: Callable[[], _Result]) -> _Result:
        """As `run`, within a turn."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    @asynccontextmanager
    async def turn(self, account: str, *, goes_on: bool = False) -> AsyncIterator[None]:
        """A turn, which is charged to the account to its end. Raises `RateLimited` if too many are waited for."""
        if self._busy:
            await self._wait(account, goes_on=goes_on)
        self._busy = True
        self._least_s = spent_s = max(self._least_s, self._spent_s.get(account, 0.0))
        begun_s = self._clock()
        try:
            yield
        finally:
            self._spent_s[account] = spent_s + self._clock() - begun_s
            self._give_turn()

    def refuse_waiting(self, error: Exception) -> None:
        """End all that wait for their turn with this error."""
        for turn in (turn for turns in self._waiting.values() for turn in turns):
            if not turn.done():
                turn.set_exception(error)
        self._waiting.clear()

    async def _wait(self, account: str, *, goes_on: bool) -> None:
        waiting = self._waiting.setdefault(account, deque())
        if not goes_on and len(waiting) >= _MOST_WAITING:
            why = f"{len(waiting)} calls of this address wait to be looked into."
            raise RateLimited(why, retry_after_ms=_RETRY_MS)
        self._spent_s[account] = max(self._spent_s.get(account, 0.0), self._least_s)
        turn = asyncio.get_running_loop().create_future()
        if goes_on:
            waiting.appendleft(turn)
        else:
            waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting.get(account, ()):
                self._leave(account, turn)
            elif not turn.cancelled() and turn.exception() is None:
                self._give_turn()
            raise

    def _leave(self, account: str, turn: asyncio.Future[None]) -> None:
        self._waiting[account].remove(turn)
        if not self._waiting[account]:
            del self._waiting[account]

    def _give_turn(self) -> None:
        """To the account that has had the least; it is busy all along, so that nobody comes between."""
        if len(self._spent_s) > _MOST_ACCOUNTS:
            owing = {each: had_s for each, had_s in self._spent_s.items() if had_s > self._least_s}
            self._spent_s = owing | {each: self._spent_s[each] for each in self._waiting}
        while self._waiting:
            account = min(self._waiting, key=lambda each: self._spent_s[each])
            turn = self._waiting[account][0]
            self._leave(account, turn)
            if not turn.done():  # its caller may be cancelled, and not have run since
                turn.set_result(None)
                return
        self._busy = False

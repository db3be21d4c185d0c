"""An event loop in which waiting takes no time: an hour's sleep is over once nothing else is to be done.

For what lives in one process, sockets to itself included: it comes out the same on every machine, however busy.
What other processes do takes real time, of which this loop knows nothing.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, ParamSpec, TypeVar, TypeVarTuple
from unittest import mock

P = ParamSpec("P")
T = TypeVar("T")
Args = TypeVarTuple("Args")

_LATE_S = 1e-6


class _Selector(selectors.DefaultSelector):
    """Waits for sockets and threads alone; a wait for time is over at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = time.monotonic()
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self.threads:
            return super().select(None)
        # A moment late, as every clock.
        self.now_s += max(0.0, timeout) + _LATE_S
        return []


class SwiftLoop(asyncio.SelectorEventLoop):
    """Its time passes while there is nothing to do, and then in no time."""

    def __init__(self) -> None:
        self._waits = _Selector()
        super().__init__(self._waits)

    def time(self) -> float:
        return self._waits.now_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Args], T], *args: *Args
    ) -> asyncio.Future[T]:
        self._waits.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(lambda _: self._back())
        return future

    def _back(self) -> None:
        self._waits.threads -= 1


def run_swiftly(program: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, with a clock that `time.monotonic` shows, too."""
    loop = SwiftLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner, mock.patch("time.monotonic", loop.time):
        return runner.run(program)


def swiftly(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Runs a test in such a loop; its fixtures are none that need a loop themselves."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_swiftly(test(*args, **kwargs))

    return run

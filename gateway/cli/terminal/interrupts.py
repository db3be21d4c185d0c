"""Ctrl-C: it cancels what a command waits for, between two steps of the event loop.

Knows: signals. Must not know: any single command.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

_T = TypeVar("_T")


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine in an event loop of its own. Ctrl-C cancels it, and then raises `KeyboardInterrupt`.

    `asyncio.run` alone cancels in the middle of whatever runs, so that a library that has just seen a future
    pending may find it cancelled a line later.
    """
    return asyncio.run(_interruptible(work))


async def _interruptible(work: Coroutine[Any, Any, _T]) -> _T:
    with Interruptible():
        return await work
    raise KeyboardInterrupt


class Interruptible:
    """A context in which Ctrl-C ends only the block; the code after it still runs. A second Ctrl-C ends all.

    If SIGINT was ignored before, it stays ignored.
    """

    def __init__(self) -> None:
        # Whether Ctrl-C ended the block.
        self.interrupted = False
        self._guarding = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 -- used in coroutines only
        self._task = task
        self._cancelling = task.cancelling()
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
            self._guarding = True
        return self

    def _interrupt(self) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._guarding:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        # Other code may have cancelled the task too; that cancellation must not be swallowed.
        return (
            self.interrupted
            and self._task.uncancel() <= self._cancelling
            and kind is not None
            and issubclass(kind, asyncio.CancelledError)
        )

"""Generations in flight, and how all of them are ended from outside at once.

An engine that hangs never wakes those who wait for its next token; somebody else has to.
Knows: tasks that wait inside a generation. Must not know: engines, texts, who reads.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from gateway.domain.errors import EngineUnavailable

__all__ = ["Generation", "Generations"]


class Generations:
    """Those in flight in one engine. Once ended, none begins here any more.

    progress: grows when a generation begins, ends or, where the owner counts them, gives a token.
    """

    def __init__(self) -> None:
        self.progress = 0
        self._open: set[Generation] = set()
        self._ended: str | None = None

    @property
    def reason(self) -> str:
        """Why they were ended."""
        return self._ended or "The engine broke this off."

    def open(self) -> Generation:
        """One more is in flight, until it is closed. Raises `EngineUnavailable` once all were ended."""
        self.check()
        self.progress += 1
        generation = Generation(self)
        self._open.add(generation)
        return generation

    def close(self, generation: Generation) -> None:
        """It is no longer in flight, however it ended."""
        self.progress += 1
        self._open.discard(generation)

    def check(self) -> None:
        """Raises `EngineUnavailable` once all were ended."""
        if self._ended is not None:
            raise EngineUnavailable(self._ended, retry_after_ms=2_000)

    def end(self, reason: str) -> None:
        """Make every generation in flight raise `EngineUnavailable`, at once where it waits.

        The first reason counts.
        """
        if self._ended is None:
            self._ended = reason
            for generation in self._open:
                generation.interrupt()

    @property
    def waiting(self) -> bool:
        """Whether anybody waits for the engine now; readers that are busy elsewhere do not count."""
        return any(generation.waiting for generation in self._open)

    def __len__(self) -> int:
        return len(self._open)


class Generation:
    """One generation. Whoever runs it does each wait for the engine inside `with generation:`.

    The way of `asyncio.timeout`: the waiting task is cancelled, and the cancellation becomes `EngineUnavailable`
    where it leaves the block; a cancellation by anybody else passes.
    """

    __slots__ = ("_cancelling", "_generations", "_interrupted", "_loop", "_task")

    def __init__(self, generations: Generations) -> None:
        self._generations = generations
        # Finding the loop again for each token is a system call on Python 3.11.
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._interrupted = False

    @property
    def waiting(self) -> bool:
        return self._task is not None

    def close(self) -> None:
        """See `Generations.close`."""
        self._generations.close(self)

    def interrupt(self) -> None:
        """Wake the task that waits, if one does."""
        # A task that runs just now waits for nothing, and sees the end before its next wait.
        if self._task is not None and self._task is not asyncio.current_task(self._loop):
            self._interrupted = True
            self._task.cancel()

    def __enter__(self) -> None:
        self._generations.check()
        self._task = task = asyncio.current_task(self._loop)
        self._cancelling = task.cancelling() if task is not None else 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        cancelling = task.cancelling()
        if self._interrupted:
            self._interrupted = False
            cancelling = task.uncancel()
        elif kind is None or not issubclass(kind, asyncio.CancelledError):
            return
        if cancelling > self._cancelling:
            # Somebody else wants this task to end, perhaps besides us.
            raise asyncio.CancelledError
        # Nobody else cancelled it: an engine that closes its sockets cancels what waits for them.
        raise EngineUnavailable(self._generations.reason, retry_after_ms=2_000) from None

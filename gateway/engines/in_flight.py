"""Generations in flight, and how to end all of them at once from outside.

An engine that hangs never wakes the tasks that wait for its next token, so they must be woken from outside.
Knows: tasks that wait inside a generation. Must not know: engines, texts, who reads.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from gateway.domain.errors import EngineUnavailable


class Generations:
    """The generations in flight in one engine. After `end`, no new one can begin."""

    def __init__(self) -> None:
        # Grows when a generation begins or ends. The owner may also count tokens here.
        self.progress = 0
        self._open: set[Generation] = set()
        self._ended: str | None = None

    @property
    def reason(self) -> str:
        return self._ended or "The engine ended this generation."

    def open(self) -> Generation:
        """Add a generation, which is in flight until it is closed. Raises `EngineUnavailable` after `end`."""
        self.check()
        self.progress += 1
        generation = Generation(self)
        self._open.add(generation)
        return generation

    def close(self, generation: Generation) -> None:
        self.progress += 1
        self._open.discard(generation)

    def check(self) -> None:
        """Raises `EngineUnavailable` after `end`."""
        if self._ended is not None:
            raise EngineUnavailable(self._ended, retry_after_ms=2_000)

    def end(self, reason: str) -> None:
        """Make every generation in flight raise `EngineUnavailable`, waiting or not. The first reason counts."""
        if self._ended is None:
            self._ended = reason
            for generation in self._open:
                generation.interrupt()

    @property
    def waiting(self) -> bool:
        """Whether a generation waits for the engine now."""
        return any(generation.waiting for generation in self._open)

    def __len__(self) -> int:
        return len(self._open)


class Generation:
    """One generation. Its task waits for the engine only inside `with generation:`.

    It works like `asyncio.timeout`: `interrupt` cancels the waiting task, and at the end of the block the
    cancellation becomes `EngineUnavailable`. A cancellation by other code is passed on.
    """

    __slots__ = ("_cancelling", "_generations", "_interrupted", "_loop", "_task")

    def __init__(self, generations: Generations) -> None:
        self._generations = generations
        # Kept, because on Python 3.11 finding the loop for each token costs a system call.
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._interrupted = False

    @property
    def waiting(self) -> bool:
        return self._task is not None

    def close(self) -> None:
        self._generations.close(self)

    def interrupt(self) -> None:
        """Wake the task if it waits for the engine."""
        # A task that is running does not wait. It sees the end before its next wait.
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
            # Other code has cancelled this task too.
            raise asyncio.CancelledError
        # No other code has cancelled it. An engine that closes its sockets cancels the tasks that wait for them.
        raise EngineUnavailable(self._generations.reason, retry_after_ms=2_000) from None

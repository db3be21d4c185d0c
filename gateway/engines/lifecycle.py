"""The states of one engine, and what ends with them: the same for every adapter and for the supervisor.

An engine that hangs never wakes the tasks that wait for its next token, so they must be woken from outside.
Knows: which state may follow which, generations in flight, their tasks, and for how long they wait in vain.
Must not know: which engine it is, why it fails, texts, who reads.

State        may become
STARTING     STARTING (another reason), READY, FAILED, STOPPED
READY        RESTARTING, FAILED, STOPPED
RESTARTING   RESTARTING, READY, FAILED, STOPPED
FAILED       STOPPED; under a supervisor, which tries again, also FAILED and READY
STOPPED      nothing
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from types import MappingProxyType, TracebackType

from gateway.domain.engine import EngineHealth, EngineProfile, EngineState
from gateway.domain.errors import EngineRestarting, EngineUnavailable

_log = logging.getLogger(__name__)

_STARTING, _READY, _RESTARTING, _FAILED, _STOPPED = EngineState
_NEXT = MappingProxyType(
    {
        _STARTING: {_STARTING, _READY, _FAILED, _STOPPED},
        _READY: {_RESTARTING, _FAILED, _STOPPED},
        _RESTARTING: {_RESTARTING, _READY, _FAILED, _STOPPED},
        _FAILED: {_STOPPED},
        _STOPPED: set(),
    }
)
_TRIED_AGAIN = {_FAILED, _READY, _STOPPED}


class Lifecycle:
    """The health of an engine. What may not follow is ignored: the first failure is the one that matters."""

    def __init__(
        self,
        *,
        # Whether a failure may be followed by another attempt.
        tried_again: bool = False,
        # Is told of each new state once; another reason for the same state is not one.
        on_change: Callable[[EngineHealth], None] = lambda _: None,
    ) -> None:
        self.on_change = on_change
        self._tried_again = tried_again
        # To be read alone: they change by `become`.
        self.state = EngineState.STARTING
        self.health = EngineHealth(self.state, "starting")

    @property
    def over(self) -> bool:
        """Whether it failed or was stopped."""
        return self.state in (EngineState.FAILED, EngineState.STOPPED)

    def become(self, state: EngineState, reason: str = "") -> bool:
        """Another state, or another reason for it. False: it may not follow, and nothing has changed."""
        before = self.state
        if state not in (_TRIED_AGAIN if self._tried_again and before is EngineState.FAILED else _NEXT[before]):
            return False
        self.state, self.health = state, EngineHealth(state, reason)
        if state is not before:
            try:
                self.on_change(self.health)
            except Exception:
                _log.exception("the engine is %s, and telling so failed", state.value)
        return True

    def check(self, retry_after_ms: int = 2_000) -> None:
        """Raises `EngineUnavailable` unless it is ready; it is `EngineRestarting` while it is started again."""
        if self.state is not EngineState.READY:
            raise unavailable(self.health, retry_after_ms)


def unavailable(health: EngineHealth, retry_after_ms: int = 2_000) -> EngineUnavailable:
    """The error for work that an engine in this state cannot do."""
    if health.state is EngineState.RESTARTING:
        return EngineRestarting(health.reason, retry_after_ms=5_000)
    return EngineUnavailable(f"The engine is not ready: {health.reason}", retry_after_ms=retry_after_ms)


class Generations:
    """The generations in flight in one engine. After `end`, no new one can begin."""

    def __init__(self) -> None:
        # When the engine last gave a token, by the monotonic clock.
        self._heard_s = 0.0
        self._open: set[Generation] = set()
        self._ended: str | None = None

    @property
    def reason(self) -> str:
        return self._ended or "The engine ended this generation."

    def open(self) -> Generation:
        """Add a generation, which is in flight until it is closed. Raises `EngineUnavailable` after `end`."""
        self.check()
        generation = Generation(self)
        self._open.add(generation)
        return generation

    def close(self, generation: Generation) -> None:
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

    def heard(self) -> None:
        """The engine gave a token."""
        self._heard_s = time.monotonic()

    @property
    def silent_s(self) -> float:
        """For how long some generation has waited while the engine gave none of them a token; 0.0 if none waits.

        Others that begin meanwhile, or are given up, are no sign of life.
        """
        since_s = [generation.since_s for generation in self._open if generation.waiting]
        return time.monotonic() - max(self._heard_s, min(since_s)) if since_s else 0.0

    def __len__(self) -> int:
        return len(self._open)


class Generation:
    """One generation. Its task waits for the engine only inside `with generation:`.

    It works like `asyncio.timeout`: `interrupt` cancels the waiting task, and at the end of the block the
    cancellation becomes `EngineUnavailable`. A cancellation by other code is passed on.
    """

    __slots__ = ("_cancelling", "_generations", "_interrupted", "_loop", "_task", "since_s")

    def __init__(self, generations: Generations) -> None:
        self._generations = generations
        # Kept, because on Python 3.11 finding the loop for each token costs a system call.
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._interrupted = False
        # When it began to wait the last time, by the monotonic clock.
        self.since_s = 0.0

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
        self.since_s = time.monotonic()
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


class Adapter:
    """What every adapter of one engine has: its health, its profile once that is known, generations in flight."""

    def __init__(self, life: Lifecycle | None = None) -> None:
        self._life = life or Lifecycle()
        self._profile: EngineProfile | None = None
        self._generations = Generations()

    def health(self) -> EngineHealth:
        return self._life.health

    def profile(self) -> EngineProfile:
        if self._profile is None:
            raise unavailable(self._life.health)
        return self._profile

    def _check(self) -> None:
        """Raises `EngineUnavailable` unless it is ready; asks `health`, which may notice that it has died."""
        if (health := self.health()).state is not EngineState.READY:
            raise unavailable(health)

    def _say(self, reason: str) -> None:
        self._life.become(EngineState.STARTING, reason)

    def _end_as_stopped(self) -> None:
        self._life.become(EngineState.STOPPED, "the engine was stopped")
        self._generations.end("The engine was stopped.")

"""The states of one engine, and what ends with them: the same for every adapter and for the supervisor.

Knows: which state may follow which, generations in flight.
Must not know: which engine it is, why it fails, clocks.

State        may become
STARTING     STARTING (another reason), READY, FAILED, STOPPED
READY        RESTARTING, FAILED, STOPPED
RESTARTING   RESTARTING, READY, FAILED, STOPPED
FAILED       STOPPED; under a supervisor, which tries again, also FAILED and READY
STOPPED      nothing
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import MappingProxyType

from gateway.domain.engine import EngineHealth, EngineProfile, EngineState
from gateway.domain.errors import EngineRestarting, EngineUnavailable
from gateway.engines.in_flight import Generations

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

    def _say(self, reason: str) -> None:
        self._life.become(EngineState.STARTING, reason)

    def _end_as_stopped(self) -> None:
        self._life.become(EngineState.STOPPED, "the engine was stopped")
        self._generations.end("The engine was stopped.")

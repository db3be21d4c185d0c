"""Replaces an engine that died or hangs by a new one from a factory; one engine at a time.

Knows: an engine's health, how long it has given no token, back-off.
Must not know: which engine it is, who waits for a translation, what happens to interrupted translations.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from gateway import metrics
from gateway.domain.engine import (
    EngineCapacity,
    EngineHealth,
    EngineProfile,
    EngineState,
    OnEvent,
    TokenEvent,
    TranslationRequest,
)
from gateway.domain.errors import EngineUnavailable, StartupError
from gateway.domain.ports import Engine
from gateway.engines.lifecycle import Adapter, Generations, Lifecycle
from gateway.runtime import cancelled, within

_log = logging.getLogger(__name__)

# If an engine was ready for this long before it died, counting failures starts again.
STEADY_S = 180.0

_POLL_S = 0.25
# Longest wait for an adapter's `stop`, in case the adapter itself does not bound it.
_STOP_S = 60.0
# A restart hangs if it takes more than this factor times the first start, and at least this many seconds. The
# first start may download and compile, but may also have had a machine to itself that is full now; one that is
# slow and given up begins from nothing.
_START_FACTOR, _START_LEAST_S = 4.0, 300.0


class RestartPolicy(Struct, frozen=True, kw_only=True):
    """When an engine counts as dead, and when it is restarted."""

    # The engine hangs if it gives no token for this long while a reader waits, in seconds.
    stall_s: float
    # Failures in a row (crashes or failed starts) before the engine is `FAILED`. It is still tried again every
    # `restart_backoff_max_s`.
    max_restarts: int
    # Longest first pause before a restart, in seconds; doubles with each failure in a row.
    restart_backoff_s: float
    # Longest pause, in seconds.
    restart_backoff_max_s: float


class Supervisor(Adapter):
    """Engine port over one engine after another.

    build: makes an engine that is not started.
    name: the engine's name in metrics.
    on_change: called once for each new state. `health` is shown to every client, so details are only logged.
    silent_s: where others use the same engine, for how long somebody has waited for it while it gave no token,
    seconds. Without it, only the generations of this supervisor count.
    """

    def __init__(
        self,
        build: Callable[[], Engine],
        policy: RestartPolicy,
        *,
        name: str = metrics.DEFAULT_ENGINE,
        on_change: Callable[[EngineHealth], None] = lambda _: None,
        silent_s: Callable[[], float] | None = None,
    ) -> None:
        self.on_change = on_change
        super().__init__(Lifecycle(tried_again=True, on_change=lambda health: self.on_change(health)))
        self._build = build
        self._silent_s = silent_s or (lambda: self._generations.silent_s)
        self._policy = policy
        # An alert on growth needs the series to exist at 0.
        self._restarts = {what: metrics.ENGINE_RESTARTS.labels(name, what) for what in ("crash", "stall")}
        self._start_failures = metrics.ENGINE_START_FAILURES.labels(name)
        self._restart_s = metrics.ENGINE_RESTART_S.labels(name)
        self._engine: Engine | None = None
        self._max_running = 0
        self._dead = asyncio.Event()
        self._failures = 0
        self._ready_s = self._start_limit_s = 0.0
        self._watching: asyncio.Task[None] | None = None

    @property
    def engine(self) -> Engine | None:
        """The engine that is ready or being started."""
        return self._engine

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        began_s = time.monotonic()
        self._engine = engine = self._build()
        try:
            await engine.start()
        except Exception as error:
            self._life.become(EngineState.FAILED, _reason(error))
            raise
        if self._stopped:
            raise StartupError("The engine was stopped while it started.")
        self._start_limit_s = max(_START_LEAST_S, _START_FACTOR * (time.monotonic() - began_s))
        self._serve(engine)
        # Awaited by `stop`.
        self._watching = asyncio.create_task(self._watch(), name="engine supervisor")

    async def stop(self) -> None:
        self._end_as_stopped()
        watching, self._watching = self._watching, None
        await cancelled(watching)
        # Only this engine may have a process, at any stage of a replacement. Stopping it twice does no harm.
        await self._discard()

    @property
    def _stopped(self) -> bool:
        return self._life.state is EngineState.STOPPED

    def _serve(self, engine: Engine) -> None:
        self._profile = engine.profile()
        self._max_running = engine.capacity().max_running
        self._generations = Generations()
        self._dead.clear()
        self._ready_s = time.monotonic()
        self._life.become(EngineState.READY)

    # ------------------------------------------------------------ death and replacement

    async def _watch(self) -> None:
        while True:
            await self._until_dead()
            await self._replace()

    async def _until_dead(self) -> None:
        assert self._engine is not None  # noqa: S101 -- set by start
        poll_s = min(_POLL_S, self._policy.stall_s / 4)
        quiet_s, looked_s = 0.0, time.monotonic()
        while not self._dead.is_set():
            await within(poll_s, self._dead.wait())
            if (health := self._engine.health()).state is not EngineState.READY:
                self._died("crash", health.reason)
                return
            now_s = time.monotonic()
            # If this process itself did not run for a while, that time does not count.
            quiet_s = min(quiet_s + min(now_s - looked_s, 2 * poll_s), self._silent_s())
            looked_s = now_s
            if quiet_s >= self._policy.stall_s:
                self._died("stall", f"it gave no token for {self._policy.stall_s:g} s")
                return

    def _died(self, what: Literal["crash", "stall"], reason: str) -> None:
        """The engine died or hangs: end its generations, and let `_watch` replace it."""
        if self._dead.is_set() or self._stopped:
            return
        self._dead.set()
        self._restarts[what].inc()
        if time.monotonic() - self._ready_s >= STEADY_S:
            self._failures = 0
        said = "died" if what == "crash" else "hung"
        _log.error("the engine %s: %s", said, reason)
        self._failed(f"The engine {said} and is being started again.")
        self._generations.end("The engine died; it is being started again.")

    def _failed(self, sentence: str) -> None:
        self._failures += 1
        if self._failures > self._policy.max_restarts:
            sentence = (
                f"The engine failed {self._failures} times in a row; it is tried again every "
                f"{self._policy.restart_backoff_max_s:g} s."
            )
            self._life.become(EngineState.FAILED, sentence)
        else:
            self._life.become(EngineState.RESTARTING, sentence)

    async def _replace(self) -> None:
        died_s = time.monotonic()
        await self._discard()
        while True:
            await asyncio.sleep(self._pause_s())
            try:
                self._engine = engine = self._build()
                async with asyncio.timeout(self._start_limit_s):
                    await engine.start()
            except Exception as error:
                self._start_failures.inc()
                _log.error("the engine could not be started again: %s", _reason(error))
                await self._discard()
                self._failed("The engine could not be started again so far; it is tried once more.")
            else:
                break
        self._serve(engine)
        took_s = time.monotonic() - died_s
        self._restart_s.observe(took_s)
        _log.warning("the engine is ready again after %.1f s", took_s)

    def _pause_s(self) -> float:
        if self._life.state is EngineState.FAILED:
            return self._policy.restart_backoff_max_s
        # Exponential with full jitter: gateways that fail for a common reason do not all restart together.
        most_s = min(
            self._policy.restart_backoff_max_s, self._policy.restart_backoff_s * 2.0 ** (self._failures - 1)
        )
        return random.uniform(0, most_s)  # noqa: S311 -- not a secret

    async def _discard(self) -> None:
        """Stop the present engine, in bounded time. If that fails, the failure is only logged."""
        if self._engine is None:
            return
        try:
            async with asyncio.timeout(_STOP_S):
                await self._engine.stop()
        except Exception:
            _log.exception("the old engine could not be stopped")

    # ------------------------------------------------------------ generations

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        self._check()
        assert self._engine is not None  # noqa: S101 -- ready
        generations = self._generations
        generation = generations.open()

        def progresses(event: TokenEvent) -> None:
            generations.heard()
            on_event(event)

        try:
            with generation:
                await self._engine.generate(request, progresses)
        except EngineUnavailable as error:
            # The engine may report its death here before `_watch` sees it.
            if generations is self._generations:
                self._died("crash", error.message)
            raise
        finally:
            generation.close()

    # ------------------------------------------------------------ state

    def health(self) -> EngineHealth:
        if self._engine is None:
            return self._life.health
        health, inner = self._life.health, self._engine.health()
        if health.state is inner.state is EngineState.STARTING:
            return inner  # its reason shows the progress; only `start` makes it ready
        if health.state is EngineState.READY and inner.state in (EngineState.FAILED, EngineState.STOPPED):
            # `_watch` has not seen it yet.
            return EngineHealth(EngineState.RESTARTING, "The engine died and is being started again.")
        return health

    def capacity(self) -> EngineCapacity:
        if self._engine is not None and self._life.state in (EngineState.STARTING, EngineState.READY):
            return self._engine.capacity()
        return EngineCapacity(self._max_running, 0, 0)

    def profile(self) -> EngineProfile:
        if self._profile is None and self._engine is not None:
            return self._engine.profile()
        return super().profile()

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        return b"" if self._engine is None else await self._engine.metrics(names)


def _reason(error: Exception) -> str:
    if isinstance(error, StartupError):
        return error.message.rstrip(".")
    if isinstance(error, TimeoutError):
        return "it took too long"
    return f"{type(error).__name__}: {error}"

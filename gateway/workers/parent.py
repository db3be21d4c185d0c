"""The parent of all workers: owns the engine, the port and the workers' processes, and serves no client itself.

Knows: when a worker is started, drained and started again; what all of them are told.
Must not know: how a worker serves, how the engine is restarted, where settings come from.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gateway.config import Settings
from gateway.domain.errors import StartupError
from gateway.engines.host.kept_hosts import KeptHosts
from gateway.engines.host.messages import GetMetrics, Metrics
from gateway.engines.pool import Pool
from gateway.exposition import merged
from gateway.runtime import within
from gateway.server.http.admin import own_metrics
from gateway.server.http.readiness import Whole
from gateway.workers.engines import Engines
from gateway.workers.messages import EngineIs, LogFrom
from gateway.workers.process import WorkerProcess

_log = logging.getLogger(__name__)

# Time between two looks at the engine's progress while it loads, and between two reports of the workers.
_LOOK_S, _REPORT_S = 0.25, 1.0

# A worker that has not answered so many of them gets no more connections; after so many it is frozen, and killed.
# One that starts has more to do.
_SILENT_REPORTS, _FROZEN_REPORTS, _START_REPORTS = 3, 30, 300

# What a worker may need beyond `drain_s` to end.
_GOODBYE_S = 30.0

# Settings of what goes on running when the workers are replaced.
_FIXED = ("host", "port", "admin_host", "admin_port", "admin_keys_file", "engine", "store")

# A worker that served for so long did not fail at its start.
_STEADY_S = 60.0
# Pause before a worker that ended is started again: none at first, then this, doubled with each failure in a row.
_AGAIN_S, _AGAIN_MAX_S = 0.5, 30.0


class Restarts:
    """How the workers of one number have ended so far."""

    def __init__(self) -> None:
        self._failures = 0
        self._proven: Settings | None = None

    def ended(self, settings: Settings, *, served: bool, after_s: float) -> None:
        """One has ended, `after_s` seconds after its start. served: it had begun to accept connections."""
        if served:
            self._proven = settings
            if after_s > _STEADY_S:
                self._failures = 0

    def settings(self, newest: Settings) -> Settings:
        """Those with which one last served, which a reload that stopped midway may not have made the newest."""
        return self._proven or newest

    def pause_s(self) -> float:
        """For how long to wait now; it has failed once more."""
        failures, self._failures = self._failures, self._failures + 1
        return min(_AGAIN_MAX_S, _AGAIN_S * 2.0 ** min(failures - 1, 10)) if failures else 0.0


class Parent:
    """count: of workers. folder: private, for sockets. port: where the workers listen, if the settings say any.

    kept: the engines' processes that outlive this one.
    """

    def __init__(
        self, settings: Settings, count: int, folder: Path, port: int, kept: KeptHosts | None = None
    ) -> None:
        self._settings = replace(settings, port=port)
        self._asked_port = settings.port
        self._kept = kept
        self.engines = Engines(self._settings, folder, self._say, kept)
        self.engine = self.engines.engine
        self._own_metrics = own_metrics(self.engine)
        # The one that serves, or is to serve, with each number.
        self._workers: dict[int, WorkerProcess] = {}
        self._count = count
        self._restarts = {number: Restarts() for number in range(1, count + 1)}
        # Those that run, also while they drain.
        self._running: set[WorkerProcess] = set()
        self._tasks: asyncio.TaskGroup | None = None
        # Whether any of them has ever served.
        self._begun = False
        self._changed = asyncio.Event()
        # What is to be read and followed, one after another.
        self._loads: list[Callable[[], Settings]] = []
        self._rolling: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self.failure: StartupError | None = None
        # Other than that of the settings, once an operator has said so.
        self._log_level: str | None = None

    # ------------------------------------------------------------ life

    async def run(self) -> None:
        """Start everything, and serve until `stop`; then `failure` says whether it could not start."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                await self._run(tasks)
        finally:
            # What it cannot look after any more would keep this process from ending.
            for worker in self._running:
                worker.kill()
            if self._kept is not None and self.failure is None:
                self._kept.leaving = True
            await self.engine.stop()
        if self.failure is None:
            _log.info("stopped")

    async def _run(self, tasks: asyncio.TaskGroup) -> None:
        loading = tasks.create_task(self._load())
        watching = [tasks.create_task(self._tell()), tasks.create_task(self._report())]
        try:
            for number in range(1, self._count + 1):
                await self._start(number, self._settings)
        except OSError as error:
            self.fail(StartupError(f"A worker cannot be started ({error})."))
        if self._loads:
            self._go_on()
        await self._stopping.wait()
        loading.cancel()
        self._tell_whole()
        if self._rolling is not None:
            self._rolling.cancel()
        await self._drain()
        for task in watching:
            task.cancel()

    @property
    def stopping(self) -> bool:
        """Whether it drains, or has failed to start."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Drain all workers and end. A second time: without finishing accepted work."""
        if self._stopping.is_set():
            _log.warning("stopping without finishing accepted work")
            for worker in self._running:
                worker.hurry()
        elif self.failure is None:
            _log.info("finishing accepted work, admitting no more")
        self._stopping.set()
        self._changed.set()

    def fail(self, failure: StartupError) -> None:
        """It cannot start; the first reason counts."""
        if not self._stopping.is_set():
            self.failure = failure
        self.stop()

    async def until_stopping(self) -> None:
        """Returns once it drains, or has failed to start."""
        await self._stopping.wait()

    async def until_one_serves(self) -> None:
        """Returns once a worker accepts connections, or it is clear that none will."""
        await self._until(lambda: any(worker.available for worker in self._workers.values()))

    async def until_all_serve(self) -> None:
        """Returns once every worker accepts connections, or it is clear that they will not."""
        await self._until(lambda: not self._absent())

    async def _until(self, met: Callable[[], bool]) -> None:
        while not met() and not self._stopping.is_set():
            self._changed.clear()
            await self._changed.wait()

    async def _drain(self) -> None:
        for worker in self._running:
            worker.drain()
        try:
            async with asyncio.timeout(self._settings.drain_s + _GOODBYE_S):
                for worker in [*self._running]:
                    await worker.ended.wait()
        except TimeoutError:
            for worker in self._running:
                _log.error("worker %d does not end; it is killed", worker.number)
                worker.kill()

    # ------------------------------------------------------------ engine

    async def _load(self) -> None:
        try:
            await self.engine.start()
        except StartupError as error:
            self.fail(error)
        except Exception as error:
            _log.exception("the engine could not be started")
            self.fail(StartupError(f"The engine could not be started ({type(error).__name__}: {error})."))

    def _say(self, message: EngineIs) -> None:
        for worker in self._running:
            worker.say(message)
        self._tell_whole()

    async def _tell(self) -> None:
        while True:
            self.engines.tell_workers()
            await asyncio.sleep(_LOOK_S)

    # ------------------------------------------------------------ workers

    async def _start(self, number: int, settings: Settings) -> WorkerProcess:
        worker = WorkerProcess(number, settings, changed=self._worker_changed, asked=self._asked)
        self._running.add(worker)
        if (now := self._workers.get(number)) is None or now.ended.is_set():
            self._workers[number] = worker
        self._spawn(self._watch(worker))
        await worker.open()
        for said in self.engines.all_messages():
            worker.say(said)
        worker.say(self.whole())
        if self._log_level is not None:
            worker.say(LogFrom(self._log_level))
        if self._stopping.is_set():
            worker.drain()
        return worker

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._tasks is not None  # noqa: S101 -- it runs
        return self._tasks.create_task(coroutine)

    def _worker_changed(self) -> None:
        self._begun = self._begun or any(worker.available for worker in self._workers.values())
        self._changed.set()
        self._tell_whole()

    async def _watch(self, worker: WorkerProcess) -> None:
        """See to it that there is always a worker of this number."""
        await worker.ended.wait()
        self._running.discard(worker)
        number = worker.number
        if self._workers.get(number) is not worker or self._stopping.is_set():
            return
        if not self._begun:
            self.fail(StartupError(worker.refused or f"A worker ended {worker.ending} while it started."))
            return
        restarts, after_s = self._restarts[number], time.monotonic() - worker.started_s
        restarts.ended(worker.settings, served=worker.serves.is_set(), after_s=after_s)
        how = worker.refused or f"it ended {worker.ending}"
        _log.error("worker %d (process %d) is started again: %s", number, worker.pid, how)
        await self._pause(restarts.pause_s())
        while self._workers.get(number) is worker and not self._stopping.is_set():
            try:
                await self._start(number, restarts.settings(self._settings))
            except OSError as error:
                _log.error("worker %d cannot be started now: %s", number, error)
                await self._pause(restarts.pause_s())

    async def _pause(self, pause_s: float) -> None:
        if pause_s:
            await within(pause_s, self._stopping.wait())

    # ------------------------------------------------------------ reload

    def reload(self, load: Callable[[], Settings]) -> None:
        """Replace all workers, one after another, by such with the settings that `load` reads.

        If that is under way, they are replaced once more afterwards, with what `load` reads then.
        """
        if load not in self._loads:
            self._loads.append(load)
        self._go_on()

    def _go_on(self) -> None:
        if self._tasks is None or self._stopping.is_set():
            return
        if self._rolling is None or self._rolling.done():
            self._rolling = self._spawn(self._roll())

    async def _roll(self) -> None:
        while self._loads and not self._stopping.is_set():
            load = self._loads.pop(0)
            try:
                settings = with_what_may_change(self._settings, load(), asked_port=self._asked_port)
            except StartupError as error:
                _log.error("the settings stay as they were: %s", error.message)
                continue
            await self._replace_all(settings)

    async def _replace_all(self, settings: Settings) -> None:
        try:
            await self.engines.add(settings)
        except StartupError as error:
            _log.error("the settings stay as they were: %s", error.message)
            return
        _log.info("replacing %d workers, one after another", self._count)
        for number in range(1, self._count + 1):
            if (why := await self._replace(number, settings)) is not None:
                self._stays(number, why)
                return
        self._settings = settings
        _log.info("all workers were replaced")
        await self.engines.remove(settings)

    async def _replace(self, number: int, settings: Settings) -> str | None:
        """Another worker takes the place of this one. Returns why it could not."""
        try:
            new = await self._start(number, settings)
        except OSError as error:
            return f"worker {number} cannot be started ({error})"
        while not new.serves.is_set() and not new.ended.is_set():
            self._changed.clear()
            await self._changed.wait()
        if not new.available:
            ended = f"worker {number} ended {new.ending} while it started"
            return ended if new.refused is None else f"refused: {new.refused}"
        old, self._workers[number] = self._workers.get(number), new
        if old is not None and old is not new:
            old.drain()
            self._worker_changed()
            await old.ended.wait()
        return None

    def renew(self, number: int) -> None:
        """Once what is under way is done: replace one worker, with the settings that it has."""
        before = self._rolling

        async def replaced() -> None:
            if before is not None:
                await before
            if (why := await self._replace(number, self._settings)) is not None:
                _log.error("worker %d stays: %s", number, why)
            await self._roll()  # what was asked for meanwhile

        self._rolling = self._spawn(replaced())

    def _stays(self, number: int, why: str) -> None:
        """The worker of this number, and those after it, were not replaced."""
        if number == 1:
            _log.error("the settings stay as they were: %s", why)
        else:
            have = "worker 1 has" if number == 2 else f"workers 1 to {number - 1} have"
            _log.error("only %s the new settings; reload again: %s", have, why)

    # ------------------------------------------------------------ the whole

    @property
    def settings(self) -> Settings:
        """Those that all workers have, or had before the reload that is under way."""
        return self._settings

    def workers(self) -> list[WorkerProcess]:
        """All that run, also while they drain."""
        return sorted(self._running, key=lambda worker: (worker.number, worker.started_s))

    def log_from(self, level: str) -> None:
        """Every worker logs what is at least so severe, also one that is started later."""
        self._log_level = level
        for worker in self._running:
            worker.say(LogFrom(level))

    def whole(self) -> Whole:
        return Whole(
            sum(worker.report.running for worker in self._running),
            sum(worker.report.waiting for worker in self._running),
            draining=self._stopping.is_set(),
            serves=any(worker.available for worker in self._workers.values()),
            absent=self._absent(),
            lanes=self.engine.lane_health() if isinstance(self.engine, Pool) else (),
            store=next(filter(None, (worker.report.store for worker in self._running)), ""),
        )

    def _absent(self) -> str:
        serve = {number for number, worker in self._workers.items() if worker.available}
        *others, last = ["", *(str(number) for number in range(1, self._count + 1) if number not in serve)]
        if len(others) < 2:
            return f"Worker {last} does not serve now." if last else ""
        return f"Workers {', '.join(others[1:])} and {last} do not serve now."

    def _tell_whole(self) -> None:
        whole = self.whole()
        for worker in self._running:
            worker.say(whole)

    async def _report(self) -> None:
        """Tell the workers of one another, and notice those that do not answer."""
        while True:
            await asyncio.sleep(_REPORT_S)
            for worker in self._running:
                # Counted, as the time in which this process itself was frozen does not matter.
                worker.unanswered += 1
                if worker.unanswered > (_FROZEN_REPORTS if worker.serves.is_set() else _START_REPORTS):
                    _log.error("worker %d (process %d) does not answer; it is killed", worker.number, worker.pid)
                    worker.kill()
                elif worker.unanswered > _SILENT_REPORTS and worker.answers and not worker.is_shut:
                    self._shut(worker)
            self._tell_whole()

    def _shut(self, silent: WorkerProcess) -> None:
        """Let others have its connections, if there are others: where all are slow, it is the machine."""
        if any(each.available and each.unanswered <= _SILENT_REPORTS for each in self._running - {silent}):
            _log.warning(
                "worker %d (process %d) does not answer; others get its new connections", silent.number, silent.pid
            )
            silent.shut()

    async def metrics(self, names: Sequence[str]) -> bytes:
        """Those of all workers, each with its number, also while it drains, and those of the engine."""
        whose = {worker: str(number) for number, worker in self._workers.items()}
        # Those that were replaced count for what they still finish.
        whose |= {each: f"{each.number}-draining" for each in self._running - whose.keys() if each.draining}
        workers = sorted((worker for worker in whose if worker.answers), key=whose.__getitem__)
        own, *pages = await asyncio.gather(
            self._own_metrics(names), *(worker.metrics(names) for worker in workers)
        )
        labels = ["", *(whose[worker] for worker in workers)]
        # Without an engine that is shared, each worker has its own.
        is_shared = bool(self._settings.engines) or self._settings.engine.is_shared
        wanted = _belongs if is_shared else lambda whose, _name: bool(whose)
        return merged(zip(labels, [own, *pages], strict=True), label="worker", wanted=wanted)

    def _asked(self, worker: WorkerProcess, question: GetMetrics) -> None:
        async def answer() -> None:
            worker.say(Metrics(question.number, await self.metrics(question.names)))

        self._spawn(answer())


def _belongs(whose: str, name: str) -> bool:
    """The engine's metrics are those of the parent, which serves no client; all others are the workers'."""
    return name.startswith(("gateway_engine_", "vllm:")) is (whose == "")


def with_what_may_change(now: Settings, settings: Settings, *, asked_port: int) -> Settings:
    """The new settings, but for those of what goes on running. asked_port: what the first settings said of it.

    Raises `StartupError` where one engine is made several, or several one.
    """
    if bool(now.engines) is not bool(settings.engines):
        raise StartupError("one engine is made several, or several one, when the gateway is started again.")
    fixed = {name: getattr(now, name) for name in _FIXED}
    asked = replace(settings, port=now.port) if settings.port == asked_port else settings
    if changed := [name for name in _FIXED if getattr(asked, name) != fixed[name]]:
        _log.warning("a change of %s takes effect when the gateway is started again", ", ".join(changed))
    return replace(settings, **fixed)

"""The queue and the worker processes behind it: each text gets its translation back.

Knows: processes, a queue, how a batch is gathered. Must not know: HTTP, which engine it is.

When a worker is gone, everything that waits ends with an error, and nothing is accepted from then on.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.util import Finalize

from msgspec import Struct

from gateway.config import EngineSettings
from gateway.engines.host import processes
from gateway.engines.host.orphans import exit_with_parent
from loadtest.baselines.architecture import Plan
from loadtest.baselines.engines import BatchEngine, Job, Translation, build

# For workers to end by themselves, between looks at them, and to be gone once killed.
_LEAVE_S, _LOOK_S, _KILL_S = 10.0, 0.05, 5.0


class Refused(Exception):
    """Nothing is accepted now; its text is a sentence."""


class Timed(Struct, frozen=True):
    """A translation, and how long its text waited before the worker and its answer behind it."""

    translation: Translation
    queue_s: float


class _Waiting(Struct, frozen=True):
    job: Job
    queued_s: float
    answer: asyncio.Future[Timed]


class Workers:
    """The worker processes of one plan.

    reason: why nothing is accepted; empty while texts are. running: texts with workers. on_broken: told once, when
    nothing will be accepted any more.
    """

    def __init__(self, plan: Plan, on_broken: Callable[[], object] = lambda: None) -> None:
        self.reason = "the engines are loading"
        self.running = 0
        self._plan = plan
        self._on_broken = on_broken
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(plan.max_waiting)
        self._unanswered: set[asyncio.Future[Timed]] = set()
        self._loading = plan.workers
        self._left = False
        # Forked after CUDA was touched, a process cannot use it.
        context = multiprocessing.get_context("spawn")
        self._pools = [ProcessPoolExecutor(1, context) for _ in range(plan.workers)]
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def waiting(self) -> int:
        """Texts in the queue."""
        return self._queue.qsize()

    def start(self) -> None:
        """Start the processes; their engines load meanwhile."""
        self._tasks = [
            asyncio.create_task(self._work(number, pool)) for number, pool in enumerate(self._pools, start=1)
        ]

    async def translate(self, text: str, source: str, target: str) -> Timed:
        """Through the queue and back. Raises `Refused`."""
        if self.reason:
            raise Refused(f"The service takes nothing: {self.reason}.")
        answer: asyncio.Future[Timed] = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait(_Waiting(Job(text, source, target), time.monotonic(), answer))
        except asyncio.QueueFull:
            raise Refused("Too many texts are waiting.") from None
        self._unanswered.add(answer)
        answer.add_done_callback(self._unanswered.discard)
        return await answer

    async def drain(self) -> None:
        """Accept nothing more; what is under way goes on, and whoever serves waits for the answers."""
        self._refuse("it is being stopped")

    async def stop(self) -> None:
        """End the workers, and whatever still waits for them with an error."""
        idle = not self._loading and not self.running
        self._refuse("it was stopped")
        self._fail("The service was stopped.")
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await asyncio.to_thread(self._end, _LEAVE_S if idle else 0.0)

    def _end(self, patience_s: float) -> None:
        # Engines have processes of their own, which nobody would find behind a worker that is gone.
        found = processes.descendants(processes.children())
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        until_s = time.monotonic() + patience_s
        while processes.children() and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
        processes.kill(found, _KILL_S)

    # ------------------------------------------------------------ one worker

    async def _work(self, number: int, pool: ProcessPoolExecutor) -> None:
        loop, doing = asyncio.get_running_loop(), "could not be loaded"
        try:
            await loop.run_in_executor(pool, _load, self._plan.engine)
            self._loading -= 1
            if not self._loading:
                self.reason = ""
            doing = "failed"
            while True:
                batch = await self._take()
                self.running += len(batch)
                began_s, ended_s, made = await loop.run_in_executor(pool, _translate, [each.job for each in batch])
                self.running -= len(batch)
                now_s = time.monotonic()
                for waiting, translation in zip(batch, made, strict=True):
                    if not waiting.answer.done():  # whoever waited may have given up
                        queue_s = began_s - waiting.queued_s + now_s - ended_s
                        waiting.answer.set_result(Timed(translation, queue_s))
        except BrokenProcessPool:
            self._break(f"The process of worker {number} ended.")
        except Exception as error:
            self._break(f"The engine of worker {number} {doing}: {_sentence(error)}")

    async def _take(self) -> list[_Waiting]:
        """Wait for a text, then, for the plan's window, for further ones up to a full batch."""
        batch = [await self._queue.get()]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._plan.window_s):
                while len(batch) < self._plan.batch:
                    batch.append(await self._queue.get())
        return batch

    def _break(self, reason: str) -> None:
        self._fail(reason)
        if not self._left:
            self._refuse(reason.rstrip("."))
            self._on_broken()

    def _refuse(self, reason: str) -> None:
        if not self._left:
            self._left, self.reason = True, reason

    def _fail(self, reason: str) -> None:
        for answer in list(self._unanswered):
            if not answer.done():
                answer.set_result(Timed(Translation(failed=reason), 0.0))


# ---------------------------------------------------------------- in a worker's process

_engines: list[BatchEngine] = []


def _load(settings: EngineSettings) -> None:
    # Ctrl-C is for the front, which lets its workers finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exit_with_parent()
    engine = build(settings)
    Finalize(None, engine.close, exitpriority=10)
    _engines.append(engine)


def _translate(jobs: Sequence[Job]) -> tuple[float, float, list[Translation]]:
    """When the engine began and ended, and one translation for each job."""
    began_s = time.monotonic()
    try:
        made = _engines[0].translate(jobs)
    except ValueError as error:
        # What the engine refuses; it lives on.
        made = [Translation(failed=f"The engine refused this text: {_sentence(error)}")] * len(jobs)
    return began_s, time.monotonic(), made


def _sentence(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]

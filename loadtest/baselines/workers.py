"""The front's side of the queues: hands texts to workers and brings each translation to whoever waits for it.

Knows: processes, queues, an event loop. Must not know: HTTP, engines.

All workers take from one queue. One that is killed may take the queue's lock along, so that no other can take from
it any more: when a worker is gone, everything that waits ends with an error, and nothing is accepted from then on.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from multiprocessing.process import BaseProcess
from queue import Empty, Full

from msgspec import Struct

from gateway.engines.host import processes
from loadtest.baselines.architecture import Plan
from loadtest.baselines.messages import Answers, Begun, Broken, Job, Ready, Report, Translation
from loadtest.baselines.worker import Jobs, Reports, work

__all__ = ["Refused", "State", "Workers"]

# Between looks at whether the workers live; to end by themselves; to be gone once killed.
_LOOK_S, _LEAVE_S, _KILL_S = 0.25, 10.0, 5.0


class Refused(Exception):
    """Nothing is accepted now; its text is a sentence."""


class State(Enum):
    """What it does with a text: it takes it when it is READY. See _NEXT."""

    STARTING = "starting"
    READY = "ready"
    BROKEN = "broken"
    STOPPED = "stopped"


_NEXT = {
    State.STARTING: {State.READY, State.BROKEN, State.STOPPED},
    State.READY: {State.BROKEN, State.STOPPED},
    State.BROKEN: set[State](),
    State.STOPPED: set[State](),
}


class Timed(Struct, frozen=True):
    """A translation. queue_s: how long its text waited in one queue and the answer in the other."""

    translation: Translation
    queue_s: float


class Workers:
    """The worker processes of one plan, and what is on its way through them.

    on_broken: told in the event loop that nothing will be accepted any more. waiting, running: texts in the queue,
    and with workers.
    """

    def __init__(self, plan: Plan, on_broken: Callable[[], object] = lambda: None) -> None:
        self.state = State.STARTING
        self.reason = "the engines are loading"
        self.waiting = self.running = 0
        self._plan = plan
        self._on_broken = on_broken
        # Forked after CUDA was touched, a process cannot use it.
        context = multiprocessing.get_context("spawn")
        self._jobs: Jobs = context.Queue(plan.max_waiting)
        self._reports: Reports = context.Queue()
        self._processes: list[BaseProcess] = [
            context.Process(target=work, args=(number, plan, self._jobs, self._reports), name=f"worker {number}")
            for number in range(1, plan.workers + 1)
        ]
        self._ready: set[int] = set()
        # Whether all workers take from the queue.
        self._reads_queue = False
        self._pending: dict[int, asyncio.Future[Timed]] = {}
        self._queued_s: dict[int, float] = {}
        self._serial = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading = threading.Thread(target=self._read, name="answers")
        self._leaving = threading.Event()

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Start the processes; their engines load meanwhile."""
        self._loop = asyncio.get_running_loop()
        for process in self._processes:
            process.start()
        self._reading.start()

    async def drain(self) -> None:
        """Accept nothing more; what is under way goes on, and whoever serves waits for the answers."""
        self._change(State.STOPPED, "it is being stopped")

    async def stop(self) -> None:
        """End the workers, and whatever still waits for them with an error."""
        self._change(State.STOPPED, "it was stopped")
        self._end_pending("The service was stopped.")
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        # Engines have processes of their own, which nobody would find behind a worker that is gone.
        found = processes.descendants(processes.children())
        if self._reads_queue:
            for _ in self._processes:
                with suppress(Full):
                    self._jobs.put(None, timeout=_LOOK_S)
        else:
            # One loads its engine, or is gone with the queue's lock: nobody would read it.
            for process in self._processes:
                process.terminate()
        until_s = time.monotonic() + _LEAVE_S
        for process in self._processes:
            process.join(max(until_s - time.monotonic(), 0.0))
        processes.kill(found, _KILL_S)
        self._leaving.set()
        self._reading.join()
        for queue in (self._jobs, self._reports):
            queue.close()
            # What no worker will take any more must not keep this process.
            queue.cancel_join_thread()

    # ------------------------------------------------------------ in the event loop

    async def translate(self, text: str, source: str, target: str) -> Timed:
        """Through the queues and back. Raises `Refused`."""
        if self.state is not State.READY:
            raise Refused(f"The service takes nothing: {self.reason}.")
        self._serial += 1
        job = Job(self._serial, text, source, target, time.monotonic())
        try:
            self._jobs.put_nowait(job)
        except Full:
            raise Refused("Too many texts are waiting.") from None
        self.waiting += 1
        self._queued_s[job.id] = job.queued_s
        future: asyncio.Future[Timed] = asyncio.get_running_loop().create_future()
        self._pending[job.id] = future
        try:
            return await future
        finally:
            self._pending.pop(job.id, None)

    def _take(self, report: Report) -> None:
        match report:
            case Ready(worker):
                self._ready.add(worker)
                if len(self._ready) == len(self._processes):
                    self._reads_queue = True
                    self._change(State.READY, "")
            case Begun(jobs=jobs):
                self.waiting -= len(jobs)
                self.running += len(jobs)
            case Answers():
                self._answer(report)
            case Broken(reason=reason):
                self._break(reason)

    def _answer(self, report: Answers) -> None:
        now_s = time.monotonic()
        self.running -= len(report.answers)
        for answer in report.answers:
            queued_s = self._queued_s.pop(answer.job)
            # Whoever waited may have given up.
            if (future := self._pending.get(answer.job)) is not None and not future.done():
                queue_s = report.began_s - queued_s + now_s - report.ended_s
                future.set_result(Timed(answer.translation, queue_s))

    def _break(self, reason: str) -> None:
        # Also one that is told to stop, and breaks over it, is not to be waited for.
        self._reads_queue = False
        self._end_pending(reason)
        if self._change(State.BROKEN, reason.rstrip(".")):
            self._on_broken()

    def _change(self, state: State, reason: str) -> bool:
        allowed = state in _NEXT[self.state]
        if allowed:
            self.state, self.reason = state, reason
        return allowed

    def _end_pending(self, reason: str) -> None:
        for future in self._pending.values():
            if not future.done():
                future.set_result(Timed(Translation(failed=reason), 0.0))

    # ------------------------------------------------------------ in the thread that reads

    def _read(self) -> None:
        assert self._loop is not None  # noqa: S101 -- set before the thread starts
        while not self._leaving.is_set():
            try:
                report = self._reports.get(timeout=_LOOK_S)
            except Empty:
                if gone := next((each for each in self._processes if not each.is_alive()), None):
                    self._tell(Broken(0, f"The {gone.name} ended with status {gone.exitcode}."))
                    return
            else:
                self._tell(report)

    def _tell(self, report: Report) -> None:
        assert self._loop is not None  # noqa: S101 -- set before the thread starts
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._take, report)

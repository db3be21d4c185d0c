"""A worker: a process that takes texts from one queue, translates them, and puts the translations into another.

Knows: both queues, how a batch is gathered. Must not know: HTTP, how many workers there are, which engine it has.
"""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Sequence
from queue import Empty
from typing import TYPE_CHECKING, TypeAlias

from gateway.engines.host.orphans import exit_with_parent
from loadtest.baselines import engines
from loadtest.baselines.architecture import Plan
from loadtest.baselines.messages import Answer, Answers, Begun, Broken, Job, Ready, Report, Translation

__all__ = ["Jobs", "Reports", "take", "work"]

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

Jobs: TypeAlias = "Queue[Job | None]"
Reports: TypeAlias = "Queue[Report]"


def work(number: int, plan: Plan, jobs: Jobs, reports: Reports) -> None:
    """The whole life of worker `number`: until it takes a null from the queue, or cannot go on."""
    # Ctrl-C is for the front, which lets its workers finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exit_with_parent()
    try:
        engine = engines.build(plan.engine)
    except Exception as error:
        traceback.print_exc()
        reports.put(Broken(number, f"The engine of worker {number} could not be loaded: {_sentence(error)}"))
        return
    try:
        reports.put(Ready(number))
        more = True
        while more:
            batch, more = take(jobs, plan.batch, plan.window_s)
            if batch:
                reports.put(Begun(number, [job.id for job in batch]))
                began_s = time.monotonic()
                made = _translated(engine, batch)
                answers = [Answer(job.id, each) for job, each in zip(batch, made, strict=True)]
                reports.put(Answers(number, began_s, time.monotonic(), answers))
    except Exception as error:
        traceback.print_exc()
        reports.put(Broken(number, f"The engine of worker {number} failed: {_sentence(error)}"))
    finally:
        engine.close()


def take(jobs: Jobs, count: int, window_s: float) -> tuple[list[Job], bool]:
    """Wait for a job, then, for `window_s`, for up to `count` in all. False: a null came, and nothing follows."""
    batch: list[Job] = []
    job = jobs.get()
    until_s = time.monotonic() + window_s
    while job is not None:
        batch.append(job)
        if len(batch) == count:
            return batch, True
        try:
            job = jobs.get(timeout=max(until_s - time.monotonic(), 0.0))
        except Empty:
            return batch, True
    return batch, False


def _translated(engine: engines.BatchEngine, batch: Sequence[Job]) -> list[Translation]:
    try:
        return engine.translate(batch)
    except ValueError as error:
        # What the engine refuses; it lives on.
        return [Translation(failed=f"The engine refused this text: {_sentence(error)}")] * len(batch)


def _sentence(error: Exception) -> str:
    lines = (str(error) or type(error).__name__).strip().splitlines()
    return lines[0]

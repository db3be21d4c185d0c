"""Finds the processes of an engine while it lives, and kills them all when it ends.

An engine's process may start workers. When it is killed, the workers lose their parent. When it hangs, it passes
no signal on. So the workers are found beforehand, and each is killed with SIGKILL.
Knows: processes, those that `multiprocessing` starts. Must not know: vLLM.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeAlias

import psutil

# A process; a later one with the same pid is another.
Process: TypeAlias = psutil.Process

_LOOK_S = 0.02


def children() -> frozenset[Process]:
    """The running child processes that this process started through `multiprocessing`."""
    # `active_children` also reaps those that have ended.
    return with_pids(*(child.pid for child in multiprocessing.active_children()))


def with_pids(*pids: int | None) -> frozenset[Process]:
    """The running processes with these pids."""
    found: set[Process] = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            if pid is not None:
                found.add(Process(pid))
    return frozenset(found)


def descendants(roots: Iterable[Process]) -> frozenset[Process]:
    """`roots` and all their descendants that are running now."""
    # Not psutil's `children`, which fails where one process of the machine may not be read (`hidepid`).
    by_parent: dict[int, list[Process]] = {}
    for process in with_pids(*psutil.pids()):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            by_parent.setdefault(process.ppid(), []).append(process)
    found: set[Process] = set()
    pending = [root for root in roots if _runs(root)]
    while pending:
        if (process := pending.pop()) not in found:
            found.add(process)
            pending += by_parent.get(process.pid, [])
    return frozenset(found)


def kill(processes: Iterable[Process], within_s: float) -> frozenset[Process]:
    """Send SIGKILL to those that still run, and wait until they are gone; blocks. Returns those that remain."""
    left = frozenset(process for process in processes if _runs(process))
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    until_s = time.monotonic() + within_s
    while left and time.monotonic() < until_s:
        time.sleep(_LOOK_S)
        multiprocessing.active_children()
        left = frozenset(process for process in left if _runs(process))
    return left


def any_runs(processes: Iterable[Process]) -> bool:
    """Whether any of them still runs."""
    return any(map(_runs, processes))


def _runs(process: Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        # A zombie holds no memory and no device, unless other threads of it are still ending; its parent reaps it.
        if process.is_running():
            return bool(process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    return False

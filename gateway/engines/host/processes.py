"""Finds the processes of an engine while it lives, and kills them all when it ends.

An engine's process may start workers. When it is killed, the workers lose their parent. When it hangs, it passes
no signal on. So the workers are found beforehand, and each is killed with SIGKILL.
Knows: Linux's /proc, processes started through `multiprocessing`. Must not know: vLLM.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_LOOK_S = 0.02


class Process(Struct, frozen=True):
    """A process. Its start time tells it apart from a later process with the same pid."""

    pid: int
    # Start time in clock ticks since boot.
    began: int


def children() -> frozenset[Process]:
    """The running child processes that this process started through `multiprocessing`."""
    # `active_children` also reaps those that have ended.
    return of(*(child.pid for child in multiprocessing.active_children()))


def of(*pids: int | None) -> frozenset[Process]:
    """The running processes with these pids."""
    return frozenset(read[0] for pid in pids if pid is not None and (read := _read(pid)) is not None)


def descendants(roots: Iterable[Process]) -> frozenset[Process]:
    """`roots` and all their descendants that are running now."""
    by_parent: dict[int, list[Process]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (read := _read(int(entry.name))) is not None:
            process, parent, _ = read
            by_parent.setdefault(parent, []).append(process)
    found: set[Process] = set()
    pending = [process for process in roots if _runs(process)]
    while pending:
        if (process := pending.pop()) not in found:
            found.add(process)
            pending += by_parent.get(process.pid, [])
    return frozenset(found)


def kill(processes: Iterable[Process], within_s: float) -> frozenset[Process]:
    """Send SIGKILL to those that still run, and wait until they are gone; blocks. Returns those that remain."""
    left = frozenset(process for process in processes if _runs(process))
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    until_s = time.monotonic() + within_s
    while left and time.monotonic() < until_s:
        time.sleep(_LOOK_S)
        multiprocessing.active_children()
        left = frozenset(process for process in left if _runs(process))
    return left


def run(processes: Iterable[Process]) -> bool:
    """Whether any of them still runs."""
    return any(map(_runs, processes))


def _runs(process: Process) -> bool:
    read = _read(process.pid)
    return read is not None and read[0] == process and read[2]


def _read(pid: int) -> tuple[Process, int, bool] | None:
    """The process, its parent's pid and whether it runs; see proc_pid_stat(5)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The process name is in parentheses and may contain anything.
    fields = stat.rpartition(")")[2].split()
    # A zombie holds no memory and no device, unless other threads of it are still ending; its parent reaps it.
    runs = fields[0] != "Z" or int(fields[17]) > 1
    return Process(pid, int(fields[19])), int(fields[1]), runs

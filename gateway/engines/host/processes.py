"""The processes that belong to an engine: finding them while it lives, and leaving none when it does not.

An engine's process may start workers of its own; when it is killed they belong to nobody, and when it hangs it
passes no signal on. So they are found beforehand, and killed one by one with the signal that nothing can hold up.
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

__all__ = ["Process", "children", "descendants", "kill", "of"]

_LOOK_S = 0.02


class Process(Struct, frozen=True):
    """A process, told apart from a later one of the same number by when it began (clock ticks since boot)."""

    pid: int
    began: int


def children() -> frozenset[Process]:
    """What this process started through `multiprocessing` and still runs."""
    # Asking reaps those that have ended.
    return of(*(child.pid for child in multiprocessing.active_children()))


def of(*pids: int | None) -> frozenset[Process]:
    """The processes that have these numbers now, as far as there are such."""
    return frozenset(read[0] for pid in pids if pid is not None and (read := _read(pid)) is not None)


def descendants(roots: Iterable[Process]) -> frozenset[Process]:
    """`roots` with everything they started, as far as it runs now."""
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
    """Send SIGKILL to those that still run, and wait until they are gone; blocks. Returns those that are left."""
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


def _runs(process: Process) -> bool:
    read = _read(process.pid)
    return read is not None and read[0] == process and read[2]


def _read(pid: int) -> tuple[Process, int, bool] | None:
    """The process, its parent's number and whether it runs; see proc_pid_stat(5)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name stands in parentheses and may hold anything.
    fields = stat.rpartition(")")[2].split()
    # A zombie holds no memory and no device, unless other threads of it are still ending; its parent reaps it.
    runs = fields[0] != "Z" or int(fields[17]) > 1
    return Process(pid, int(fields[19])), int(fields[1]), runs

"""Processes of ours and those below them: finding them, what they use, ending them.

Knows: Linux's /proc and signals. Must not know: what the processes are for.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

BESIDE_ITS_ENGINE = "loadtest gateway"
"""What the process of a gateway is called that was started by the one that holds its engine."""

WORKER = re.compile(r"^gateway worker \d+\b")
"""What one of several workers of a gateway is called."""

STORE = re.compile(r"^(\S*/)?(redis|valkey)-server\b")
"""What the store is called that they share."""

# clock_getcpuclockid(3): the clock of a whole process, threads included. See posix-timers.h of Linux.
_PROCESS_CLOCK = 2


def below(*pids: int) -> list[int]:
    """Every process below these that lives; not themselves."""
    by_parent: dict[int, list[int]] = {}
    for pid, fields in _all():
        by_parent.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    pending = list(pids)
    while pending:
        children = by_parent.get(pending.pop(), [])
        found += children
        pending += children
    return found


def in_session(leader: int) -> list[int]:
    """Every process of the session that this one leads or led, itself included."""
    return [pid for pid, fields in _all() if int(fields[3]) == leader]


def command(pid: int) -> str:
    """Its command line; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def named_below(pid: int, name: re.Pattern[str]) -> list[int]:
    """Processes below this one whose command line matches."""
    return [found for found in below(pid) if name.search(command(found))]


def cpu_s(pid: int) -> float | None:
    """CPU time since it began, all its threads included; None when it is gone."""
    try:
        return time.clock_gettime((~pid << 3) | _PROCESS_CLOCK)
    except OSError:
        return None


def everything_cpu_s() -> float:
    """CPU time of the whole machine since it began."""
    times = psutil.cpu_times()
    # What guests used is in the user's time.
    return float(sum(times[:8]) - times.idle - times.iowait)


def resident_mib(pid: int) -> float:
    """Resident memory; 0 when it is gone."""
    with suppress(psutil.NoSuchProcess):
        return float(round(psutil.Process(pid).memory_info().rss / 2**20, 1))
    return 0.0


def signal_below(pid: int, name: re.Pattern[str], number: signal.Signals) -> bool:
    """Signal the first process below whose command line matches; false when there is none."""
    for found in named_below(pid, name):
        with suppress(ProcessLookupError):
            os.kill(found, number)
            return True
    return False


def _all() -> Iterator[tuple[int, list[str]]]:
    """Every process and the fields of its `stat` from the state on: see proc_pid_stat(5)."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue  # it ended
        # The name in parentheses may contain anything; what follows the last one is numbers.
        yield int(name), stat.rpartition(")")[2].split()

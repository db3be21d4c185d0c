"""Who used the CPU: processes with all those below them, by part of what is measured.

Knows: parts and their first processes. Must not know: what is measured, or when.

The part `serving` is these processes alone; what they started is `engine`, except further processes that answer
clients. Of any other part, what it started belongs to it. `other` is the rest of the machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from loadtest.systems import processes

__all__ = ["Accounts", "Reading"]

# Processes come and go slowly; looking for them costs a millisecond.
_SEARCH_S = 2.0

# The name that vLLM gives further processes of its front end.
_FRONT_END = re.compile(r"APIServer")


class Reading(Struct, frozen=True):
    """at_s: on the machine's monotonic clock. cpu_s: so far, by part; to be subtracted from a later one."""

    at_s: float
    cpu_s: dict[str, float]

    def since(self, earlier: Reading) -> dict[str, float]:
        """CPU seconds between two readings, by part."""
        return {part: max(now_s - earlier.cpu_s.get(part, now_s), 0.0) for part, now_s in self.cpu_s.items()}


class Accounts:
    """CPU time by part. parts: name → first processes; a process belongs to the last part that names it or an
    ancestor of it."""

    def __init__(self, parts: Mapping[str, Sequence[int]]) -> None:
        self._parts = parts
        self._owner: dict[int, str] = {}
        self._spent_s: dict[int, float] = {}
        self._searched_s = -_SEARCH_S

    def read(self, *, search: bool = True) -> Reading:
        """Take a reading; without `search`, processes that are younger than two seconds may be missed."""
        now_s = time.monotonic()
        if search or now_s - self._searched_s >= _SEARCH_S:
            self._searched_s = now_s
            self._search()
        cpu_s = dict.fromkeys([*self._parts, *(["engine"] if "serving" in self._parts else [])], 0.0)
        for pid, part in self._owner.items():
            if (used_s := processes.cpu_s(pid)) is not None:
                # Of a process that has ended, what it had used stays counted.
                self._spent_s[pid] = used_s
            cpu_s[part] += self._spent_s.get(pid, 0.0)
        cpu_s["other"] = processes.everything_cpu_s() - sum(cpu_s.values())
        return Reading(now_s, cpu_s)

    def _search(self) -> None:
        for part, pids in self._parts.items():
            for pid in pids:
                self._owner[pid] = part
            for pid in processes.below(*pids):
                if part != "serving":
                    self._owner[pid] = part
                elif pid not in self._owner:
                    self._owner[pid] = "serving" if _FRONT_END.search(processes.command(pid)) else "engine"

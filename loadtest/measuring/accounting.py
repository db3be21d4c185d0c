"""Who used the CPU: processes with all those below them, by part of what is measured.

Knows: parts and their first processes. Must not know: what is measured, or when.

The part `serving` is what answers clients: its first processes, a gateway's workers with their store, further
processes of vLLM's front end, and the process that hosts a gateway's engine, which does there what in `vllm serve`
the process does that answers. What else these started is `engine`. Of any other part, what it started belongs to
it. `other` is the rest of the machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from loadtest.systems import processes

HOST = "host"
"""The process in which a gateway's engine runs: told by itself, and counted in `serving` too. Those of further
engines are `host 2`, `host 3` … Among the parts that are given, its process, where it
is not found below the gateway's."""

STORE = "store"
"""The store that a gateway's workers share, where one was started below it: counted in `serving` too."""

# Processes come and go slowly; looking for them costs a millisecond.
_SEARCH_S = 2.0

# The names that processes give themselves: a gateway's workers, their store, and further processes of vLLM's front
# end; what hosts a gateway's engine; a gateway that does nothing while its engine is asked past it, or is named.
_SERVING = (processes.WORKER, re.compile(r"APIServer"))
_ENGINE_HOST = re.compile(r"^gateway engine host\b")
_BESIDE = re.compile(rf"^{processes.BESIDE_ITS_ENGINE}\b")


def hosts(parts: Iterable[str]) -> list[str]:
    """Those of these parts that are hosts of engines."""
    return [part for part in parts if part.partition(" ")[0] == HOST]


def _told_twice(part: str) -> bool:
    return part == STORE or bool(hosts([part]))


class Reading(Struct, frozen=True):
    # On the machine's monotonic clock.
    at_s: float
    # So far, by part; to be subtracted from a later one. Hosts and `STORE` are there where such processes are.
    cpu_s: dict[str, float]

    def since(self, earlier: Reading) -> dict[str, float]:
        """CPU seconds between two readings, by part."""
        # Before its first reading, such a process has used nothing.
        before = {part: 0.0 if _told_twice(part) else now_s for part, now_s in self.cpu_s.items()}
        before |= earlier.cpu_s
        return {part: max(now_s - before[part], 0.0) for part, now_s in self.cpu_s.items()}


class Accounts:
    """CPU time by part. parts: name → first processes, `HOST` beside `serving` only; a process belongs to the last
    part that names it or an ancestor of it."""

    def __init__(self, parts: Mapping[str, Sequence[int]]) -> None:
        self._parts = parts
        self._owner: dict[int, str] = {}
        self._spent_s: dict[int, float] = {}
        self._searched_s = -_SEARCH_S

    def read(self, *, search: bool = True) -> Reading:
        """Take a reading; without `search`, processes that are younger than two seconds may be missed."""
        if search or time.monotonic() - self._searched_s >= _SEARCH_S:
            self._search()
            self._searched_s = time.monotonic()
        # On a busy machine it took its time, in which CPU was used.
        now_s = time.monotonic()
        cpu_s = dict.fromkeys([*self._parts, *(["engine"] if "serving" in self._parts else [])], 0.0)
        for pid, part in self._owner.items():
            if (used_s := processes.cpu_s(pid)) is not None:
                # What a process had used that has ended stays counted.
                self._spent_s[pid] = used_s
            cpu_s[part] = cpu_s.get(part, 0.0) + self._spent_s.get(pid, 0.0)
        cpu_s["other"] = processes.everything_cpu_s() - sum(cpu_s.values())
        for part in filter(_told_twice, [*cpu_s]):
            cpu_s["serving"] += cpu_s[part]
        return Reading(now_s, cpu_s)

    def serving_mib(self) -> float | None:
        """Resident memory of all that serves now, what they share counted in each; None where nothing serves."""
        self._search()
        serving = [pid for pid, part in self._owner.items() if part == "serving" or _told_twice(part)]
        return round(sum(map(processes.resident_mib, serving)), 1) if serving else None

    def _search(self) -> None:
        for part, pids in self._parts.items():
            self._owner.update(dict.fromkeys(pids, part))
            for pid in processes.below(*pids):
                if (owner := self._below(part, pid)) is not None:
                    self._owner[pid] = owner

    def _below(self, part: str, pid: int) -> str | None:
        """To which part a process below this one belongs; None where another says so, or none."""
        if part != "serving" and not _told_twice(part):
            return part
        # Looked at each time: a process is named a moment after it began. One that ended has no name any more.
        name = processes.command(pid)
        if not name:
            return self._owner.get(pid, "engine")
        if _BESIDE.search(name):
            return None
        if _ENGINE_HOST.search(name):
            return self._host(pid)
        if processes.STORE.search(name):
            return STORE
        return "serving" if any(each.search(name) for each in _SERVING) else "engine"

    def _host(self, pid: int) -> str:
        """The part of this process, which hosts an engine."""
        known = hosts(dict.fromkeys(self._owner.values()))
        if (own := self._owner.get(pid)) in known:
            return own
        return f"{HOST} {len(known) + 1}" if known else HOST

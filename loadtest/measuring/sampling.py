"""The machine over time, while something is measured on it; and who used its CPU: processes with all those below
them, by part of what is measured.

Knows: the GPU, the CPU's accounts, parts and their first processes, what servers say of themselves. Must not know:
what is measured, or when.

The part `serving` is what answers clients: its first processes, a gateway's workers with their store, further
processes of vLLM's front end, and the process that hosts a gateway's engine, which does there what in `vllm serve`
the process does that answers. What else these started is `engine`. Of any other part, what it started belongs to
it. `other` is the rest of the machine.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from statistics import fmean
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import asdict

from gateway.config.settings import EngineSettings
from gateway.engines import gpu
from gateway.engines.vllm.arguments import gpus_used
from gateway.engines.vllm.devices import spelled
from loadtest.systems import processes
from loadtest.systems.server import get, only
from loadtest.trial.values import Address, Http, OpenAiServer, Sample

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


# ---------------------------------------------------------------- the machine over time


# A server is asked so often at most, and for so small a part of the time, because answering is work for it.
_SCRAPE_S = 0.5
_SCRAPE_SHARE = 0.01
_SCRAPE_LIMIT_S = 5.0


class Counters(Struct, frozen=True):
    """What a system calls that which a sample has by these names."""

    running: str
    waiting: str
    tokens: str


_GATEWAY = Counters("gateway_engine_running", "gateway_engine_waiting", "gateway_tokens_total")
_VLLM = Counters("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:generation_tokens_total")
_BASELINE = Counters("baseline_running", "baseline_waiting", "baseline_tokens_total")


def counters(address: Address) -> Counters:
    """Those of the system there. Others that it shows are not its own: vLLM's server is started by a module of the
    gateway's and so has the gateway's counters, which stay at 0; the gateway shows some of vLLM's."""
    match address:
        case OpenAiServer():
            return _VLLM
        case Http():
            return _BASELINE
        case _:
            return _GATEWAY


def engine_gpus(settings: Mapping[str, Any]) -> list[gpu.Gpu]:
    """The GPUs that the engines of a gateway with these settings use, each once.

    Where that is not known, as of a gateway that runs elsewhere, the first that there is. It takes
    milliseconds, so not in an event loop.
    """
    used: dict[int, gpu.Gpu] = {}
    for engine in settings.get("engines") or [settings.get("engine", {})]:
        if engine.get("kind") in ("simulated", "remote"):
            continue
        device = engine.get("device")
        able = gpu.gpus(None if device is None else spelled(device))
        count = gpus_used(convert({"extra": engine.get("extra", {})}, EngineSettings))
        used |= {each.index: each for each in able[:count]}
    return [used[index] for index in sorted(used)]


@asynccontextmanager
async def sampling(
    parts: Mapping[str, Sequence[int]],
    metrics_url: str | None,
    counters: Counters = _GATEWAY,
    *,
    gpus: Sequence[gpu.Gpu] = (),
    hz: float = 10.0,
) -> AsyncIterator[list[Sample]]:
    """The list grows by `hz` samples a second until the block ends; `at_s` is the machine's monotonic clock.

    The first has no `cores`, the last is taken at the end. parts: as `Accounts` takes them. What a server says of
    itself stands in the first sample after it said it, and is None in those between.
    """
    sampler = _Sampler(Accounts(parts), metrics_url, counters, gpus, 1 / hz)
    threads = [threading.Thread(target=sampler.sample, name="sampling", daemon=True)]
    if metrics_url is not None:
        threads.append(threading.Thread(target=sampler.scrape, name="scraping", daemon=True))
    for thread in threads:
        thread.start()
    try:
        yield sampler.samples
    finally:
        sampler.stop.set()
        for thread in threads:
            await asyncio.to_thread(thread.join)


class _Sampler:
    def __init__(
        self,
        accounts: Accounts,
        metrics_url: str | None,
        counters: Counters,
        gpus: Sequence[gpu.Gpu],
        period_s: float,
    ) -> None:
        self.samples: list[Sample] = []
        self.stop = threading.Event()
        self._accounts = accounts
        self._fields = {name: field for field, name in asdict(counters).items()}
        self._metrics_url = only(metrics_url, self._fields) if metrics_url is not None else None
        self._gpus = gpus
        self._period_s = period_s
        self._said: dict[str, float] = {}

    def sample(self) -> None:
        before = self._accounts.read()
        due_s = before.at_s
        self._append(due_s, {})
        last = False
        while not last:
            due_s = max(due_s + self._period_s, time.monotonic())
            last = self.stop.wait(due_s - time.monotonic())
            now = self._accounts.read(search=last)
            elapsed_s = max(now.at_s - before.at_s, 1e-6)
            cores = {part: round(used_s / elapsed_s, 4) for part, used_s in now.since(before).items()}
            self._append(now.at_s, cores)
            before = now

    def _append(self, at_s: float, cores: dict[str, float]) -> None:
        said, self._said = self._said, {}
        busy = {
            str(each.index): round(share * 100, 1) for each in self._gpus if (share := each.busy()) is not None
        }
        used = [memory.used for each in self._gpus if (memory := each.memory()) is not None]
        self.samples.append(
            Sample(
                at_s=at_s,
                gpu=round(fmean(busy.values()), 1) if busy else None,
                gpus=busy if len(self._gpus) > 1 else {},
                gpu_memory_mib=round(sum(used) / 2**20, 1) if used else None,
                cores=cores,
                **said,
            )
        )

    def scrape(self) -> None:
        assert self._metrics_url is not None  # noqa: S101 -- the thread is started with one alone
        pause_s, least_s = 0.0, _SCRAPE_LIMIT_S
        while not self.stop.wait(pause_s):
            began_s = time.monotonic()
            status, text = get(self._metrics_url, _SCRAPE_LIMIT_S)
            if status == 200:
                self._said = self._read(text)
            # The quickest answer tells what one costs, the others how long it waited behind other work.
            least_s = min(least_s, time.monotonic() - began_s)
            pause_s = max(_SCRAPE_S, least_s / _SCRAPE_SHARE)

    def _read(self, text: str) -> dict[str, float]:
        """The few metrics of a sample, each summed over its series; what the server does not have is left out."""
        found: dict[str, float] = {}
        for line in text.splitlines():
            field = self._fields.get(line.partition("{")[0].partition(" ")[0])
            if field is not None:
                found[field] = found.get(field, 0.0) + float(line.rsplit(" ", 1)[1])
        return found

"""One trial: lines are played to a system while the machine is watched over time, and who used its CPU: processes
with all those below them, by part of what is measured.

Knows: the driver, what a trial is, when a gateway that has nothing else to do would translate a partial; the GPU,
the CPU's accounts, parts and their first processes, what servers say of themselves. Must not know: how a system
was started, what is made of trials.

The part `serving` is what answers clients: its first processes, a gateway's workers with their store, further
processes of vLLM's front end, and the process that hosts a gateway's engine, which does there what in `vllm serve`
the process does that answers. What else these started is `engine`. Of any other part, what it started belongs to
it. `other` is the rest of the machine.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import threading
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import replace

from gateway.config.settings import EngineSettings
from gateway.engines.vllm import hardware
from gateway.engines.vllm.arguments import gpus_used
from gateway.engines.vllm.options import spelled
from loadtest.driving.driver import Driven, Driver, bottleneck
from loadtest.options import Say
from loadtest.results import LoadtestError
from loadtest.systems import processes
from loadtest.systems.server import Running, buckets, get, metric, only
from loadtest.trial.values import Address, Closed, EngineInProcess, Http, Line, Load, OpenAiServer, Sample, Trial

HOST = "host"
"""The process in which a gateway's engine runs: told by itself, and counted in `serving` too. Those of further
engines are `host 2`, `host 3` … Among the parts that are given, its process where that is not below the
gateway's."""

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
    """The parts that are hosts of engines."""
    return [part for part in parts if part.partition(" ")[0] == HOST]


def _told_twice(part: str) -> bool:
    return part == STORE or bool(hosts([part]))


class Reading(Struct, frozen=True):
    # On the machine's monotonic clock.
    at_s: float
    # CPU seconds so far, by part, to be subtracted from later ones. Hosts and `STORE` only where there are any.
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
            known = hosts(dict.fromkeys(self._owner.values()))
            if (own := self._owner.get(pid)) in known:
                return own
            return f"{HOST} {len(known) + 1}" if known else HOST
        if processes.STORE.search(name):
            return STORE
        return "serving" if any(each.search(name) for each in _SERVING) else "engine"


# ---------------------------------------------------------------- the machine over time

# A server is asked so often at most, and for so small a part of the time, because answering is work for it.
_SCRAPE_S = 0.5
_SCRAPE_SHARE = 0.01
_SCRAPE_LIMIT_S = 5.0


# Fields of a sample, and what each kind of system calls them.
_FIELDS = ("running", "waiting", "tokens")
_GATEWAY = ("gateway_engine_running", "gateway_engine_waiting", "gateway_tokens_total")
_VLLM = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:generation_tokens_total")
_BASELINE = ("baseline_running", "baseline_waiting", "baseline_tokens_total")


def counters(address: Address) -> Sequence[str]:
    """Counters of the system there. Others that it shows are not its own: vLLM's server is started by a module of
    the gateway's and so has the gateway's counters, which stay at 0; the gateway shows some of vLLM's."""
    return _VLLM if isinstance(address, OpenAiServer) else _BASELINE if isinstance(address, Http) else _GATEWAY


def engine_gpus(settings: Mapping[str, Any]) -> list[hardware.Gpu]:
    """The GPUs that the engines of a gateway with these settings use, each once.

    Where that is not known, as of a gateway that runs elsewhere, the first that there is. It takes
    milliseconds, so not in an event loop.
    """
    used: dict[int, hardware.Gpu] = {}
    for engine in settings.get("engines") or [settings.get("engine", {})]:
        if engine.get("kind") in ("simulated", "remote"):
            continue
        device = engine.get("device")
        able = hardware.gpus(None if device is None else spelled(device))
        count = gpus_used(convert({"extra": engine.get("extra", {})}, EngineSettings))
        used |= {each.index: each for each in able[:count]}
    return [used[index] for index in sorted(used)]


@asynccontextmanager
async def sampling(
    parts: Mapping[str, Sequence[int]],
    metrics_url: str | None,
    counters: Sequence[str] = _GATEWAY,
    *,
    gpus: Sequence[hardware.Gpu] = (),
    hz: float = 10.0,
) -> AsyncIterator[list[Sample]]:
    """The list grows by `hz` samples a second until the block ends; `at_s` is the machine's monotonic clock.

    The first has no `cores`, the last is taken at the end. parts: as `Accounts` takes them. What a server says of
    itself stands in the first sample after it said it, and is None in those between.
    """
    fields = dict(zip(counters, _FIELDS, strict=True))
    sampler = _Sampler(Accounts(parts), metrics_url, fields, gpus, 1 / hz)
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


@dataclass(eq=False)
class _Sampler:
    """fields: what the system calls them → fields of a sample."""

    accounts: Accounts
    metrics_url: str | None
    fields: Mapping[str, str]
    gpus: Sequence[hardware.Gpu]
    period_s: float
    samples: list[Sample] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    # What the server said since the last sample.
    _said: dict[str, float] = field(default_factory=dict)

    def sample(self) -> None:
        before = self.accounts.read()
        due_s = before.at_s
        self._append(due_s, {})
        last = False
        while not last:
            due_s = max(due_s + self.period_s, time.monotonic())
            last = self.stop.wait(due_s - time.monotonic())
            now = self.accounts.read(search=last)
            elapsed_s = max(now.at_s - before.at_s, 1e-6)
            cores = {part: round(used_s / elapsed_s, 4) for part, used_s in now.since(before).items()}
            self._append(now.at_s, cores)
            before = now

    def _append(self, at_s: float, cores: dict[str, float]) -> None:
        said, self._said = self._said, {}
        busy = {str(each.index): round(share * 100, 1) for each in self.gpus if (share := each.busy()) is not None}
        used = [memory.used for each in self.gpus if (memory := each.memory()) is not None]
        self.samples.append(
            Sample(
                at_s=at_s,
                gpu=round(fmean(busy.values()), 1) if busy else None,
                gpus=busy if len(self.gpus) > 1 else {},
                gpu_memory_mib=round(sum(used) / 2**20, 1) if used else None,
                cores=cores,
                **said,
            )
        )

    def scrape(self) -> None:
        assert self.metrics_url is not None  # noqa: S101 -- the thread is started with one alone
        url = only(self.metrics_url, self.fields)
        pause_s, least_s = 0.0, _SCRAPE_LIMIT_S
        while not self.stop.wait(pause_s):
            began_s = time.monotonic()
            status, text = get(url, _SCRAPE_LIMIT_S)
            if status == 200:
                told = {field: metric(text, name) for name, field in self.fields.items()}
                # What the server does not have is left out.
                self._said = {field: value for field, value in told.items() if value is not None}
            # The quickest answer tells what one costs, the others how long it waited behind other work.
            least_s = min(least_s, time.monotonic() - began_s)
            pause_s = max(_SCRAPE_S, least_s / _SCRAPE_SHARE)


PARTIALS = "gateway_partials_total"
"""The metric in which a gateway counts partials by their outcome."""

# The least time from one translation of an utterance into a language to the next, as the gateway has it.
PACE_S = 0.6


def could_be_translated(lines: Iterable[Line]) -> int:
    """Translations of partials that a gateway makes of these lines if each takes no time at all.

    The first revision is translated at once, then the newest text whenever its time has come, until the final.
    """
    return sum(_translations(line) * len(line.targets) for line in lines)


def _translations(line: Line) -> int:
    count, known, free_s = 0, "", -math.inf
    revisions = list(line.partials)
    while revisions:
        begins_s = max(free_s, revisions[0].due_s)
        if begins_s >= line.due_s:
            break
        said = [each for each in revisions if each.due_s <= begins_s]
        revisions = revisions[len(said) :]
        if said[-1].text != known:
            count, known, free_s = count + 1, said[-1].text, begins_s + PACE_S
    return count


def translated(text: str) -> float:
    """Partials that the gateway has translated so far, by its metrics."""
    return metric(text, PARTIALS, outcome="translated") or 0.0


def translated_part(lines: Iterable[Line], before: float, after: float) -> float | None:
    """The part that was translated, between two readings of the counter; None where there were no partials."""
    most = could_be_translated(lines)
    # The first of an utterance counts half of its pace, so that there may be some more.
    return round(min(1.0, (after - before) / most), 4) if most else None


# ---------------------------------------------------------------- one trial

_STEPS = "gateway_engine_step_seconds"
_GAP_S = 0.1

# What the systems call the time in their own queues and in the engine's, and the time altogether.
_QUEUES_S = ("gateway_queue_seconds_sum", "vllm:request_queue_time_seconds_sum", "baseline_queue_seconds_total")
_TOTALS_S = ("gateway_translation_seconds_sum", "baseline_response_seconds_total")

# The times in a record.
_TIMES = ("due_s", "sent_s", "first_s", "done_s", "began_s", "shown_s", "again_s")


async def measure(
    running: Running,
    driver: Driver,
    lines: Sequence[Line],
    load: Load,
    *,
    name: str,
    repetition: int,
    workload: str,
    say: Say,
    limit_s: float,
    keep_text: bool = False,
    discard_s: float = 0.0,
    allow_bottleneck: bool = False,
) -> Trial:
    """Play the lines once, sampled and accounted.

    discard_s: what was due earlier is not part of the trial, unless it failed, nor is what was used until then or
    after the last line: see `Trial`. allow_bottleneck: a driver that was the limit is noted. Raises
    `LoadtestError` for such a driver otherwise, and when nothing was translated.
    """
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    say(f"{name}, repetition {repetition}" if repetition else f"{name}, warming up")
    parts = _parts(running, driver)
    before = await asyncio.to_thread(_counted, running.metrics_url)
    gpus = await asyncio.to_thread(engine_gpus, running.settings)
    async with sampling(parts, running.metrics_url, counters(running.address), gpus=gpus) as samples:
        driven = await driver.play(lines, load=load, keep_text=keep_text, limit_s=limit_s, stage=name)
    window = _window(driven, lines, load, discard_s)
    if window.until_s <= window.from_s:
        raise LoadtestError(f"{name}: everything was over within the {discard_s:g} s that are discarded.")
    after = await asyncio.to_thread(_counted, running.metrics_url)
    if (limited := bottleneck(driven, load)) is not None and not allow_bottleneck:
        raise LoadtestError(f"{name}: {limited}")
    steps, long_steps = _steps(buckets(before, _STEPS), buckets(after, _STEPS))
    records = [
        replace(
            record, **{name: at_s - discard_s for name in _TIMES if (at_s := getattr(record, name)) is not None}
        )
        for record in driven.records
        if record.failed is not None or window.holds(record.due_s)
    ]
    if all(record.failed is not None for record in records):
        why = next((record.failed for record in records), "nothing was due")
        raise LoadtestError(f"{name}: no line was translated: {why}")
    finished = [each for each in driven.records if each.failed is None and window.holds(each.done_s)]
    # Work on what was never finished is work; when it ended is not known.
    left = [each for each in driven.records if each.failed is not None and window.holds(each.due_s)]
    from_s, until_s = driven.began_s + window.from_s, driven.began_s + window.until_s
    used_s = _used_s(samples, from_s, until_s)
    hosts_s, store_s = [used_s.pop(part) for part in hosts([*used_s])], used_s.pop(STORE, None)
    played_s = driven.began_s, driven.began_s + driven.elapsed_s
    return Trial(
        name=name,
        system=running.name,
        settings=dict(running.settings),
        workload=workload,
        load=load,
        repetition=repetition,
        began=began,
        elapsed_s=round(until_s - from_s, 4),
        delivered=replace(
            driven.delivered,
            elapsed_s=round(driven.elapsed_s, 4),
            serving_s=_used_s(samples, *played_s).get("serving", 0.0),
        ),
        clients=driven.clients,
        cpu_s=used_s,
        hosts_cpu_s=hosts_s,
        store_cpu_s=store_s,
        memory_mib=await asyncio.to_thread(Accounts(parts).serving_mib),
        samples=[
            replace(sample, at_s=round(sample.at_s - from_s, 3))
            for sample in samples
            if from_s <= sample.at_s <= until_s
        ],
        records=records,
        finished=len(finished),
        generated=sum(each.tokens for each in (*finished, *left)),
        with_drain=window.with_drain,
        partials_translated=translated_part(lines, translated(before), translated(after)) if after else None,
        queued=share_in_queues(before, after),
        limited=limited,
        steps=steps,
        long_steps=long_steps,
    )


def share_in_queues(before: str, after: str) -> float | None:
    """Part of the time between two readings that went by in queues; None when nothing was translated."""

    def grown_s(names: Iterable[str]) -> float:
        return sum((metric(after, name) or 0.0) - (metric(before, name) or 0.0) for name in names)

    total_s = grown_s(_TOTALS_S)
    return round(grown_s(_QUEUES_S) / total_s, 4) if total_s > 0 else None


class _Window(Struct, frozen=True):
    """Seconds after the beginning of the pass. with_drain: it goes on to the last record."""

    from_s: float
    until_s: float
    with_drain: bool = False

    def holds(self, at_s: float | None) -> bool:
        return at_s is not None and self.from_s <= at_s <= self.until_s


def _window(driven: Driven, lines: Sequence[Line], load: Load, discard_s: float) -> _Window:
    """The time of a pass in which the load was what it is called.

    In an open loop lines were due then, however long it took afterwards to work them off. In a closed loop as many
    were in flight as were to be; where that was less than half of the time, all of it counts.
    """
    if isinstance(load, Closed):
        until_s = driven.elapsed_s if driven.ran_out_s is None else driven.ran_out_s
        least_s = (driven.elapsed_s - discard_s) / 2
    else:
        until_s = max((line.due_s for line in lines), default=driven.elapsed_s)
        least_s = 0.0
    if until_s - discard_s > least_s:
        return _Window(discard_s, until_s)
    return _Window(discard_s, driven.elapsed_s, with_drain=True)


def _parts(running: Running, driver: Driver) -> dict[str, list[int]]:
    if isinstance(running.address, EngineInProcess):
        return {"serving": driver.pids}
    if running.pid is None:
        return {"clients": driver.pids}
    host = {} if running.host is None else {HOST: [running.host]}
    return {"serving": [running.pid], **host, "clients": driver.pids}


def _used_s(samples: Sequence[Sample], from_s: float, until_s: float) -> dict[str, float]:
    """CPU seconds by part between two moments. Each sample tells the mean since the one before it."""
    used_s: dict[str, float] = {}
    for before, sample in itertools.pairwise(samples):
        overlap_s = min(sample.at_s, until_s) - max(before.at_s, from_s)
        if overlap_s > 0:
            for part, cores in sample.cores.items():
                used_s[part] = used_s.get(part, 0.0) + cores * overlap_s
    return {part: round(seconds, 4) for part, seconds in used_s.items()}


def _counted(metrics_url: str | None) -> str:
    """What is counted besides: outputs of the engine by the time between them, partials by their outcome, time in
    queues; empty where no server tells."""
    if metrics_url is None:
        return ""
    return get(only(metrics_url, [f"{_STEPS}_bucket", PARTIALS, *_QUEUES_S, *_TOTALS_S]))[1]


def _steps(before: dict[float, float], after: dict[float, float]) -> tuple[int | None, int | None]:
    """Steps between two readings, and how many of them took longer than they may; None where none are told."""
    if not after:
        return None, None
    grown = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    within = max((bound for bound in grown if bound <= _GAP_S), default=None)
    steps = grown.get(math.inf, 0.0)
    return int(steps), int(steps - (0.0 if within is None else grown[within]))

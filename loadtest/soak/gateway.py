"""The gateway under test: the same port and folder for one process after the other, and how it is watched.

Knows: what Linux tells of its processes; which of its metrics and transcripts are looked at, and how often. Must
not know: clients, when anything is broken.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.engines.host import processes as engine_processes
from gateway.engines.host.processes import Process
from loadtest.soak.ledger import Ledger
from loadtest.soak.records import Entry
from loadtest.soak.report import Incarnation, Memory, Sample
from loadtest.systems import processes
from loadtest.systems.gateway import gateway_process
from loadtest.systems.server import Server, free_port, get, metric, work
from loadtest.systems.store import Store

# The process with the model, as vLLM names it; a simulated one is in the process that hosts it, if there is one.
_HOST = re.compile(r"^gateway engine host")
_ENGINES = {"vllm": re.compile(r"EngineCore"), "simulated": _HOST}

# Longest wait for killed processes to be gone.
_KILL_S = 10.0

# Gauges that have to be 0 once all clients have gone and everything has expired.
_GAUGES = (
    *("gateway_sessions", "gateway_sessions_away", "gateway_meetings", "gateway_translations_waiting"),
    *("gateway_translations_running", "gateway_log_publications", "gateway_log_bytes"),
)

_WORKER_LABEL = re.compile(r'\bworker="(\d+)"')

# What a transcript says of a language in which an utterance has its outcome.
_OUTCOMES = ("translated", "failed")

_SAMPLE_S = 5.0
# Transcripts are read so often that nothing expires between. A worker that is stopped does not answer; another is
# asked: which one gets a connection is chance.
_SAMPLES_A_TRANSCRIPT = 3
_TRANSCRIPT_S, _TRANSCRIPT_TRIES = 3.0, 4

# After it is ready a gateway still grows, by what every gateway needs.
_WARM_S = 60.0


class ServedGateway:
    """`gateway serve`, started again whenever it was stopped."""

    def __init__(
        self, settings: Mapping[str, Any], folder: Path, workers: int | None = None, store: Store | None = None
    ) -> None:
        """workers: with `store`, or with one of their own; None: one process, which needs none."""
        self.port = free_port()
        # Where all its workers are told of; they may be stopped one by one.
        self._metrics_url = f"http://127.0.0.1:{self.port}/metrics"
        if workers is not None:
            settings = {**settings, "admin_port": (admin_port := free_port())}
            self._metrics_url = f"http://127.0.0.1:{admin_port}/metrics"
        if store is not None:
            settings = {**settings, "store": {"url": store.url}}
        self._workers = workers
        self._store = store
        engines = settings.get("engines") or [settings["engine"]]
        self._engines = len(engines)
        self._engine = _ENGINES[engines[0]["kind"]]
        # Number of the process: 1, 2, 3 …
        self.incarnation = 0
        # It was told to stop.
        self.leaving = False
        self._settings = settings
        self._folder = folder
        self._server: Server | None = None
        # Processes that host engines; some were started by an earlier gateway, and are not below this one.
        self._hosts: frozenset[Process] = frozenset()
        # Whether the newest gateway had an engine from the last one.
        self.went_on = False

    async def start(self, limit_s: float) -> None:
        """Start the process, and wait until its engine takes requests. Raises `LoadtestError`."""
        self.incarnation += 1
        self.leaving = False
        log = f"gateway-{self.incarnation}.log"
        self._server = gateway_process(
            self._settings, self._folder, port=self.port, log=log, workers=self._workers
        )
        before = self._find_hosts()
        await self._server.start()
        await self._server.ready("", lambda _line: None, limit_s)
        self.went_on = bool(before & self._find_hosts())

    def check(self) -> None:
        """Raises `LoadtestError` when the process has ended by itself."""
        self._started.check()

    async def stop(self) -> int:
        """SIGTERM; its exit status once it is gone. Raises `LoadtestError` when it hangs."""
        self.leaving = True
        self._find_hosts()
        return await self._started.stop()

    async def end(self) -> None:
        """Make sure that it is gone, and what is below it too."""
        if self._server is not None:
            self.leaving = True
            hosts = self._find_hosts()
            await self._server.end()
            await asyncio.to_thread(engine_processes.kill, engine_processes.descendants(hosts), _KILL_S)

    def _find_hosts(self) -> frozenset[Process]:
        """The hosts of engines that run."""
        if self._server is not None and self._server.running:
            below = processes.below(self._server.pid)
            hosts = [pid for pid in below if _HOST.search(processes.command(pid))]
            self._hosts |= engine_processes.with_pids(*hosts)
        self._hosts = frozenset(host for host in self._hosts if engine_processes.any_runs([host]))
        return self._hosts

    def signal_engine(self, number: signal.Signals) -> bool:
        """Signal the engine's process, or the one that hosts it; false when there is none. Of several, one."""
        for host in sorted(self._find_hosts(), key=lambda host: host.create_time()):
            if self._engine.search(processes.command(host.pid)):
                os.kill(host.pid, number)
                return True
            if processes.signal_below(host.pid, self._engine, number):
                return True
        return False

    def signal_worker(self, worker: int, number: signal.Signals) -> bool:
        """Signal the worker of this number; false while there is none."""
        return processes.signal_below(self._started.pid, re.compile(rf"^gateway worker {worker}\b"), number)

    def reload(self) -> list[int]:
        """Let all workers be replaced; the processes of those that there are."""
        workers = processes.named_below(self._started.pid, processes.WORKER)
        os.kill(self._started.pid, signal.SIGHUP)
        return workers

    def left_of(self, workers: Sequence[int]) -> list[int]:
        """Which of these processes still serve."""
        return [pid for pid in processes.named_below(self._started.pid, processes.WORKER) if pid in workers]

    def signal_store(self, number: signal.Signals) -> bool:
        """Signal the store's process; false while there is none."""
        if self._store is not None:
            return self._store.signal(number)
        return processes.signal_below(self._started.pid, processes.STORE, number)

    def memory_mib(self) -> tuple[float, float, float]:
        """Resident memory: the gateway with its workers; its store; the engine and its host. 0 where none is."""
        if self._server is None or not self._server.running:
            return 0.0, 0.0, 0.0
        gateway, engine = processes.resident_mib(self._server.pid), 0.0
        shared = None if self._store is None else self._store.pid
        store = 0.0 if shared is None else processes.resident_mib(shared)
        hosts = [host.pid for host in self._find_hosts()]
        for pid in {*processes.below(self._server.pid), *hosts, *processes.below(*hosts)}:
            name, mib = processes.command(pid), processes.resident_mib(pid)
            if processes.WORKER.search(name):
                gateway += mib
            elif processes.STORE.search(name):
                store += mib
            else:
                engine += mib
        return round(gateway, 1), round(store, 1), round(engine, 1)

    def tracebacks(self) -> list[str]:
        """Those in the logs of its processes, each with the line before, in 2,000 characters; each is a bug."""
        found: list[str] = []
        for log in sorted(self._folder.glob("gateway-*.log")):
            lines = log.read_text(errors="replace").splitlines()
            for number, line in enumerate(lines):
                if "Traceback (most recent call last)" in line:
                    found.append("\n".join(lines[max(number - 1, 0) : number + 40])[:2_000])
        return found

    # ------------------------------------------------------------ what it says

    async def metrics(self) -> str:
        """Prometheus' text, of all workers; empty when it cannot be asked."""
        status, body = await asyncio.to_thread(get, self._metrics_url)
        return body if status == 200 else ""

    async def serving(self) -> int:
        """How many workers answer."""
        return len(set(_WORKER_LABEL.findall(await self.metrics())))

    async def metric(self, name: str, **labels: str) -> float | None:
        """One of its metrics; None when it has none or cannot be asked."""
        return metric(await self.metrics(), name, **labels)

    async def engines_lost(self) -> int | None:
        """How many of its engines take no requests; None when it cannot be asked."""
        ready = await self.metric("gateway_engine_ready")
        return None if ready is None else self._engines - int(ready)

    async def work(self) -> float | None:
        """Translations that wait or run; None when it cannot be asked."""
        return work(await self.metrics())

    async def transcript(self, meeting: str) -> list[Entry] | None:
        """All that was said in a meeting; None if it has no transcript."""
        url = f"{self._started.url}/v1/meetings/{meeting}/transcript.json"
        status, body = 0, ""
        for _ in range(1 if self._workers is None else _TRANSCRIPT_TRIES):
            status, body = await asyncio.to_thread(get, url, _TRANSCRIPT_S)
            if status:
                break
        if status != 200:
            return None
        return [
            Entry(
                said["participant"],
                said["utterance"],
                frozenset(lang for lang, text in said["translations"].items() if text["status"] in _OUTCOMES),
            )
            for said in json.loads(body)["utterances"]
        ]

    @property
    def _started(self) -> Server:
        assert self._server is not None  # noqa: S101 -- started
        return self._server


@dataclass(eq=False)
class Watch:
    """`run` it in a task."""

    gateway: ServedGateway
    ledger: Ledger
    meetings: Sequence[str]
    began_s: float
    samples: list[Sample] = field(default_factory=list)
    # By the number of the gateway's process.
    _loaded: defaultdict[int, list[Sample]] = field(default_factory=lambda: defaultdict(list))

    async def run(self) -> None:
        """Sample and read transcripts until cancelled."""
        unread: list[str] = []
        for number in itertools.count(1):
            await self.look()
            if number % _SAMPLES_A_TRANSCRIPT == 0:
                unread = await self.read_transcripts(self.meetings)
            elif unread:
                unread = await self.read_transcripts(unread)
            await asyncio.sleep(_SAMPLE_S)

    async def look(self) -> None:
        """Take a sample now."""
        text = await self.gateway.metrics()
        gateway_mib, store_mib, engine_mib = self.gateway.memory_mib()
        sample = Sample(
            at_s=round(time.monotonic() - self.began_s, 1),
            gateway_mib=gateway_mib,
            engine_mib=engine_mib,
            sessions=metric(text, "gateway_sessions"),
            away=metric(text, "gateway_sessions_away"),
            running=metric(text, "gateway_translations_running"),
            delivered=self.ledger.received,
            store_mib=store_mib,
        )
        self.samples.append(sample)
        if gateway_mib and not self.gateway.leaving:
            self._loaded[self.gateway.incarnation].append(sample)

    async def expired(self, patience_s: float) -> dict[str, float | None]:
        """Wait until every gauge is 0; how they are then, or when the patience ends."""
        until_s = time.monotonic() + patience_s
        while True:
            text = await self.gateway.metrics()
            gauges = {name: metric(text, name) for name in _GAUGES}
            if not any(value != 0 for value in gauges.values()) or time.monotonic() > until_s:
                return gauges
            self.gateway.check()
            await asyncio.sleep(1)

    async def read_transcripts(self, meetings: Sequence[str]) -> list[str]:
        """Put what the transcripts hold into the ledger; returns the meetings of which there is none, or not now.

        All at once: one after the other, each waiting for a stopped worker, takes longer than a log is kept.
        """
        read = await asyncio.gather(*map(self._read_transcript, meetings))
        return [meeting for meeting, was_read in zip(meetings, read, strict=True) if not was_read]

    async def _read_transcript(self, meeting: str) -> bool:
        asked_at = time.monotonic()
        entries = await self.gateway.transcript(meeting)
        if entries is None:
            return False
        self.ledger.transcript(meeting, entries, asked_at)
        return True

    def memory(self) -> list[Incarnation]:
        """One entry for each process of the gateway."""
        return [_incarnation(number, samples) for number, samples in self._loaded.items()]


def _incarnation(number: int, samples: Sequence[Sample]) -> Incarnation:
    ready = [sample for sample in samples if sample.engine_mib] or samples
    warm_s = ready[0].at_s + _WARM_S
    settled = next((sample for sample in ready if sample.at_s >= warm_s), ready[-1])

    def memory(part: str) -> Memory:
        return Memory(getattr(settled, part), max(getattr(s, part) for s in samples), getattr(samples[-1], part))

    return Incarnation(number, memory("gateway_mib"), memory("engine_mib"), memory("store_mib"))

"""The gateway under test as an operator runs it: a process of its own, with its engine in others below it.

Knows: how to start, signal and ask it, and what Linux tells of its processes. Must not know: clients, what is
counted, when anything is broken. It signals no process but those that it started and those below them.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from loadtest.results import LoadtestError
from loadtest.systems import processes
from loadtest.systems.child import Child, free_port
from loadtest.systems.gateway import serve_command
from loadtest.systems.metrics import get, metric

__all__ = ["ServedGateway", "free_port", "metric"]

_LOOK_S = 0.25

# The name that vLLM gives the process with the model.
_ENGINE = re.compile(r"EngineCore")


class Memory(Struct, frozen=True):
    """Resident memory in MiB of the gateway's own process, and of all those below it: the engine's, their host."""

    gateway_mib: float
    engine_mib: float


class ServedGateway:
    """`gateway serve` on `port`.

    incarnation: number of the process: 1, 2, 3 … leaving: it was told to stop.
    """

    def __init__(self, port: int, settings: Mapping[str, str], folder: Path) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.incarnation = 0
        self.leaving = False
        self._environment = {**os.environ, **settings}
        self._folder = folder
        self._child: Child | None = None

    async def start(self) -> None:
        """Start the process; `ready` waits for it."""
        self.incarnation += 1
        self.leaving = False
        log = self._folder / f"gateway-{self.incarnation}.log"
        self._child = Child("The gateway", serve_command(self.port), log, self._environment)
        await self._child.start()

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    async def ready(self, patience_s: float) -> float:
        """Wait until the engine takes requests; the seconds that took. Raises `LoadtestError`."""
        began_s = time.monotonic()
        while time.monotonic() - began_s < patience_s:
            self.check()
            if await self.is_ready():
                return time.monotonic() - began_s
            await asyncio.sleep(_LOOK_S)
        raise LoadtestError(f"The gateway was not ready within {patience_s:g} s. {self._started.last_words()}")

    async def is_ready(self) -> bool:
        """Whether `/readyz` says so."""
        status, _ = await self._get("/readyz")
        return status == 200

    def check(self) -> None:
        """Raises `LoadtestError` when the process has ended by itself."""
        if self._child is not None:
            self._child.check()

    async def stop(self) -> int:
        """SIGTERM; its exit status once it is gone. Killed when it hangs."""
        self.leaving = True
        return await self._started.stop()

    async def end(self) -> None:
        """However it stands, it is gone afterwards, and what is below it too."""
        if self._child is not None:
            self.leaving = True
            await self._child.end()

    @property
    def _started(self) -> Child:
        assert self._child is not None  # noqa: S101 -- started
        return self._child

    # ------------------------------------------------------------ the engine

    def signal_engine(self, number: signal.Signals) -> bool:
        """Signal the engine's process, below the one that hosts it; false when there is none."""
        return processes.signal_below(self.pid, _ENGINE, number)

    def memory(self) -> Memory:
        """What its processes hold now; zeros for what is not there."""
        if not self.running:
            return Memory(0.0, 0.0)
        engine_mib = sum(map(processes.resident_mib, processes.below(self.pid)))
        return Memory(processes.resident_mib(self.pid), round(engine_mib, 1))

    # ------------------------------------------------------------ what it says

    async def metrics(self) -> str | None:
        """Prometheus' text; null when it cannot be asked."""
        status, body = await self._get("/metrics")
        return body if status == 200 else None

    async def transcript(self, meeting: str) -> Any | None:
        """`transcript.json` of a meeting, decoded; null when there is none."""
        status, body = await self._get(f"/v1/meetings/{meeting}/transcript.json")
        return json.loads(body) if status == 200 else None

    def tracebacks(self) -> int:
        """How many its processes wrote to their logs; each is a bug."""
        logs = self._folder.glob("gateway-*.log")
        return sum(log.read_text(errors="replace").count("Traceback (most recent call last)") for log in logs)

    async def _get(self, path: str) -> tuple[int, str]:
        return await asyncio.to_thread(get, self.url + path)

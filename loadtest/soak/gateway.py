"""The gateway under test: the same port and folder for one process after the other.

Knows: what Linux tells of its processes, what it says of itself. Must not know: clients, what is counted, when
anything is broken.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from loadtest.systems import processes
from loadtest.systems.gateway import gateway_process
from loadtest.systems.metrics import get, metric
from loadtest.systems.server import Server, free_port

__all__ = ["ServedGateway", "metric"]

# The name that vLLM gives the process with the model.
_ENGINE = re.compile(r"EngineCore")


class Memory(Struct, frozen=True):
    """Resident memory, MiB."""

    # Of the gateway's own process.
    gateway_mib: float
    # Of all those below it: the engine's, and their host.
    engine_mib: float


class ServedGateway:
    """`gateway serve`, started again whenever it was stopped.

    incarnation: number of the process: 1, 2, 3 … leaving: it was told to stop.
    """

    def __init__(self, settings: Mapping[str, Any], folder: Path) -> None:
        self.port = free_port()
        self.incarnation = 0
        self.leaving = False
        self._settings = settings
        self._folder = folder
        self._server: Server | None = None

    async def start(self) -> None:
        """Start the process; `ready` waits for it."""
        self.incarnation += 1
        self.leaving = False
        log = f"gateway-{self.incarnation}.log"
        self._server = gateway_process(self._settings, self._folder, port=self.port, log=log)
        await self._server.start()

    async def ready(self, limit_s: float) -> float:
        """Wait until the engine takes requests; the seconds that took. Raises `LoadtestError`."""
        began_s = time.monotonic()
        await self._started.ready("", lambda _line: None, limit_s)
        return time.monotonic() - began_s

    def check(self) -> None:
        """Raises `LoadtestError` when the process has ended by itself."""
        self._started.check()

    async def stop(self) -> int:
        """SIGTERM; its exit status once it is gone. Killed when it hangs."""
        self.leaving = True
        return await self._started.stop()

    async def end(self) -> None:
        """Make sure that it is gone, and what is below it too."""
        if self._server is not None:
            self.leaving = True
            await self._server.end()

    @property
    def _started(self) -> Server:
        assert self._server is not None  # noqa: S101 -- started
        return self._server

    # ------------------------------------------------------------ the engine

    def signal_engine(self, number: signal.Signals) -> bool:
        """Signal the engine's process, below the one that hosts it; false when there is none."""
        return processes.signal_below(self._started.pid, _ENGINE, number)

    def memory(self) -> Memory:
        """What its processes hold now; zeros for what is not there."""
        if self._server is None or not self._server.running:
            return Memory(0.0, 0.0)
        engine_mib = sum(map(processes.resident_mib, processes.below(self._server.pid)))
        return Memory(processes.resident_mib(self._server.pid), round(engine_mib, 1))

    # ------------------------------------------------------------ what it says

    async def metrics(self) -> str | None:
        """Prometheus' text; None when it cannot be asked."""
        return await self._get("/metrics")

    async def transcript(self, meeting: str) -> Any | None:
        """`transcript.json` of a meeting, decoded; None when there is none."""
        body = await self._get(f"/v1/meetings/{meeting}/transcript.json")
        return None if body is None else json.loads(body)

    def tracebacks(self) -> int:
        """How many its processes wrote to their logs; each is a bug."""
        logs = self._folder.glob("gateway-*.log")
        return sum(log.read_text(errors="replace").count("Traceback (most recent call last)") for log in logs)

    async def _get(self, path: str) -> str | None:
        status, body = await asyncio.to_thread(get, self._started.url + path)
        return body if status == 200 else None

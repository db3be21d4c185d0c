"""Which baselines there are, what one of them is made of, and how a load test starts it.

Knows: their shapes, the gateway's settings, the command. Must not know: queues, HTTP, clients.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from gateway.config import EngineSettings
from loadtest.options import Say, shown
from loadtest.results import LoadtestError
from loadtest.systems.prompting import gateway_settings
from loadtest.systems.running import Running
from loadtest.systems.server import Server, free_port, serving
from loadtest.trial.values import Http

SHARED_MEMORY = 0.3
"""Each of two workers on one GPU had so much of its memory."""

ARCHITECTURES: dict[str, dict[str, int]] = {
    "one-worker": {},
    "two-workers": {"workers": 2},
    "static-batching": {"batch": 16},
}
"""Name → what differs from the defaults of `Plan`."""

_AtLeastOne = Annotated[int, Meta(ge=1)]


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a baseline is made of."""

    # Processes with an engine each, which take from one queue.
    workers: _AtLeastOne = 1
    # Texts that a worker generates together, at most.
    batch: _AtLeastOne = 1
    # How long a batch may wait for further texts, from its first one on.
    window_s: Annotated[float, Meta(ge=0)] = 0.05
    # Texts in the queue before a request is refused.
    max_waiting: _AtLeastOne = 1_000
    # Each worker's engine, as the gateway's.
    engine: EngineSettings = EngineSettings()


def plan(architecture: str, settings: Mapping[str, Any]) -> Plan:
    """From a gateway's settings, of which `engine` counts, and a section `baseline` with values of `Plan`.

    Raises `LoadtestError`.
    """
    if architecture not in ARCHITECTURES:
        raise LoadtestError(f"There is no architecture {architecture!r}; there are {', '.join(ARCHITECTURES)}.")
    engine = gateway_settings({name: value for name, value in settings.items() if name != "baseline"}).engine
    try:
        made = msgspec.convert(ARCHITECTURES[architecture] | settings.get("baseline", {}), Plan)
    except msgspec.ValidationError as error:
        raise LoadtestError(f"The settings of a baseline cannot be used: {error}.") from None
    if made.workers > 1 and "gpu_memory_utilization" not in settings.get("engine", {}):
        engine = replace(engine, gpu_memory_utilization=SHARED_MEMORY)
    # A batch that the engine took in parts would be no static batch.
    engine = replace(engine, max_num_seqs=max(engine.max_num_seqs, made.batch))
    return replace(made, engine=engine)


@asynccontextmanager
async def baseline(
    architecture: str, settings: Mapping[str, Any], say: Say, *, name: str | None = None
) -> AsyncIterator[Running]:
    """A baseline with these settings, ready; it, its workers and their engines are gone when the block ends.

    settings: as in `plan`. say: told how far it is. Raises `LoadtestError` when it cannot start.
    """
    title, port = name or architecture, free_port()
    with tempfile.TemporaryDirectory(prefix="loadtest-baseline-") as folder:
        file = Path(folder, "plan.json")
        file.write_bytes(msgspec.json.encode(plan(architecture, settings)))  # noqa: ASYNC240 -- a page at most
        # However this process ends, the engines must not stay behind.
        command = [sys.executable, "-m", "loadtest.baselines", str(file), str(port), str(os.getpid())]
        server = Server(f"The baseline {architecture}", command, port, Path(folder, "baseline.log"))
        async with serving(server, title, say):
            yield Running(title, Http(server.url), shown(settings), server.pid, f"{server.url}/metrics")

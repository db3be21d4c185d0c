"""A baseline as a load test starts it: its front, a process of its own with its workers below it.

Knows: its command, its settings file, `/readyz`. Must not know: clients, or what is measured.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from loadtest.baselines.architecture import plan
from loadtest.commands import Say
from loadtest.options import shown
from loadtest.systems.child import Child, free_port
from loadtest.systems.metrics import get
from loadtest.systems.running import Running
from loadtest.systems.waiting import until_ready
from loadtest.trial.values import Http

__all__ = ["baseline"]


@asynccontextmanager
async def baseline(
    architecture: str, settings: Mapping[str, Any], say: Say, *, name: str | None = None
) -> AsyncIterator[Running]:
    """A baseline with these settings, ready; it, its workers and their engines are gone when the block ends.

    settings: those of a gateway, of which `engine` counts, and a section `baseline`: see `architecture`. say: told
    how far it is. Raises `LoadtestError` when it cannot start.
    """
    # Wrong settings are told of before anything starts.
    plan(architecture, settings)
    title = name or architecture
    url = f"http://127.0.0.1:{(port := free_port())}"
    with tempfile.TemporaryDirectory(prefix="loadtest-baseline-") as folder:
        command = [sys.executable, "-m", "loadtest.baselines", "--architecture", architecture]
        command += ["--settings", _written(folder, settings), "--host", "127.0.0.1", "--port", str(port)]
        # However this process ends, its engines must not stay behind.
        command += ["--ends-with", str(os.getpid())]
        child = Child(f"The baseline {architecture}", command, Path(folder, "baseline.log"), dict(os.environ))
        try:
            await child.start()
            await until_ready(child, f"starting {title}", say, lambda: _readiness(url))
            yield Running(title, Http(url), shown(settings), child.pid, f"{url}/metrics")
        finally:
            await child.end()


def _written(folder: str, settings: Mapping[str, Any]) -> str:
    file = Path(folder, "settings.json")
    file.write_bytes(msgspec.json.encode(settings))
    return str(file)


def _readiness(url: str) -> tuple[bool, str]:
    status, body = get(f"{url}/readyz")
    return status == 200, str(msgspec.json.decode(body)["reason"]) if body else ""

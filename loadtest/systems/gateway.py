"""The gateway as an operator runs it: `gateway serve`, a process of its own with its engine in others below it.

Knows: its command, its settings file, `/readyz`. Must not know: clients, or what is measured.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from loadtest.commands import Say
from loadtest.options import shown
from loadtest.systems.child import Child, free_port
from loadtest.systems.metrics import get
from loadtest.systems.running import Running
from loadtest.systems.toml import as_toml
from loadtest.systems.waiting import until_ready
from loadtest.trial.values import WebSocketGateway

__all__ = ["gateway", "serve_command"]


def serve_command(port: int, *arguments: str) -> list[str]:
    """What starts a gateway on this loopback port."""
    return [sys.executable, "-m", "gateway", "serve", "--host", "127.0.0.1", "--port", str(port), *arguments]


@asynccontextmanager
async def gateway(settings: Mapping[str, Any], say: Say, *, name: str = "gateway") -> AsyncIterator[Running]:
    """A gateway with these settings, ready; it and its engine are gone when the block ends.

    settings: sections nested; what the environment says of the gateway is not read. say: told how far it is.
    Raises `LoadtestError` when it cannot start.
    """
    url = f"http://127.0.0.1:{(port := free_port())}"
    with tempfile.TemporaryDirectory(prefix="loadtest-gateway-") as folder:
        config = Path(folder, "gateway.toml")
        config.write_text(as_toml(settings))  # noqa: ASYNC240 -- a page at most
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GATEWAY__")}
        command = serve_command(port, "--config", str(config))
        child = Child("The gateway", command, Path(folder, "gateway.log"), environment)
        try:
            await child.start()
            await until_ready(child, f"starting {name}", say, lambda: _readiness(url))
            yield Running(name, WebSocketGateway(url), shown(settings), child.pid, f"{url}/metrics")
        finally:
            await child.end()


def _readiness(url: str) -> tuple[bool, str]:
    status, body = get(f"{url}/readyz")
    try:
        return status == 200, str(json.loads(body)["reason"])
    except (ValueError, KeyError, TypeError):
        return status == 200, ""

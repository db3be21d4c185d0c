"""vLLM's own server: `vllm serve`, a process of its own.

Knows: how it is started and asked whether it is ready. Must not know: clients, or what is measured.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from loadtest.commands import Say
from loadtest.systems.running import Running
from loadtest.systems.server import Server, free_port, serving
from loadtest.systems.vllm_process import Serve
from loadtest.trial.options import shown
from loadtest.trial.values import OpenAiServer

__all__ = ["vllm_serve"]

_MODEL = "model"


@asynccontextmanager
async def vllm_serve(
    settings: Mapping[str, Any],
    say: Say,
    *,
    arguments: Mapping[str, Any] | None = None,
    tuned: bool = False,
    name: str = "vllm-serve",
) -> AsyncIterator[Running]:
    """A server with the model of a gateway's settings, ready; it and its engine are gone when the block ends.

    tuned: with all the engine arguments that the gateway would choose, and tokens gathered as it gathers them;
    else with vLLM's defaults, but for the model, its memory, and on a CPU what the gateway cannot do without.
    arguments: further ones, as `vllm serve` names them, with underscores. Raises `LoadtestError` when it cannot
    start.
    """
    given = dict(arguments or {})
    serve = Serve(settings=dict(settings), tuned=tuned, arguments=given, port=free_port(), name=_MODEL)
    with tempfile.TemporaryDirectory(prefix="loadtest-vllm-") as folder:
        command = [sys.executable, "-m", "loadtest.systems.vllm_process", msgspec.json.encode(serve).decode()]
        log = Path(folder, "vllm.log")
        server = Server(f"vLLM's server ({name})", command, serve.port, log, ready_path="/health")
        async with serving(server, name, say):
            yield Running(
                name,
                OpenAiServer(server.url, _MODEL, dict(settings)),
                shown({**settings, "vllm_serve": {"tuned": tuned, "arguments": given}}),
                server.pid,
                f"{server.url}/metrics",
            )

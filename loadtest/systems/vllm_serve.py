"""vLLM's own server: `vllm serve`, a process of its own.

Knows: how it is started and asked whether it is ready. Must not know: clients, or what is measured.
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

from loadtest.commands import Say
from loadtest.options import shown
from loadtest.systems.child import Child, free_port
from loadtest.systems.metrics import get
from loadtest.systems.running import Running
from loadtest.systems.vllm_process import Serve
from loadtest.systems.waiting import until_ready
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
    url = f"http://127.0.0.1:{(port := free_port())}"
    given = dict(arguments or {})
    serve = Serve(settings=dict(settings), tuned=tuned, arguments=given, port=port, name=_MODEL)
    with tempfile.TemporaryDirectory(prefix="loadtest-vllm-") as folder:
        child = Child(
            f"vLLM's server ({name})",
            [sys.executable, "-m", "loadtest.systems.vllm_process", msgspec.json.encode(serve).decode()],
            Path(folder, "vllm.log"),
            os.environ,
        )
        try:
            await child.start()
            await until_ready(child, f"starting {name}", say, lambda: (get(f"{url}/health")[0] == 200, ""))
            yield Running(
                name,
                OpenAiServer(url, _MODEL, dict(settings)),
                shown({**settings, "vllm_serve": {"tuned": tuned, "arguments": given}}),
                child.pid,
                f"{url}/metrics",
            )
        finally:
            await child.end()

"""vLLM's own server, as an operator starts it for a gateway with a remote engine: `vllm serve` on a free port."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from demo_model import SMALL_MODEL
from gateway.engines.host import processes
from loadtest.systems.server import Server, free_port, get
from loadtest.systems.vllm_serve import Serve

# What `docs/engines.md` tells operators to add to `vllm serve`.
FLAGS: dict[str, Any] = {
    "enable_scale_out": True,
    "scheduling_policy": "priority",
    "enable_prompt_tokens_details": True,
}


class VllmServer:
    """A server with the bundled model, and the engine settings that the gateway itself would choose.

    more: further arguments of `vllm serve`, with underscores; None leaves one out.
    """

    def __init__(self, folder: Path, max_num_seqs: int, **more: Any) -> None:
        port = free_port()
        serve = Serve(
            settings={"engine": {"model": str(SMALL_MODEL), "max_num_seqs": max_num_seqs}},
            tuned=True,
            # A gateway says with each request how many tokens are to come together.
            arguments={"stream_interval": None, **FLAGS, **more},
            port=port,
            name="translator",
        )
        command = [sys.executable, "-m", "loadtest.systems.vllm_serve", msgspec.json.encode(serve).decode()]
        self._server = Server("vLLM's server", command, port, folder / "vllm.log", ready_path="/health")
        self.url = self._server.url

    async def start(self) -> None:
        """Start it, or start it again; returns once it takes requests."""
        await self._server.start()
        await self._server.ready("starting vllm serve", lambda _: None)

    async def revive(self) -> None:
        """Start it again where its engine has died."""
        if self._server.running and (await asyncio.to_thread(get, f"{self.url}/health"))[0] == 200:
            return
        await self.end()
        await self.start()

    async def end(self) -> None:
        """End it, whatever state it is in."""
        if self._server.running:
            self.signal_engine(signal.SIGCONT)
        await self._server.end()

    def signal_engine(self, number: int) -> None:
        """Signal the process that has the model, and leave alone the one that answers."""
        own = processes.with_pids(self._server.pid)
        for process in processes.descendants(own) - own:
            os.kill(process.pid, number)


@asynccontextmanager
async def vllm_server(max_num_seqs: int, **more: Any) -> AsyncIterator[VllmServer]:
    """A server that runs while the context lasts."""
    with tempfile.TemporaryDirectory(prefix="vllm-serve-") as folder:
        server = VllmServer(Path(folder), max_num_seqs, **more)
        try:
            await server.start()
            yield server
        finally:
            await asyncio.shield(server.end())

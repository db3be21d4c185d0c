"""`python -m loadtest.baselines --architecture NAME --settings FILE.json --port N`: one baseline, until a signal.

Knows: uvicorn, the options. Must not know: what any part does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
import uvloop

from gateway.domain.errors import StartupError
from gateway.server.uvicorn_server import DrainingServer, listen
from loadtest.baselines.architecture import ARCHITECTURES, plan
from loadtest.baselines.front import application
from loadtest.baselines.workers import Workers
from loadtest.commands import between
from loadtest.results import LoadtestError

__all__ = ["main"]

# For accepted requests, after a signal.
_DRAIN_S = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve; the exit status of the process."""
    options = _parser().parse_args(arguments)
    try:
        made = plan(options.architecture, _settings(options))
        sock = listen(options.host, options.port)
    except (LoadtestError, StartupError) as error:
        sys.stderr.write(f"loadtest.baselines: {error}\n")
        return 1
    broken = False

    def leave() -> None:
        nonlocal broken
        broken = True
        sys.stderr.write(f"loadtest.baselines: {workers.reason}.\n")
        server.stop()

    workers = Workers(made, on_broken=leave)
    server = DrainingServer(
        uvicorn.Config(
            application(workers),
            http="httptools",
            ws="none",
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=round(_DRAIN_S),
        ),
        workers.drain,
    )
    with sock, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if options.ends_with is not None:
            runner.get_loop().add_reader(os.pidfd_open(options.ends_with), server.drain_and_stop)
        runner.run(server.serve(sockets=[sock]))
    return 1 if broken else 0


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if options.settings is not None:
        try:
            settings = msgspec.json.decode(options.settings.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.MsgspecError) as error:
            raise LoadtestError(f"The settings {options.settings} cannot be read: {error}.") from None
    if options.engine is not None:
        settings["engine"] = settings.get("engine", {}) | {"kind": options.engine}
    return settings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m loadtest.baselines",
        description="A translation service as it was built before the gateway: POST /translate.",
    )
    add = parser.add_argument
    add("--architecture", choices=ARCHITECTURES, required=True)
    add("--settings", type=Path, metavar="FILE.json", help="those of a gateway, and a section `baseline`")
    add("--engine", choices=("vllm", "simulated"), help="instead of the one in the settings")
    add("--host", default="127.0.0.1")
    add("--port", type=between(0, 65_535), default=8000, metavar="N")
    add("--ends-with", type=between(1, 2**22), metavar="PID", help="leave when this process has ended")
    return parser


if __name__ == "__main__":
    sys.exit(main())

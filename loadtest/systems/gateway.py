"""The gateway under test: `gateway serve` in a process of its own, or one that runs already.

Knows: its command, its settings file. Must not know: clients, or what is measured.

    python -m loadtest.systems.gateway DESCRIPTOR serve …   # with an engine that another process holds

A gateway that shares its engine with a caller is started so: the descriptor is the socket to the process that
holds the engine, which is its parent.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from loadtest.options import Say, shown
from loadtest.results import LoadtestError
from loadtest.systems.processes import BESIDE_ITS_ENGINE
from loadtest.systems.server import Running, Server, free_port, get, serving
from loadtest.trial.values import WebSocketGateway


def gateway_process(
    settings: Mapping[str, Any],
    folder: Path,
    *,
    port: int | None = None,
    log: str = "gateway.log",
    engine: socket.socket | None = None,
    workers: int | None = None,
) -> Server:
    """A gateway that is to be started. What the environment says of gateways is not read.

    settings: sections nested. folder: for its settings file, its log and its state. port: a free one is found
    without it. engine: leads to the process that holds the engine, which is this one; without it the gateway has
    its own. workers: how many, with a store of their own unless the settings name one; without it one process
    serves, which needs none.
    """
    port = free_port() if port is None else port
    config = folder / "gateway.toml"
    # All clients of a load test have one address.
    config.write_text(as_toml({"max_connections_per_address": 1_000_000, "log_format": "text", **settings}))
    module = ["gateway"] if engine is None else [__name__, str(engine.fileno())]
    serve = ["serve", "--host", "127.0.0.1", "--port", str(port), "--config", str(config)]
    if workers is not None:
        serve += ["--workers", str(workers)]
    if workers is not None or settings.get("keep_engine_s"):
        serve += ["--state-dir", str(folder / "state")]
    return Server(
        "The gateway",
        [sys.executable, "-m", *module, *serve],
        port,
        folder / log,
        environment={name: value for name, value in os.environ.items() if not name.startswith("GATEWAY__")},
        pass_fds=() if engine is None else (engine.fileno(),),
    )


@asynccontextmanager
async def gateway(
    settings: Mapping[str, Any], say: Say, *, name: str = "gateway", workers: int | None = None
) -> AsyncIterator[Running]:
    """A gateway with these settings, ready; it and its engine are gone when the block ends.

    say: told how far it is. workers: as `gateway_process` takes them. Raises `LoadtestError` when it cannot start.
    """
    with tempfile.TemporaryDirectory(prefix="loadtest-gateway-") as folder:
        async with serving(gateway_process(settings, Path(folder), workers=workers), name, say) as server:
            address, metrics = WebSocketGateway(server.url), f"{server.url}/metrics"
            told = shown(settings) | ({} if workers is None else {"workers": workers})
            yield Running(name, address, told, server.pid, metrics)


@asynccontextmanager
async def existing(url: str) -> AsyncIterator[Running]:
    """The gateway that runs already at `url`. Raises `LoadtestError` when it is not ready."""
    url = url.rstrip("/")
    status, _ = await asyncio.to_thread(get, f"{url}/readyz")
    if status == 0:
        raise LoadtestError(f"No gateway answers at {url}.")
    if status != 200:
        raise LoadtestError(f"The gateway at {url} is not ready (status {status}).")
    yield Running("gateway", WebSocketGateway(url), {"url": url}, metrics_url=f"{url}/metrics")


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def as_toml(tree: Mapping[str, Any]) -> str:
    """Text, numbers, booleans, lists and sections of these, as TOML; None is left out.

    Raises `TypeError` for anything else.
    """
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in tree.items() if value is not None)


def _value(value: object) -> str:
    match value:
        case bool() | int() | float():
            return json.dumps(value)
        case str():
            # JSON's escapes are among TOML's; but TOML wants the delete character escaped too.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            # Inline tables: sections under sections need no order of lines.
            inner = (f"{_key(str(name))} = {_value(each)}" for name, each in value.items() if each is not None)
            return "{ " + ", ".join(inner) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
    raise TypeError(f"{value!r} has no place in TOML")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _serve_beside(engine: socket.socket, parent: int, arguments: list[str]) -> int:
    from setproctitle import setproctitle

    from gateway import serving
    from gateway.cli.flags.parser import parser
    from gateway.engines.host.proxy import Host, HostedEngine

    def end_with_parent() -> None:
        select.select([parent], [], [])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    setproctitle(BESIDE_ITS_ENGINE)
    options = parser().parse_args(arguments)
    listens = {"host": options.host, "port": options.port}
    return serving.serve(options.config, listens, build=lambda: HostedEngine(lambda: Host(engine, None)))


if __name__ == "__main__":
    held = socket.socket(fileno=int(sys.argv[1]))
    sys.exit(_serve_beside(held, os.pidfd_open(os.getppid()), sys.argv[2:]))

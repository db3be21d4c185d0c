"""Serves a gateway: listens, handles signals, and says on the terminal what it is doing.

Knows: sockets, uvicorn, the terminal. Must not know: what the gateway is made of (`app`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import sys
import time
import traceback as tracebacks
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn
import uvloop

from gateway import config, state_folder
from gateway.administration import admin_app
from gateway.app import Gateway
from gateway.config import Settings
from gateway.domain.engine import EngineHealth, EngineState
from gateway.domain.errors import StartupError
from gateway.domain.ports import Engine
from gateway.engine import engine_plans, kept_hosts, ready_model
from gateway.runtime import (
    RESERVED_FILES,
    Says,
    log_style,
    log_to,
    raise_file_limit,
    settle_interpreter,
    style_for,
)
from gateway.server.guard.connections import Connections, in_networks
from gateway.server.guard.http import GuardedHttp
from gateway.server.guard.tls import HSTS, TlsHandshake, server_context
from gateway.server.guard.websocket import FrameBudget, GuardedWebSocket
from gateway.server.uvicorn_server import DrainingServer, SideServer, listen

_log = logging.getLogger(__name__)

# Seconds for a client to send the head of a request, and as many for its body.
_REQUEST_S = 15.0

# Connections to the admin address.
_ADMIN_CONNECTIONS = 64

# Frames above our own limit still arrive, to be answered with an error; far above it the server closes (1009).
_HARD_FRAME_FACTOR = 4


def serve(
    config_file: Path | None,
    overrides: Mapping[str, object],
    state_dir: Path | None = None,
    *,
    traceback: bool = False,
    build: Callable[[], Engine] | None = None,
) -> int:
    """Run the gateway until a signal; the process's exit status. Says why on stderr when it cannot start.

    The status is 1 where it could not start, and where it could not write its handover file at the end.
    state_dir: where its engine waits for the next gateway, if it is to. build: makes the engine, where it is not
    the one that the settings name.
    """
    terminal: Says = sys.stderr
    try:
        settings = config.load(config_file, os.environ, overrides)
        terminal = log_to(sys.stderr, style_for(sys.stderr, settings.log_level, settings.log_format))
        if state_dir is not None and not settings.keep_engine_s:
            raise StartupError("--state-dir goes with --workers or --keep-engine.")
        with ExitStack() as opening:
            sock = opening.enter_context(listen(settings.host, settings.port))
            admin = None
            if settings.admin_port is not None:
                admin = opening.enter_context(listen(settings.admin_host, settings.admin_port))
            if build is None:
                tell_model(terminal, settings)
            kept = None
            if settings.keep_engine_s:
                folder = state_dir or state_folder.default_folder()
                opening.enter_context(state_folder.held(folder, reloads=bool(settings.engines)))
                kept = kept_hosts(settings, folder, workers=False)
            if build is None:
                tell_plans(terminal, settings, running=kept is not None and kept.any_found)
            gateway = Gateway(settings, build, kept=kept)
            served, side = server_config(gateway), admin_config(admin_app(gateway))
            sockets = opening.pop_all()
    except StartupError as error:
        return refuse(terminal, error, traceback=traceback)
    settle_interpreter()
    with sockets, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        load = partial(config.load, config_file, os.environ, overrides)
        runner.run(_serve(gateway, load, served, sock, admin, side, terminal))
    if gateway.failure is not None:
        return refuse(terminal, gateway.failure, traceback=traceback)
    return int(gateway.has_lost_handover)


def tell_model(terminal: Says, settings: Settings) -> None:
    """Assemble the bundled model if it is needed and not there yet, and say so before. Raises `StartupError`."""

    def tell(sentence: str) -> None:
        terminal.write(f"{sentence}\n")
        terminal.flush()

    ready_model(settings, tell)


def tell_plans(terminal: Says, settings: Settings, *, running: bool) -> None:
    """Say what the models are and need before they are loaded. Raises `StartupError` if one cannot be loaded here.

    running: whether engines are there already, which have their memory.
    """
    for line in () if running else engine_plans(settings):
        terminal.write(f"{line}\n")
        terminal.flush()


def page_address(sock: socket.socket, *, tls: bool = False) -> str:
    """Where the page of a gateway that listens on `sock` is opened on this machine."""
    host, port = sock.getsockname()[:2]
    if _listens_everywhere(sock):
        # 0.0.0.0 and :: mean every address when listening, and none when connecting.
        host = "::1" if sock.family == socket.AF_INET6 else "127.0.0.1"
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _listens_everywhere(sock: socket.socket) -> bool:
    return ipaddress.ip_address(sock.getsockname()[0]).is_unspecified


def refuse(terminal: Says, error: StartupError, *, traceback: bool) -> int:
    """Say why the gateway cannot start; the exit status."""
    if log_style().format == "json":
        _log.error("%s", error.message, exc_info=error if traceback else None)
        return 1
    if traceback:
        tracebacks.print_exception(error, file=terminal)
    terminal.write(f"gateway: {error.message}\n")
    return 1


def server_config(gateway: Gateway) -> uvicorn.Config:
    """How the gateway is served, here and wherever it is measured or tested.

    Raises `StartupError` if its certificate cannot be used, or the system allows too few connections.
    """
    settings = gateway.settings
    frame_bytes = _HARD_FRAME_FACTOR * settings.limits.message_bytes
    files = raise_file_limit()
    if files < 2 * RESERVED_FILES:
        raise StartupError(
            f"This system lets the gateway open {files} files and connections; it needs at least "
            f"{2 * RESERVED_FILES} (ulimit -Hn, or LimitNOFILE of its service)."
        )
    connections = Connections(
        files - RESERVED_FILES,
        settings.max_connections_per_address,
        shared=in_networks(settings.trusted_proxies),
    )
    http: Callable[..., asyncio.Protocol] = partial(GuardedHttp, connections=connections, request_s=_REQUEST_S)
    headers = []
    if settings.tls_cert is not None and settings.tls_key is not None:
        context = server_context(Path(settings.tls_cert), Path(settings.tls_key))
        http = partial(TlsHandshake, context=context, connections=connections, handshake_s=_REQUEST_S, then=http)
        headers = [HSTS]
    budget = FrameBudget.from_limits(settings.limits, frame_bytes=frame_bytes)
    websocket = partial(GuardedWebSocket, connections=connections, budget=budget)
    return uvicorn.Config(
        gateway.app,
        log_config=None,
        access_log=False,
        # uvicorn only calls them.
        http=cast("type[asyncio.Protocol]", http),
        ws=cast("type[asyncio.Protocol]", websocket),
        headers=headers,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=[form for proxy in settings.trusted_proxies for form in _both_forms(proxy)],
        ws_max_size=frame_bytes,
        ws_per_message_deflate=False,
        ws_ping_interval=settings.ping_interval_s,
        ws_ping_timeout=settings.ping_timeout_s,
        timeout_graceful_shutdown=5,
    )


def _both_forms(network: str) -> tuple[str, ...]:
    """A network, and the form in which a socket for IPv4 and IPv6 shows it."""
    parsed = ipaddress.ip_network(network)
    if parsed.version == 6:
        return (network,)
    return (network, f"::ffff:{parsed.network_address}/{96 + parsed.prefixlen}")


def admin_config(app: Callable[..., Any]) -> uvicorn.Config:
    """How an application is served at the admin address."""
    connections = Connections(_ADMIN_CONNECTIONS, _ADMIN_CONNECTIONS)
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        http=cast("type[asyncio.Protocol]", partial(GuardedHttp, connections=connections, request_s=_REQUEST_S)),
        ws="none",
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )


async def _serve(
    gateway: Gateway,
    load: Callable[[], Settings],
    served: uvicorn.Config,
    sock: socket.socket,
    admin_sock: socket.socket | None,
    side: uvicorn.Config,
    terminal: Says,
) -> None:
    try:
        await gateway.store.open()
    except StartupError as error:
        gateway.failure = error
        return
    changes: set[asyncio.Task[None]] = set()

    def change_engines() -> None:
        changes.add(change := tasks.create_task(_change_engines(gateway, load)))
        change.add_done_callback(changes.discard)

    on_hangup = change_engines if gateway.settings.engines else None
    server = DrainingServer(served, gateway.drain, on_hangup=on_hangup)
    admin = SideServer(side)
    said = Terminal(terminal, gateway.settings, sock)
    async with asyncio.TaskGroup() as tasks:
        if admin_sock is not None:
            tasks.create_task(admin.serve(sockets=[admin_sock]))
            said.metrics(admin_sock)
        watching = tasks.create_task(_watch_engine(gateway, server, said))
        await server.serve(sockets=[sock])
        for task in (watching, *changes):
            task.cancel()
        admin.stop()
    _log.info("stopped")


async def _change_engines(gateway: Gateway, load: Callable[[], Settings]) -> None:
    """Several engines are to be those that the settings name now."""
    try:
        wanted = load().engines
        await gateway.change_engines(lambda _: wanted)
    except StartupError as error:
        _log.error("the engines stay as they were: %s", error.message)
    else:
        _log.info("the engines are those of the settings now")


async def _watch_engine(gateway: Gateway, server: DrainingServer, said: Terminal) -> None:
    said.loading()
    await said.until_ready(gateway.engine.health, lambda: gateway.failure is not None)
    if gateway.failure is not None:
        server.stop()
        return
    said.ready()


# So long an engine that loads is silent in a log, in seconds.
QUIET_S = 15.0


class Terminal:
    """What a gateway that starts says on the terminal. sock: where it is reached."""

    def __init__(self, terminal: Says, settings: Settings, sock: socket.socket) -> None:
        self._terminal = terminal
        self._insecure_open = settings.auth.insecure_open
        self._administered = settings.admin_keys_file is not None
        self._everywhere = _listens_everywhere(sock)
        self._address = page_address(sock, tls=settings.tls_cert is not None)
        self._started_s = time.monotonic()

    def metrics(self, sock: socket.socket) -> None:
        """Where its metrics are, if they have an address of their own, and the administration, if there is one."""
        self._terminal.write(f"Metrics: {page_address(sock)}/metrics\n")
        if self._administered:
            self._terminal.write(f"Administration: {page_address(sock)}/admin/\n")

    def loading(self) -> None:
        """It is reached, and its engine is being loaded."""
        terminal = self._terminal
        terminal.write(f"Loading the engine; the page is at {self._address} already and says how far it is.\n")
        if self._everywhere:
            terminal.write("Others reach it too, at every address of this machine.\n")
        if self._insecure_open:
            terminal.write("Warning: nobody needs a token; whoever reaches it can read and write every meeting.\n")

    async def until_ready(self, health: Callable[[], EngineHealth], failed: Callable[[], bool]) -> None:
        """Say what the engine is doing until it is ready, or could not be started."""
        terminal = self._terminal
        # One line that counts on a terminal; in a log one line per stage, and more where a stage takes long.
        counting = terminal.isatty()
        said, said_s = "", 0.0
        while not failed() and (now := health()).state is not EngineState.READY:
            passed_s = time.monotonic() - self._started_s
            if counting or now.reason != said or passed_s - said_s >= QUIET_S:
                line = f"  {passed_s:4.0f} s  {now.reason}"
                terminal.write(f"\r\033[K{line}" if counting else f"{line}\n")
                terminal.flush()
                said, said_s = now.reason, passed_s
            await asyncio.sleep(0.25)
        if counting:
            terminal.write("\r\033[K")

    def ready(self) -> None:
        """The engine is ready."""
        self._terminal.write(f"Ready: {self._address}\n")

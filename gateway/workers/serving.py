"""Starts a gateway with several workers, and says on the terminal what it is doing.

Knows: sockets, signals, the terminal, the folder for its state. Must not know: how workers are kept running.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import uvloop
from starlette.routing import BaseRoute

from gateway import config, state_folder
from gateway.config import Settings
from gateway.domain.errors import StartupError
from gateway.engine import kept_hosts
from gateway.engines.host.kept_hosts import KeptHosts
from gateway.keys import operators_of
from gateway.runtime import Says, cancelled, log_to, raise_file_limit, style_for
from gateway.server.http import admin
from gateway.server.http.readiness import readiness
from gateway.server.uvicorn_server import SideServer, listen, reserve
from gateway.serving import Terminal, admin_config, refuse, tell_model, tell_plans
from gateway.store import Store
from gateway.workers.administration import routes
from gateway.workers.parent import Parent
from gateway.workers.private_store import PrivateStore, data_folders


def serve(
    config_file: Path | None,
    overrides: Mapping[str, object],
    count: int,
    state_dir: Path | None,
    *,
    traceback: bool = False,
) -> int:
    """Run a gateway with `count` workers until a signal; the exit status. Says why on stderr when it cannot start.

    state_dir: where its process id is, and the data of its own store if the settings name none.
    """
    terminal: Says = sys.stderr
    folder = state_dir or state_folder.default_folder()
    try:
        settings = config.load(config_file, os.environ, overrides)
        if settings.event_log.handover_file is not None:
            raise StartupError(
                "event_log.handover_file is for one process: leave it out, as the store of the workers keeps all "
                "of it."
            )
        terminal = log_to(sys.stderr, style_for(sys.stderr, settings.log_level, settings.log_format))
        raise_file_limit()
        with ExitStack() as opening:
            sock = opening.enter_context(reserve(settings.host, settings.port))
            side = None
            if settings.admin_port is not None:
                side = opening.enter_context(listen(settings.admin_host, settings.admin_port))
            # Whoever finds the process in the folder may send it SIGHUP.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            lock = opening.enter_context(state_folder.held(folder))
            private = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="gateway-")))
            stores = []
            if not settings.store.urls:
                stores = [PrivateStore(private, data, lock) for data in data_folders(folder, count)]
                overrides = {**overrides, "store.url": " ".join(store.url for store in stores)}
                settings = config.load(config_file, os.environ, overrides)
            tell_model(terminal, settings)
            kept = kept_hosts(settings, folder, workers=True)
            tell_plans(terminal, settings, running=kept is not None and kept.any_found)
            opened = opening.pop_all()
    except StartupError as error:
        return refuse(terminal, error, traceback=traceback)
    load = partial(config.load, config_file, os.environ, overrides)
    with opened, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        failure = runner.run(_serve(settings, load, count, private, kept, stores, sock, side, terminal))
    if failure is not None:
        return refuse(terminal, failure, traceback=traceback)
    return 0


async def _serve(
    settings: Settings,
    load: Callable[[], Settings],
    count: int,
    private: Path,
    kept: KeptHosts | None,
    stores: Sequence[PrivateStore],
    sock: socket.socket,
    side: socket.socket | None,
    terminal: Says,
) -> StartupError | None:
    parent = Parent(settings, count, private, sock.getsockname()[1], kept)
    said = Terminal(terminal, settings, sock)
    try:
        async with (
            _signals(parent, load),
            _running(stores, parent),
            _administration(settings, parent) as more,
            asyncio.TaskGroup() as tasks,
        ):
            if parent.stopping:
                return None
            app = admin.app(
                settings.admin_host,
                settings.allowed_hosts,
                parent.metrics,
                lambda: readiness(parent.engine.health(), parent.whole(), settings.auth.kind),
                more=more,
            )
            server = SideServer(admin_config(app))
            if side is not None:
                tasks.create_task(server.serve(sockets=[side]))
                said.metrics(side)
            saying = tasks.create_task(_say(parent, said))
            await parent.run()
            saying.cancel()
            server.stop()
    except StartupError as error:
        return error
    return parent.failure


@contextlib.asynccontextmanager
async def _administration(settings: Settings, parent: Parent) -> AsyncIterator[list[BaseRoute]]:
    """Its routes, if there is one, and the store that they ask. Raises `StartupError`."""
    if parent.stopping or (allowed := operators_of(settings)) is None:
        yield []
        return
    store = Store(settings, lambda _: None)
    try:
        await store.reach()
        yield routes(allowed, store, parent)
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def _running(stores: Sequence[PrivateStore], parent: Parent) -> AsyncIterator[None]:
    """They end after everything that uses them. If the parent is stopped before they run, they never do."""

    async def start() -> None:
        results = await asyncio.gather(*(store.start() for store in stores), return_exceptions=True)
        for failure in filter(None, results):
            raise failure

    try:
        starting = asyncio.create_task(start())
        stopping = asyncio.create_task(parent.until_stopping())
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not starting.done():
            await cancelled(starting)
        else:
            starting.result()
        yield
    finally:
        await asyncio.gather(*(store.stop() for store in stores))


@contextlib.asynccontextmanager
async def _signals(parent: Parent, load: Callable[[], Settings]) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    ends = [number for number in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(number) is not signal.SIG_IGN]
    for number in ends:
        loop.add_signal_handler(number, parent.stop)
    # Also where nohup has it ignored, as operators use it.
    loop.add_signal_handler(signal.SIGHUP, parent.reload, load)
    try:
        yield
    finally:
        for number in (*ends, signal.SIGHUP):
            loop.remove_signal_handler(number)


async def _say(parent: Parent, said: Terminal) -> None:
    await parent.until_one_serves()
    if not parent.stopping:
        said.loading()
    await said.until_ready(parent.engine.health, lambda: parent.stopping)
    await parent.until_all_serve()
    if not parent.stopping:
        said.ready()


def reload(state_dir: Path | None) -> int:
    """Let the gateway that runs replace its workers; the exit status. Raises `StartupError` if none runs."""
    folder = state_dir or state_folder.default_folder()
    pid = state_folder.holder(folder)
    if pid is None:
        raise StartupError(
            f"No gateway with workers has its state in {folder}: start one with `gateway serve --workers N`, or "
            "name its folder with --state-dir."
        )
    os.kill(pid, signal.SIGHUP)
    print(f"The workers of process {pid} are replaced, one after another; its log says how it goes.")
    return 0

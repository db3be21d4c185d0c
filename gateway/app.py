"""The one place that names every adapter: builds the application from the settings and runs it.

Knows: which parts there are and who needs whom. Must not know: what any of them does.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import socket
import sys
import traceback as tracebacks
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TextIO

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import WebSocketRoute

from gateway import config, metrics
from gateway.config import Settings
from gateway.domain.engine import EngineHealth, EngineState
from gateway.domain.errors import EngineRestarting, EngineUnavailable, StartupError, error_classes
from gateway.domain.ports import Engine
from gateway.domain.sessions import Handover
from gateway.engines.host.proxy import HostedEngine, start_host
from gateway.engines.simulated import simulated_engines
from gateway.engines.supervisor import RestartPolicy, Supervisor
from gateway.engines.vllm.engine import VllmEngine
from gateway.engines.vllm.options import VllmOptions
from gateway.metrics import DEFAULT_ENGINE
from gateway.protocol.from_domain import error_message
from gateway.runtime import log_to, settle_interpreter
from gateway.server import api, page
from gateway.server.connection import Core
from gateway.server.uvicorn_server import DrainingServer, listen
from gateway.server.websocket import Stream
from gateway.sessions.registry import Registry
from gateway.stores import handover_file
from gateway.stores.memory_log import MemoryEventLog
from gateway.translation.event_loop_lag import EventLoopLag
from gateway.translation.finals import Finals
from gateway.translation.partials import Partials
from gateway.translation.scheduler import Scheduler

__all__ = ["Gateway", "engine_options", "page_address", "serve"]

_log = logging.getLogger(__name__)

# For outcomes to be published and outboxes to be read, once work has ended.
_GOODBYE_S = 5.0

_SWEEP_S = 1.0

# Frames above our own limit still arrive, to be answered with an error; far above it the server closes (1009).
_HARD_FRAME_FACTOR = 4


class Gateway:
    """Everything that lives as long as the process.

    `build`, which makes an engine, may be given by tests; otherwise the settings say which one it is. Raises
    `StartupError` when the handover file of an earlier process cannot be used.
    """

    def __init__(self, settings: Settings, build: Callable[[], Engine] | None = None) -> None:
        self.settings = settings
        self.engine = Supervisor(
            build or _engine_factory(settings),
            config.part(RestartPolicy, settings.engine),
            on_change=self._engine_changed,
        )
        self.log = MemoryEventLog(
            max_publications=settings.event_log.max_publications,
            keep_s=settings.event_log.keep_s,
            max_bytes=settings.event_log.max_bytes,
        )
        self.scheduler = Scheduler(
            self.engine,
            max_waiting=settings.max_waiting,
            best_effort_share=settings.partials_share,
            deadline_s=settings.utterance_deadline_s,
        )
        self._lag = EventLoopLag()
        self.partials = Partials(
            self.scheduler, translates=settings.partials_share > 0, lag_s=lambda: self._lag.mean_s
        )
        self.finals = Finals(
            self.scheduler,
            self.partials,
            leaves_unfinished=settings.event_log.handover_file is not None,
            delta_interval_s=settings.delta_interval_s,
        )
        self.registry = Registry(
            log=self.log,
            finals=self.finals,
            partials=self.partials,
            limits=settings.limits,
            max_sessions=settings.max_sessions,
            snapshot=settings.snapshot_utterances,
        )
        self.stream = Stream(
            Core(
                engine=self.engine,
                scheduler=self.scheduler,
                finals=self.finals,
                partials=self.partials,
                registry=self.registry,
                limits=settings.limits,
            ),
            outbox_bytes=settings.outbox_bytes,
            max_sessions=settings.max_sessions,
            allowed_origins=frozenset(settings.allowed_origins),
        )
        self.failure: StartupError | None = None
        self._earlier: Handover | None = None
        if (file := settings.event_log.handover_file) is not None:
            handover_file.check(Path(file))
            self._earlier = handover_file.read(Path(file))
        for cls in error_classes():
            metrics.ERRORS.labels(cls.code)  # an alert on growth needs the series before the first error
        metrics.TRANSLATIONS_WAITING.set_function(lambda: self.scheduler.waiting)
        metrics.TRANSLATIONS_RUNNING.set_function(lambda: self.scheduler.running)
        metrics.ENGINE_RUNNING.labels(DEFAULT_ENGINE).set_function(lambda: self.engine.capacity().running)
        metrics.ENGINE_WAITING.labels(DEFAULT_ENGINE).set_function(lambda: self.engine.capacity().waiting)
        metrics.ENGINE_READY.labels(DEFAULT_ENGINE).set(False)
        self.app = Starlette(
            routes=[
                WebSocketRoute("/v1/stream", self.stream.endpoint),
                *api.routes(
                    scheduler=self.scheduler,
                    engine=self.engine,
                    limits=settings.limits,
                    log=self.log,
                    delta_interval_s=settings.delta_interval_s,
                ),
                *page.routes(),
            ],
            middleware=_middleware(settings),
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        # Serving begins at once: health, readiness and the page answer while the engine loads.
        async with asyncio.TaskGroup() as tasks, self.finals, self.partials, self.registry:
            await self._take_over()
            loading = tasks.create_task(self._load())
            sweeping = tasks.create_task(self._sweep())
            with self._lag:
                yield
            sweeping.cancel()
            loading.cancel()
            await self.engine.stop()

    def _engine_changed(self, health: EngineHealth) -> None:
        metrics.ENGINE_READY.labels(DEFAULT_ENGINE).set(health.state is EngineState.READY)
        self.scheduler.engine_changed()
        if health.state is EngineState.READY:
            self._taken_over()
            self.registry.catch_up()
        elif health.state is EngineState.RESTARTING:
            self.registry.tell(error_message(EngineRestarting(health.reason)))
        elif health.state is EngineState.FAILED:
            self.registry.tell(error_message(EngineUnavailable(health.reason)))

    async def _sweep(self) -> None:
        """What has expired is let go of, every second."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.log.sweep()
            self.stream.close_idle()
            await self.registry.sweep()
            metrics.LOG_PUBLICATIONS.set(self.log.publications)
            metrics.LOG_BYTES.set(self.log.bytes)

    # ------------------------------------------------------------ restarts

    async def _take_over(self) -> None:
        """Go on where an earlier process left off."""
        if self._earlier is not None:
            self.log.restore(self._earlier.meetings)
            await self.registry.restore(self._earlier)
            _log.info(
                "took over %d meetings and %d sessions", len(self._earlier.meetings), len(self._earlier.sessions)
            )

    def _taken_over(self) -> None:
        """From now on the file would be out of date; before, a start that fails leaves it as it was."""
        if self._earlier is not None and (file := self.settings.event_log.handover_file) is not None:
            self._earlier = None
            try:
                handover_file.discard(Path(file))
            except OSError as error:
                _log.error("%s cannot be deleted (%s): delete it", file, error.strerror or error)

    def _hand_over(self) -> None:
        if (file := self.settings.event_log.handover_file) is None:
            return
        left = Handover(meetings=self.log.dump(), sessions=self.registry.kept())
        try:
            handover_file.write(Path(file), left)
        except OSError as error:
            _log.error("sessions and logs are lost: %s cannot be written (%s)", file, error.strerror or error)
        else:
            _log.info("left %d meetings and %d sessions in %s", len(left.meetings), len(left.sessions), file)

    async def _load(self) -> None:
        try:
            await self.engine.start()
        except StartupError as error:
            self.failure = error
        except Exception as error:
            _log.exception("the engine could not be started")
            self.failure = StartupError(f"The engine could not be started ({type(error).__name__}: {error}).")

    async def drain(self) -> None:
        """Admit nothing more, finish what was accepted within the deadline, close every session."""
        deadline_s = self.settings.drain_s
        self.stream.announce_drain(deadline_s)
        try:
            if await self.scheduler.drain(deadline_s):
                _log.info("accepted work is finished")
            else:
                left = self.scheduler.running + self.scheduler.waiting
                _log.warning("the drain deadline of %g s passed with %d translations left", deadline_s, left)
        finally:
            # Cancelled by a second signal, it still says goodbye, and by a third leaves what it knows.
            try:
                await self._say_goodbye()
            finally:
                self._hand_over()

    async def _say_goodbye(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):
                await self.finals.quiet()
        await self.stream.close_all(_GOODBYE_S)


# The names under which a browser reaches a gateway that listens on loopback only.
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")


def _middleware(settings: Settings) -> list[Middleware]:
    """On loopback, only requests for loopback: a foreign page whose name resolves to 127.0.0.1 is refused."""
    if settings.host not in _LOOPBACK:
        return []
    return [Middleware(TrustedHostMiddleware, allowed_hosts=_LOOPBACK, www_redirect=False)]


def _engine_factory(settings: Settings) -> Callable[[], Engine]:
    engine = settings.engine
    if engine.kind == "simulated":
        return simulated_engines(engine.script)
    build = partial(VllmEngine, engine_options(settings))
    return lambda: HostedEngine(partial(start_host, build))


def engine_options(settings: Settings) -> VllmOptions:
    """What vLLM's engine is given."""
    return config.part(VllmOptions, settings.engine, settings)


def serve(
    config_file: Path | None,
    overrides: Mapping[str, object],
    *,
    traceback: bool = False,
    build: Callable[[], Engine] | None = None,
) -> int:
    """Run the gateway until a signal; the process's exit status. Says why on stderr when it cannot start.

    build: makes the engine, where it is not the one that the settings name.
    """
    terminal = sys.stderr
    try:
        settings = config.load(config_file, os.environ, overrides)
        log_to(terminal, settings.log_level.upper())
        sock = listen(settings.host, settings.port)
        gateway = Gateway(settings, build)
    except StartupError as error:
        return _refuse(terminal, error, traceback=traceback)
    settle_interpreter()
    with sock, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(gateway, sock, terminal))
    if gateway.failure is not None:
        return _refuse(terminal, gateway.failure, traceback=traceback)
    return 0


def page_address(sock: socket.socket) -> str:
    """Where the page of a gateway that listens on `sock` is opened on this machine."""
    host, port = sock.getsockname()[:2]
    if _listens_everywhere(sock):
        # 0.0.0.0 and :: mean every address when listening, and none when connecting.
        host = "::1" if sock.family == socket.AF_INET6 else "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _listens_everywhere(sock: socket.socket) -> bool:
    return ipaddress.ip_address(sock.getsockname()[0]).is_unspecified


def _refuse(terminal: TextIO, error: StartupError, *, traceback: bool) -> int:
    if traceback:
        tracebacks.print_exception(error, file=terminal)
    terminal.write(f"gateway: {error.message}\n")
    return 1


def server_config(gateway: Gateway) -> uvicorn.Config:
    """How the gateway is served, here and wherever it is measured or tested."""
    return uvicorn.Config(
        gateway.app,
        log_config=None,
        access_log=False,
        ws="websockets-sansio",
        ws_max_size=_HARD_FRAME_FACTOR * gateway.settings.limits.message_bytes,
        ws_per_message_deflate=False,
        ws_ping_interval=gateway.settings.ping_interval_s,
        ws_ping_timeout=gateway.settings.ping_timeout_s,
        timeout_graceful_shutdown=5,
    )


async def _serve(gateway: Gateway, sock: socket.socket, terminal: TextIO) -> None:
    server = DrainingServer(server_config(gateway), gateway.drain)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(_watch_engine(gateway, server, sock, terminal))
        await server.serve(sockets=[sock])
        watching.cancel()
    _log.info("stopped")


async def _watch_engine(gateway: Gateway, server: DrainingServer, sock: socket.socket, terminal: TextIO) -> None:
    """Say on the terminal what the engine is doing until it is ready; leave when it cannot be started."""
    started_s = asyncio.get_running_loop().time()
    address = page_address(sock)
    terminal.write(f"Loading the engine; the page is at {address} already and says how far it is.\n")
    if _listens_everywhere(sock):
        terminal.write("Others reach it too, at every address of this machine.\n")
    # One line that counts on a terminal, one line per stage in a log.
    counting = terminal.isatty()
    said = ""
    while gateway.failure is None and (health := gateway.engine.health()).state is not EngineState.READY:
        if counting or health.reason != said:
            elapsed_s = asyncio.get_running_loop().time() - started_s
            line = f"  {elapsed_s:4.0f} s  {health.reason}"
            terminal.write(f"\r\033[K{line}" if counting else f"{line}\n")
            terminal.flush()
            said = health.reason
        await asyncio.sleep(0.25)
    if counting:
        terminal.write("\r\033[K")
    if gateway.failure is not None:
        server.stop()
        return
    terminal.write(f"Ready: {address}\n")

"""One worker: a gateway of its own in a process of its own, with the engine that all workers share.

Knows: what its parent says, sockets, the gateway. Must not know: other workers, what the parent does with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from setproctitle import setproctitle

from gateway import __version__
from gateway.app import Gateway
from gateway.config import Settings
from gateway.domain.errors import StartupError
from gateway.engines.host.channel import Channel
from gateway.engines.host.main import SIGNALS
from gateway.engines.host.messages import GetMetrics, Metrics
from gateway.engines.host.orphans import exit_with_parent
from gateway.engines.host.questions import Questions
from gateway.engines.host.shared import SharedEngine
from gateway.runtime import cancelled, log_from, log_to, settle_interpreter, style_for
from gateway.server.http.admin import own_metrics
from gateway.server.http.readiness import Whole
from gateway.server.uvicorn_server import DrainingServer, listen
from gateway.serving import server_config
from gateway.workers.messages import (
    PROTOCOLS,
    Drain,
    EngineIs,
    LogFrom,
    Refused,
    Report,
    Serves,
    ToParent,
    ToWorker,
)

_log = logging.getLogger(__name__)

# Longest wait for the metrics of all workers; the parent waits for less.
_METRICS_S = 5.0

# Longest wait for an engine that is ready, before anybody is served.
_ENGINE_S = 10.0

# Longest wait for the parent to have heard why there is no worker; one of another version may not answer.
_REFUSED_S = 30.0


def run(
    sock: socket.socket, settings: Settings, number: int, protocols: tuple[int, ...], listening: socket.socket
) -> None:
    """The main function of a worker's process, which may be of a later version than its parent.

    sock: the channel to its parent. protocols: those of its parent. listening: as of `_Worker`.
    """
    setproctitle(f"gateway worker {number}")
    # Signals of a terminal or of a supervisor are for the parent alone, which tells its workers to drain.
    os.setsid()
    exit_with_parent()
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    log_to(sys.stderr, style_for(sys.stderr, settings.log_level, settings.log_format), who=f"worker {number}")
    settle_interpreter()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_Worker(settings, protocols, listening).serve(sock))


class _Worker:
    """Also the `Workers` of its gateway.

    listening: where its parent gets each socket at which it listens, before it is told `Serves`.
    """

    def __init__(self, settings: Settings, protocols: tuple[int, ...], listening: socket.socket) -> None:
        self._settings = settings
        self._listening = listening
        self._protocols = protocols
        names = [lane.name for lane in settings.engines] or ([""] if settings.engine.is_shared else [])
        self.engines: Mapping[str, SharedEngine] = {name: SharedEngine() for name in names}
        # Engines of which nothing was told yet.
        self._waits_for = set(self.engines)
        self._told = asyncio.Event()
        self._whole = Whole(0, 0)
        self._gateway: Gateway | None = None
        self._opening: asyncio.Task[socket.socket | None] | None = None
        self._server: DrainingServer | None = None
        self._drains = False
        self._channel: Channel[ToParent, Any] = (
            Channel(ToWorker, self._heard, self._lost)
            if protocols == PROTOCOLS
            else Channel(Any, self._heard_in_another_way, self._lost)
        )
        self._questions = Questions(self._channel.say, _METRICS_S)
        self._answering: set[asyncio.Task[None]] = set()
        self._listening_again: asyncio.Task[None] | None = None

    async def serve(self, sock: socket.socket) -> None:
        self._opening = asyncio.create_task(self._open(sock))
        # Told to drain, it is cancelled.
        await asyncio.wait([self._opening])
        if not self._opening.cancelled() and (listening := self._opening.result()) is not None:
            assert self._server is not None  # noqa: S101 -- it was made before
            with listening:
                await self._server.serve(sockets=[listening])
        await cancelled(*self._answering)
        self._listening.close()
        self._channel.close()
        # Closing lasts until all is sent.
        await asyncio.sleep(0)

    async def _open(self, sock: socket.socket) -> socket.socket | None:
        """All that comes before it serves: where it listens, or None if it cannot."""
        settings = self._settings
        await self._channel.open(sock)
        if self._protocols != PROTOCOLS:
            await self._refuse(f"version {__version__} speaks to its parent in another way: restart the gateway")
            return None
        try:
            self._gateway = gateway = Gateway(settings, workers=self)
            served = server_config(gateway)
            await gateway.store.open()
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_ENGINE_S):
                        await self._told.wait()
                        for engine in self.engines.values():
                            await engine.until_reached()
                listening = self._listen()
            except BaseException:  # cancelled, too
                await gateway.store.leave()
                raise
        except StartupError as error:
            await self._refuse(error.message)
            return None
        self._server = DrainingServer(served, gateway.drain, shared=True, on_started=self._serves)
        return listening

    def _listen(self) -> socket.socket:
        """Where it listens from now on. Raises `StartupError`."""
        sock = listen(self._settings.host, self._settings.port, shared=True)
        socket.send_fds(self._listening, [b"\0"], [sock.fileno()])
        return sock

    async def _listen_again(self, server: DrainingServer) -> None:
        """The parent has shut down the listening socket, as this worker did not answer for some seconds."""
        try:
            await server.listen_at(self._listen())
        except (StartupError, OSError) as error:
            _log.error("no connections come to this worker now (%s)", error)
        else:
            self._channel.say(Serves())

    async def _refuse(self, sentence: str) -> None:
        """Say why it cannot serve, and wait to be cancelled: it is told to drain, or has lost its parent.

        If it hung up at once, a parent that speaks at that moment would lose the connection before it has read.
        """
        self._channel.say(Refused(sentence))
        await asyncio.sleep(_REFUSED_S)

    def _serves(self) -> None:
        self._channel.say(Serves())
        if self._drains and self._server is not None:
            self._server.drain_and_stop()

    def _lost(self) -> None:
        self._questions.lost()
        # Nobody would ever end it.
        if not self._drains:
            self._drain()

    def _drain(self) -> None:
        again, self._drains = self._drains, True
        if self._server is None:
            assert self._opening is not None  # noqa: S101 -- the channel was opened by it
            if not again:  # leaving the store is not cut short
                self._opening.cancel()
        elif self._server.started:
            self._server.drain_and_stop()
            if again:
                self._server.hurry()

    def _heard(self, message: ToWorker) -> None:
        match message:
            case EngineIs():
                # It is told of others, too, when new settings have them; these are for the workers that come.
                if (engine := self.engines.get(message.name)) is not None:
                    path = None if message.path is None else Path(message.path)
                    engine.follow_parent(message.health, path, message.profile)
                self._waits_for.discard(message.name)
                if not self._waits_for:
                    self._told.set()
            case Whole():
                self._whole = message
                if (gateway := self._gateway) is not None:
                    scheduler = gateway.scheduler
                    self._channel.say(Report(scheduler.running, scheduler.waiting, gateway.store.fault))
                else:
                    self._channel.say(Report(0, 0))
                self._see_that_it_listens()
            case Drain():
                self._drain()
            case LogFrom():
                log_from(message.level)
            case GetMetrics():
                self._begin(self._answer(message))
            case Metrics():
                self._questions.answered(message)

    def _see_that_it_listens(self) -> None:
        server, again = self._server, self._listening_again
        # While it drains, its sockets are closed.
        if server is None or not server.started or self._drains or server.listens:
            return
        if again is None or again.done():
            self._listening_again = self._begin(self._listen_again(server))

    def _begin(self, answer: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(answer)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        return task

    def _heard_in_another_way(self, message: Any) -> None:
        """The parent speaks to workers of another version, which is not to keep this one from saying so."""
        if message == msgspec.to_builtins(Drain()):
            self._drain()

    async def _answer(self, message: GetMetrics) -> None:
        # The parent has those of the engines, once for all workers.
        page = await own_metrics(None)(message.names)
        self._channel.say(Metrics(message.number, page))

    # ------------------------------------------------------------ Workers

    async def metrics(self, names: Sequence[str], /) -> bytes:
        return await self._questions.ask(names)

    def whole(self) -> Whole:
        return self._whole

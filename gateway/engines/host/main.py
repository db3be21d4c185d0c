"""Runs an engine in this process for a gateway in another: the other end of `host.proxy`.

Tokenising, detokenising and handing out tokens takes as much CPU time as all of the gateway's own work for a
translation. In this process it takes none of the time of the gateway's event loop.
Knows: the engine's life, the gateway that started this process.
Must not know: which engine it is, who reads a translation, what gateways besides this one do (`sharing`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import traceback
from collections.abc import Callable
from pathlib import Path

import uvloop
from setproctitle import setproctitle

from gateway.domain.errors import StartupError
from gateway.domain.ports import Engine
from gateway.engines.host import processes
from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import GetActivity, Load, Started, State, Stop, ToGateway, ToHost
from gateway.engines.host.orphans import exit_with_parent
from gateway.engines.host.sharing import Sharing
from gateway.engines.host.work import EngineWork, GatewayWork
from gateway.runtime import LogStyle, log_to, settle_interpreter

__all__ = ["SIGNALS", "run", "serve"]

_log = logging.getLogger(__name__)

# Signals that an operator or a terminal sends to all processes of a service. Only the gateway acts on them: it
# finishes accepted work. A process that executes `run` is started with these signals blocked.
SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

# Longest wait for killed child processes to be gone.
_KILL_S = 1.0

# Time between two checks of the engine's state while nothing is generated.
_LOOK_S = 0.1


def run(sock: socket.socket, build: Callable[[], Engine], log_as: LogStyle, shared_at: Path | None = None) -> None:
    """The main function of a process that hosts an engine.

    shared_at: a Unix socket, in a private folder, at which gateways share the engine once it has started.
    """
    setproctitle("gateway engine host")
    # Signals of a terminal, or to the gateway's process group, then do not reach this process or its children.
    os.setsid()
    for number in SIGNALS:
        # Unlike SIG_IGN, a handler is not inherited by vLLM's processes, which are ended by signals.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    # Child processes that are loading would wait for minutes for a host that is gone.
    exit_with_parent(_kill_below)
    settle_interpreter()
    # While vLLM starts, stderr goes to a file, so the log needs its own descriptor.
    with os.fdopen(os.dup(2), "w", buffering=1) as terminal:
        log_to(terminal, log_as)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_host(sock, build, shared_at))


def _kill_below() -> None:
    own = processes.of(os.getpid())
    processes.kill(processes.descendants(own) - own, _KILL_S)


async def _host(sock: socket.socket, build: Callable[[], Engine], shared_at: Path | None) -> None:
    engine = build()
    starting = asyncio.create_task(engine.start())
    # Let `start` run its first step: it creates the log file, and the first message names it.
    await asyncio.sleep(0)
    try:
        await serve(sock, engine, starting, shared_at)
    finally:
        await engine.stop()
        # A stopped engine does not continue its start, and the gateway knows the outcome.
        starting.cancel()
        await asyncio.wait([starting])


async def serve(
    sock: socket.socket, engine: Engine, starting: asyncio.Future[None], shared_at: Path | None = None
) -> None:
    """Serve the engine to the gateway at the other end until that says stop or is gone. Does not stop the engine.

    starting: done once the engine has started, or failed to start. shared_at: see `run`; the gateway at the other
    end is then the parent of those that come there.
    """
    host = _Host(engine)
    try:
        async with contextlib.AsyncExitStack() as sharing:
            if shared_at is not None:
                await sharing.enter_async_context(host.sharing.listening(shared_at))
            await host.serve(sock, starting)
    finally:
        await host.close()


class _Host:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._channel: Channel[ToGateway, ToHost] = Channel(ToHost, self._heard, self._end)
        self._ended = asyncio.Event()
        # The load is sent with the token, so it is never older than a token.
        work = EngineWork(engine, on_token=self._look_at_load, on_failure=self._look)
        self._all = work
        self.work = GatewayWork(work, self._channel.say)
        self.sharing = Sharing(work)
        self._state: State | None = None
        self._load = Load(0, 0)

    async def serve(self, sock: socket.socket, starting: asyncio.Future[None]) -> None:
        await self._channel.open(sock)
        # The callback runs in a later turn of the loop, after the first look.
        starting.add_done_callback(self._started)
        with self._all.lag:
            while not self._ended.is_set():
                self._look()
                self.sharing.divide()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._ended.wait()
        starting.remove_done_callback(self._started)

    async def close(self) -> None:
        await self.work.close()
        self._channel.close()

    def _end(self) -> None:
        self._ended.set()

    def _started(self, starting: asyncio.Future[None]) -> None:
        if starting.cancelled():
            return
        self._look()
        try:
            starting.result()
            profile, most = self._engine.profile(), self._engine.capacity().max_running
            self._channel.say(Started(profile=profile, max_running=most))
        except StartupError as error:
            self._channel.say(Started(error.message, "".join(traceback.format_exception(error))))
        except Exception as error:
            _log.exception("the engine could not be started")
            sentence = f"The engine could not be started ({type(error).__name__}: {error})."
            self._channel.say(Started(sentence, "".join(traceback.format_exception(error))))

    def _look(self) -> None:
        """Send the state and load if they have changed."""
        health = self._engine.health()
        log_path = getattr(self._engine, "log_path", None)
        if (state := State(health, None if log_path is None else str(log_path))) != self._state:
            self._state = state
            self._channel.say(state)
        self._look_at_load()

    def _look_at_load(self) -> None:
        capacity = self._all.capacity()
        if (load := Load(capacity.running, capacity.waiting, capacity.lag_s)) != self._load:
            self._load = load
            self._channel.say(load)

    def _heard(self, message: ToHost) -> None:
        match message:
            case Stop():
                self._end()
            case GetActivity():
                self._channel.say(self._all.activity)
            case _:
                self.work.heard(message)

"""Runs an engine in this process for gateways in others: the other end of `host.proxy`.

Token ids come in, and token ids go out. Under load vLLM's own front end fills the core that it has, so nothing
else is done here: those who ask make the prompts and the texts.
It ends with its gateway, or waits a while for the next one, which finds it at a socket (`Keep`).
Knows: the engine's life, the gateway that has this process.
Must not know: which engine it is, who reads a translation, what gateways besides this one do (`sharing`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import uvloop
from setproctitle import setproctitle

from gateway import __version__
from gateway.domain.engine import EngineState
from gateway.domain.errors import StartupError
from gateway.engines.host import processes
from gateway.engines.host.messages import (
    PROTOCOL,
    GetSilence,
    Hello,
    Silence,
    Slots,
    Started,
    State,
    Stop,
    ToGateway,
    ToHost,
)
from gateway.engines.host.orphans import exit_when_hung, exit_with_parent
from gateway.engines.host.sharing import Gateway, Sharing
from gateway.engines.prompting.completions import Completions
from gateway.runtime import LogStyle, cancelled, log_to, settle_interpreter, within

_log = logging.getLogger(__name__)

# Signals that an operator or a terminal sends to all processes of a service. Only the gateway acts on them: it
# finishes accepted work. A process that executes `run` is started with these signals blocked.
SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

# Longest wait for killed child processes to be gone.
_KILL_S = 1.0

# Time between two looks at the engine's state and load.
_LOOK_S = 0.1

# A host that no gateway has ends once its event loop has not turned for so much longer than it would wait for one.
_HUNG_S = 60.0


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """A host that is started in the block inherits this, so a signal meant for this process never ends it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Keep(NamedTuple):
    """How a host outlives its gateway."""

    # A Unix socket, in a private folder, at which the next one finds it.
    at: Path
    # For how long it waits for one.
    for_s: float
    # See `Hello`.
    made_of: str


class Role(NamedTuple):
    """What a host is to other processes: by default, the host of one gateway."""

    # A Unix socket, in a private folder, at which gateways share the engine once it has started. The gateway that
    # has the host is then the parent of those that come there.
    shared_at: Path | None = None
    # None: it ends with its gateway.
    keep: Keep | None = None


def run(sock: socket.socket, build: Callable[[], Completions], log_as: LogStyle, role: Role) -> None:
    """The main function of a process that hosts an engine, and ends with the process that has started it."""
    # Signals of a terminal, or to the gateway's process group, then do not reach this process or its children.
    os.setsid()
    _take_signals()
    # Child processes that are loading would wait for minutes for a host that is gone.
    exit_with_parent(_kill_below)
    _run(sock, build, log_as, role)


def run_kept(descriptor: int) -> None:
    """The main function of one that may outlive it, started in a session of its own.

    descriptor: of its socket. What `run` is given comes over stdin, after the path of modules.
    """
    _take_signals()
    path, given = pickle.load(sys.stdin.buffer)  # noqa: S301 -- from the process that has started this one
    sys.path[:] = path
    build, log_as, role = pickle.loads(given)  # noqa: S301
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    _run(socket.socket(fileno=descriptor), build, log_as, role)


def _take_signals() -> None:
    setproctitle("gateway engine host")
    for number in SIGNALS:
        # Unlike SIG_IGN, a handler is not inherited by vLLM's processes, which are ended by signals.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _run(sock: socket.socket, build: Callable[[], Completions], log_as: LogStyle, role: Role) -> None:
    settle_interpreter()
    # While vLLM starts, stderr goes to a file, so the log needs its own descriptor.
    with os.fdopen(os.dup(2), "w", buffering=1) as terminal:
        log_to(terminal, log_as)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_host(sock, build, role))


def _kill_below() -> None:
    own = processes.with_pids(os.getpid())
    processes.kill(processes.descendants(own) - own, _KILL_S)


async def _host(sock: socket.socket, build: Callable[[], Completions], role: Role) -> None:
    engine = build()
    starting = asyncio.create_task(engine.start())
    # Let `start` run its first step: it creates the log file, and the first message names it.
    await asyncio.sleep(0)
    try:
        await serve(sock, engine, starting, role)
    finally:
        await engine.stop()
        # A stopped engine does not continue its start, and the gateway knows the outcome.
        await cancelled(starting)


async def serve(sock: socket.socket, engine: Completions, starting: asyncio.Future[None], role: Role) -> None:
    """Serve the engine to the gateway at the other end until that says stop or is gone. Does not stop the engine.

    starting: done once the engine has started, or failed to start.
    """
    keep = role.keep
    if keep is not None and _is_gone(sock):
        # The next gateway may have looked already, and would not find this host.
        sock.close()
        return
    host = _Host(engine, starting, role)
    try:
        async with contextlib.AsyncExitStack() as sharing:
            if role.shared_at is not None:
                await sharing.enter_async_context(host.sharing.listening(role.shared_at))
            if keep is not None:
                await sharing.enter_async_context(host.kept_at(keep.at))
                # A gateway that has it decides for itself how long it waits.
                exit_when_hung(lambda: host.turns, lambda: host.is_attended, keep.for_s + _HUNG_S, _kill_below)
            await host.serve(sock)
    finally:
        await host.sharing.close()


def _is_gone(sock: socket.socket) -> bool:
    """Whether the other end was closed, with nothing more to read."""
    try:
        return not sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


class _Host:
    def __init__(self, engine: Completions, starting: asyncio.Future[None], role: Role) -> None:
        self._engine = engine
        self._starting = starting
        self._shared_at, self._keep = role
        self._ended = asyncio.Event()
        self.sharing = Sharing(engine, on_failure=self._look)
        # The gateway that has this host.
        self.gateway: _Owner | None = None
        # Since when no gateway has it.
        self._left_s = 0.0
        self._state: State | None = None
        # Grows while the event loop turns.
        self.turns = 0

    @property
    def is_attended(self) -> bool:
        """Whether a gateway has this host; also for a thread, while the event loop does not turn."""
        gateway = self.gateway
        return gateway is not None and gateway.is_open

    @contextlib.asynccontextmanager
    async def kept_at(self, path: Path) -> AsyncIterator[None]:
        """While the context lasts, a gateway may take a host that no other one has, by connecting to `path`."""
        server = await asyncio.get_running_loop().create_unix_server(lambda: _NextOwner(self), path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # noqa: ASYNC240 -- a moment
            server.close()

    async def serve(self, sock: socket.socket) -> None:
        self.gateway = gateway = _Owner(self)
        await gateway.open(sock)
        self.sharing.join(gateway)
        # The callback runs in a later turn of the loop, after the first look.
        self._starting.add_done_callback(self._started)
        with self.sharing.lag:
            while not self._ended.is_set():
                self.turns += 1
                self._look()
                self.sharing.divide()
                if self.gateway is None and self._is_given_up():
                    return
                await within(_LOOK_S, self._ended.wait())
        self._starting.remove_done_callback(self._started)

    # ------------------------------------------------------------ gateways that come and go

    def met(self, gateway: _Owner) -> None:
        """The next gateway is there."""
        assert self._keep is not None  # noqa: S101 -- only then others come
        taken = self.gateway is not None or self._ended.is_set()
        gateway.say(Hello(PROTOCOL, self._keep.made_of, __version__, str(self._shared_at), taken))
        if taken:
            gateway.close()
            return
        self.gateway, self._state = gateway, None
        self.sharing.join(gateway)
        self._look()
        if self._starting.done():
            self._started(self._starting)

    def left(self, gateway: _Owner) -> None:
        if gateway is not self.gateway:
            return
        if self._keep is None:
            self._ended.set()
            return
        self.gateway, self._left_s = None, asyncio.get_running_loop().time()
        _log.info("the gateway is gone; the engine waits %g s for the next one", self._keep.for_s)

    def _is_given_up(self) -> bool:
        assert self._keep is not None  # noqa: S101 -- or it would have ended
        waited_s = asyncio.get_running_loop().time() - self._left_s
        return waited_s > self._keep.for_s or self._engine.health().state is EngineState.FAILED

    def _say(self, message: ToGateway) -> None:
        if self.gateway is not None:
            self.gateway.say(message)

    # ------------------------------------------------------------ messages

    def _started(self, starting: asyncio.Future[None]) -> None:
        if starting.cancelled():
            return
        self._look()
        try:
            starting.result()
            self._say(self.sharing.started())
        except StartupError as error:
            self._say(Started(error.message, "".join(traceback.format_exception(error))))
        except Exception as error:
            _log.exception("the engine could not be started")
            sentence = f"The engine could not be started ({type(error).__name__}: {error})."
            self._say(Started(sentence, "".join(traceback.format_exception(error))))

    def _look(self) -> None:
        """Send the state if it has changed."""
        health = self._engine.health()
        log_path = getattr(self._engine, "log_path", None)
        if (state := State(health, None if log_path is None else str(log_path))) != self._state:
            self._state = state
            self._say(state)

    def heard(self, message: ToHost) -> None:
        match message:
            case Stop():
                self._ended.set()
            case GetSilence():
                self._say(Silence(self.sharing.generations.silent_s))


class _Owner(Gateway):
    def __init__(self, host: _Host) -> None:
        super().__init__(host.sharing)
        self._host = host
        self._told_s = 0.0

    def show_slots(self, slots: Slots) -> None:
        """How busy the engine is can wait for the next look, at which it is told again; how many slots cannot."""
        now_s = asyncio.get_running_loop().time()
        if self._slots is None or slots.granted != self._slots.granted or now_s - self._told_s > _LOOK_S / 2:
            self._told_s = now_s
            super().show_slots(slots)

    def heard(self, message: ToHost) -> None:
        self._host.heard(message)
        super().heard(message)

    def lost(self) -> None:
        super().lost()
        self._host.left(self)


class _NextOwner(_Owner):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self.is_refused:
            self._host.met(self)

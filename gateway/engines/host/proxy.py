"""Engine port over an engine in another process.

The process takes no time from the gateway's event loop. It can be killed with all its children, and its crash does
not end the gateway. `multiprocessing` starts it, so the function that builds the engine must be picklable.
Knows: processes, the messages of `host.messages`. Must not know: which engine it is.
"""

from __future__ import annotations

import asyncio
import logging
import math
import multiprocessing
import socket
from collections.abc import Callable, Sequence
from multiprocessing import resource_tracker
from multiprocessing.util import Finalize
from pathlib import Path
from typing import ClassVar

from gateway.domain.engine import EngineCapacity, EngineHealth, EngineState
from gateway.domain.errors import StartupError
from gateway.engines.host import main, processes
from gateway.engines.host.answers import Window
from gateway.engines.host.channel import Channel
from gateway.engines.host.main import Role
from gateway.engines.host.messages import (
    GetMetrics,
    GetSilence,
    Metrics,
    Silence,
    Slots,
    Started,
    State,
    Stop,
    ToGateway,
    ToHost,
)
from gateway.engines.host.questions import Questions
from gateway.engines.lifecycle import Lifecycle
from gateway.engines.prompting.completions import Completions
from gateway.runtime import log_style

_log = logging.getLogger(__name__)

# Longest wait for a host to stop by itself; it may have to kill its engine first.
_GRACE_S = 35.0
# Longest wait for a killed process to be gone.
_KILL_S = 5.0
# Time between two checks whether a host has ended.
_LOOK_S = 0.02

# Longest wait for the host's metrics.
_METRICS_S = 2.0


class Host:
    """A process that hosts an engine: our end of its socket, and the process if we have to end it.

    shared_at: where other gateways reach the engine once it is ready, if anywhere.
    """

    def __init__(
        self,
        sock: socket.socket,
        process: multiprocessing.process.BaseProcess | None,
        shared_at: Path | None = None,
    ) -> None:
        self.sock = sock
        self.shared_at = shared_at
        self._process = process
        self._found: frozenset[processes.Process] = frozenset()

    @property
    def pid(self) -> int | None:
        """Its process, if we have to end it."""
        return None if self._process is None else self._process.pid

    @property
    def ending(self) -> str:
        """How its process ended, if that is known. Waits a moment for the end."""
        code = self._exit_code(_LOOK_S)
        if code is None:
            return ""
        return f" by signal {-code}" if code < 0 else f" with status {code}"

    def _exit_code(self, wait_s: float) -> int | None:
        if self._process is None:
            return None
        self._process.join(wait_s)
        return self._process.exitcode

    @property
    def alive(self) -> bool:
        """Whether its process still runs, if we have to end it."""
        return self._process is not None and self._process.is_alive()

    def find(self) -> None:
        """Remember the processes that it has started so far; after its death they could not be found."""
        # The pid of a process that has ended may belong to another process by now.
        own = processes.with_pids(self.pid) if self.alive else frozenset()
        self._found |= processes.descendants(self._found | own)

    def kill(self) -> None:
        """Kill all its processes; blocks for a moment."""
        self.find()
        if left := processes.kill(self._found, _KILL_S):
            _log.error("processes of the engine do not end: %s", ", ".join(str(process.pid) for process in left))


def start_host(build: Callable[[], Completions], shared_at: Path | None = None) -> Host:
    """Start a process that hosts the engine made by `build`. shared_at: of its `Role`."""
    ours, theirs = socket.socketpair()
    process = multiprocessing.get_context("spawn").Process(
        target=main.run,
        args=(theirs, build, log_style(), Role(shared_at)),
        name="engine host",
    )
    # Starting the process would start the tracker too, and that unblocks signals. So it is started first.
    resource_tracker.ensure_running()
    try:
        with main.signals_blocked():
            process.start()
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return Host(ours, process, shared_at)


class HostedEngine(Window):
    """Engine port over an engine in another process, which this one starts and ends.

    open: starts that process, or connects to it. leaves: whether `stop` leaves one that is ready to the next
    gateway, instead of ending it. watched: only workers ask it, so that it need not make prompts here.
    """

    # Only the log of the newest failed engine is kept for the operator.
    _kept_log: ClassVar[Path | None] = None

    def __init__(
        self, open: Callable[[], Host], leaves: Callable[[], bool] = lambda: False, *, watched: bool = False
    ) -> None:
        super().__init__(Lifecycle(on_change=self._changed), 0)
        self._open = open
        self._leaves = leaves
        self._watched = watched
        self._host: Host | None = None
        self._last_resort: Finalize | None = None
        self._was_ready = self._failed = False
        self._started: asyncio.Future[Started] | None = None
        self._questions = Questions(self._ask, _METRICS_S)
        self._silence = Silence(0.0)
        # Whether it has been asked how long that is and has not answered.
        self.asking = False
        self.log_path: Path | None = None

    @property
    def pid(self) -> int | None:
        """The process that it is in."""
        return None if self._host is None else self._host.pid

    @property
    def shared_at(self) -> Path | None:
        """Where other gateways reach the engine once it is ready, if anywhere."""
        return None if self._host is None else self._host.shared_at

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        if self._life.state is not EngineState.STARTING:
            raise StartupError(f"The engine is not started: {self._life.health.reason}.")
        self._started = asyncio.get_running_loop().create_future()
        channel: Channel[ToHost, ToGateway] = Channel(ToGateway, self._heard, self._lost)
        self._channel = channel
        try:
            self._host = host = self._open()
        except Exception as error:
            self._life.become(EngineState.FAILED, f"its process could not be started: {error}")
            raise StartupError(f"The engine's process could not be started ({error}).") from error
        # At its end the interpreter waits for child processes, so this must run before.
        self._last_resort = Finalize(self, host.kill, exitpriority=10)
        await channel.open(host.sock)
        started = await self._started
        if started.failed is not None:
            refusal = StartupError(started.failed)
            if started.trace:
                refusal.add_note(f"\nIn the engine's process:\n{started.trace}")
            raise refusal
        await asyncio.to_thread(host.find)
        if not self._watched:
            await self.prepare()

    async def stop(self) -> None:
        self._end_as_stopped()
        self._starts(Started("The engine was stopped while it started."))
        self._questions.lost()
        keep_log = self._failed
        if (host := self._host) is not None and self._was_ready and not self._failed and self._leaves():
            self._leave(host)
        elif host is not None:
            await asyncio.to_thread(host.find)
            # A host that is still loading has nothing to finish and would answer late, so it is killed.
            if self._was_ready or self._failed:
                # An engine that stops in order keeps its log only if the log is worth reading.
                keep_log = not await self._ends(host) or (self.log_path is not None and self.log_path.exists())
            await asyncio.to_thread(host.kill)
            self._leave(host)
            self._discard_log(keep_log)

    def _leave(self, host: Host) -> None:
        self._host = None
        if self._last_resort is not None:
            self._last_resort.cancel()
        if self._channel is not None:
            self._channel.close()
        # The channel may not own the socket yet, if `start` was cancelled. Closing it twice does no harm.
        host.sock.close()

    async def _ends(self, host: Host) -> bool:
        """Ask the host to stop, and wait. Returns False if it does not stop."""
        assert self._channel is not None  # noqa: S101 -- there is a host
        self._channel.say(Stop())
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _GRACE_S
        while host.alive:
            if loop.time() > until_s:
                return False
            await asyncio.sleep(_LOOK_S)
        return True

    def _discard_log(self, keep: bool) -> None:
        if self.log_path is None or self.log_path == HostedEngine._kept_log:
            return
        if not keep:
            self.log_path.unlink(missing_ok=True)
            return
        # After a failure, the error message names this log for the operator.
        if HostedEngine._kept_log is not None:
            HostedEngine._kept_log.unlink(missing_ok=True)
        HostedEngine._kept_log = self.log_path

    # ------------------------------------------------------------ messages from the host

    def _heard(self, message: ToGateway) -> None:
        match message:
            case State():
                if message.log_path is not None:
                    self.log_path = Path(message.log_path)
                if self._host is not None and self._life.state is EngineState.STARTING:
                    # If the host dies while it loads, its processes could not be found later.
                    asyncio.get_running_loop().run_in_executor(None, self._host.find)
                # `Started`, which brings the profile, makes it ready.
                if message.health.state is not EngineState.READY:
                    self._life.become(message.health.state, message.health.reason)
            case Started():
                self._starts(message)
            case Silence():
                self._silence, self.asking = message, False
            case Metrics():
                self._questions.answered(message)
            case Slots() if self._watched:
                # Workers ask the engine, and this process tells what it does for all of them.
                most = self._capacity.max_running
                self._capacity = EngineCapacity(most, message.running, message.waiting, message.lag_s)
            case _:
                super()._heard(message)

    def _starts(self, started: Started) -> None:
        if self._started is None or self._started.done():
            return
        if started.failed is not None:
            self._life.become(EngineState.FAILED, started.failed)
        else:
            self._profile, self._model = started.profile, started.model
            self._capacity = EngineCapacity(started.max_running, 0, 0)
            self._was_ready = True
            self._life.become(EngineState.READY)
        self._started.set_result(started)

    def _changed(self, health: EngineHealth) -> None:
        if health.state is EngineState.FAILED:
            self._failed = True
            self._generations.end("The engine died.")

    def _lost(self) -> None:
        self._questions.lost()
        if self._life.over:
            return
        how = self._host.ending if self._host is not None else ""
        log = f" (log: {self.log_path})" if self.log_path else ""
        self._life.become(EngineState.FAILED, f"the engine's process ended{how}{log}")
        self._starts(Started(f"The engine's process ended{how} while it started{log}."))

    def _ask(self, question: GetMetrics) -> None:
        assert self._channel is not None  # noqa: S101 -- ready engines have it
        self._channel.say(question)

    # ------------------------------------------------------------ state

    def silent_s(self) -> float:
        """As in `Supervisor`, for all gateways. Asks the host for news, which are here at the next call.

        A host that has not answered is waited for, nobody knows how long.
        """
        known = math.inf if self.asking else self._silence.silent_s
        if self._channel is not None and not self.asking:
            self.asking = True
            self._channel.say(GetSilence())
        return known

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        if self._channel is None or self._life.state is not EngineState.READY:
            return b""
        # A host that hangs must not hold up the gateway's own metrics.
        return await self._questions.ask(names)

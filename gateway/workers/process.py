"""The process of one worker, as its parent sees it: from its start to its end.

Knows: processes, the channel to one. Must not know: when one is started, drained or started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from multiprocessing import resource_tracker

from gateway.config import Settings
from gateway.engines.host.channel import Channel
from gateway.engines.host.main import SIGNALS
from gateway.engines.host.messages import GetMetrics, Metrics
from gateway.engines.host.questions import Questions
from gateway.workers import worker
from gateway.workers.messages import PROTOCOLS, Drain, Refused, Report, Serves, ToParent, ToWorker

# Longest wait for one worker's metrics.
_METRICS_S = 2.0


class WorkerProcess:
    """It runs from the beginning; `open` it before anything else. Raises `OSError` if it cannot be started.

    changed: called when it serves, and when it has ended.
    asked: called with each question of the worker for the metrics of all.
    """

    def __init__(
        self,
        number: int,
        settings: Settings,
        *,
        changed: Callable[[], None],
        asked: Callable[[WorkerProcess, GetMetrics], None],
    ) -> None:
        self.number = number
        self.settings = settings
        self.started_s = time.monotonic()
        # Set once it accepts connections, and once its process has ended.
        self.serves = asyncio.Event()
        self.ended = asyncio.Event()
        self.draining = False
        # Why it could not start, if it has said so.
        self.refused: str | None = None
        self.report = Report(0, 0)
        # How often the parent has spoken to it since it last said anything.
        self.unanswered = 0
        # Whether it gets no connections, as it did not answer, until it listens at another socket.
        self.is_shut = False
        # The one at which it listens.
        self._listening: socket.socket | None = None
        self._hung_up = False
        self._exit_code: int | None = None
        self._changed = changed
        self._asked = asked
        self._channel: Channel[ToWorker, ToParent] = Channel(ToParent, self._heard, self._lost)
        self._questions = Questions(self._channel.say, _METRICS_S)
        resource_tracker.ensure_running()
        self._sock, theirs = socket.socketpair()
        # Here come the sockets at which it listens.
        self._sockets, theirs_too = socket.socketpair()
        self._sockets.setblocking(False)
        # As for the engine's host: signals that are meant for the parent never end a worker that starts.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self._process = multiprocessing.get_context("spawn").Process(
                target=worker.run, args=(theirs, settings, number, PROTOCOLS, theirs_too), name=f"worker {number}"
            )
            self._process.start()
            assert self._process.pid is not None  # noqa: S101 -- it was started
            self.pid = self._process.pid
        except BaseException:
            self._sock.close()
            self._sockets.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            theirs.close()
            theirs_too.close()

    async def open(self) -> None:
        """Begin to hear it, and to notice its end."""
        asyncio.get_running_loop().add_reader(self._process.sentinel, self._on_end)
        await self._channel.open(self._sock)
        if self.draining:
            self.say(Drain())

    @property
    def ending(self) -> str:
        code = self._exit_code
        return f"by signal {-code}" if code is not None and code < 0 else f"with status {code}"

    @property
    def answers(self) -> bool:
        """Whether it serves, or finishes what it has accepted."""
        return self.serves.is_set() and not self.ended.is_set()

    @property
    def available(self) -> bool:
        """Whether it accepts connections."""
        return self.answers and not self.draining and not self.is_shut

    def say(self, message: ToWorker) -> None:
        """Tell it this; lost if it has ended."""
        self._channel.say(message)

    async def metrics(self, names: Sequence[str]) -> bytes:
        """Its own; nothing if it does not answer in time."""
        return await self._questions.ask(names)

    def drain(self) -> None:
        """Let it finish what it has accepted and end."""
        if not self.draining:
            self.hurry()

    def hurry(self) -> None:
        """As `drain`; once it drains: end without finishing what it has accepted."""
        self.draining = True
        self.say(Drain())

    def shut(self) -> None:
        """Let no more connections come to it, as it does not answer.

        Those that it has not accepted are reset, and their clients try again. It listens again when it answers.
        """
        self.is_shut = True
        if self._listening is not None:
            with contextlib.suppress(OSError):  # it drains, and has done so itself
                # This takes the socket out of the group among which the kernel divides connections.
                self._listening.shutdown(socket.SHUT_RDWR)
        self._changed()

    def _take_listening(self) -> None:
        _, (descriptor,), _, _ = socket.recv_fds(self._sockets, 1, 1, socket.MSG_CMSG_CLOEXEC)
        self._let_go_of_listening()
        self._listening = socket.socket(fileno=descriptor)

    def _let_go_of_listening(self) -> None:
        """Where the worker has gone, connections would wait for it for as long as this process has the socket."""
        if self._listening is not None:
            self._listening.close()

    def kill(self) -> None:
        """End it, whatever it does."""
        # Not after its end: the pid may belong to another process by then.
        if self._exit_code is None and self._process.is_alive():
            os.kill(self.pid, signal.SIGKILL)

    def _heard(self, message: ToParent) -> None:
        self.unanswered = 0
        match message:
            case Serves():
                self._take_listening()
                self.is_shut = False
                self.serves.set()
                self._changed()
            case Refused():
                self.refused = message.sentence
                # It waits to be told that this was heard.
                self.say(Drain())
            case Report():
                self.report = message
            case GetMetrics():
                self._asked(self, message)
            case Metrics():
                self._questions.answered(message)

    def _lost(self) -> None:
        self._questions.lost()
        self._hung_up = True
        self._is_gone()

    def _on_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        self._process.join()
        self._exit_code = self._process.exitcode
        # Otherwise it keeps file descriptors until the garbage collector runs.
        self._process.close()
        self._is_gone()

    def _is_gone(self) -> None:
        # What it said last is heard before its end.
        if self._hung_up and self._exit_code is not None:
            self._let_go_of_listening()
            self._sockets.close()
            self.ended.set()
            self._changed()

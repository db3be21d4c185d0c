"""A server in a process of its own, with whatever it starts below it.

Knows: how to start, watch and end processes. Must not know: what the server does. It signals no process but those
that it started and those below them.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from loadtest.results import LoadtestError
from loadtest.systems import processes

__all__ = ["Child", "free_port"]

# Long enough for an engine to be shut down in order; what hangs longer than this is killed.
_STOP_S = 90.0

# For killed ones to be gone.
_KILL_S = 10.0


class Child:
    """`command`, whose standard error and output go to the file `log`.

    what: for people, as in "The gateway". stop_s: patience between SIGTERM and SIGKILL.
    """

    def __init__(
        self, what: str, command: Sequence[str], log: Path, environment: Mapping[str, str], stop_s: float = _STOP_S
    ) -> None:
        self._what = what
        self._command = command
        self._log = log
        self._environment = environment
        self._stop_s = stop_s
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """It runs; nothing is known of how it does."""
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                env=dict(self._environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the load test alone, which ends it in order; and what it leaves behind is found.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None  # noqa: S101 -- started
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def check(self) -> None:
        """Raises `LoadtestError` when the process has ended by itself."""
        if self._process is not None and self._process.returncode is not None:
            raise LoadtestError(f"{self._what} ended with status {self._process.returncode}. {self.last_words()}")

    async def stop(self) -> int:
        """SIGTERM; its exit status once it is gone. Raises `LoadtestError` when it hangs; then it is killed."""
        process = self._process
        assert process is not None  # noqa: S101 -- started
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._stop_s):
                return await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise LoadtestError(f"{self._what} did not leave within {self._stop_s:g} s of SIGTERM.") from None

    async def end(self) -> None:
        """However it stands, it is gone afterwards, and what it started too."""
        if self._process is None:
            return
        leader = self._process.pid
        with ExitStack() as stack:
            # What made a session of its own is found only while its parents live.
            family = stack.enter_context(processes.held(processes.below(leader) if self.running else ()))
            try:
                with suppress(LoadtestError):  # killed; nobody asks any more
                    await self.stop()
            finally:
                # Nothing here waits: it holds also when whoever ends it is interrupted a second time.
                family = [*family, *stack.enter_context(processes.held(processes.in_session(leader)))]
                for descriptor in family:
                    processes.send(descriptor, signal.SIGKILL)
            # What they held, memory of a GPU above all, is free for whoever comes next.
            await asyncio.to_thread(processes.gone, family, _KILL_S)

    def last_words(self) -> str:
        """The end of its log, as a sentence."""
        lines = self._log.read_text(errors="replace").strip().splitlines() if self._log.exists() else []
        return "Its last words: " + " / ".join(lines[-3:]) if lines else "It said nothing."


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])

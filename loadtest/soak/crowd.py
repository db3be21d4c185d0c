"""A client process as seen by the process that started it.

Knows: its standard input and output, how it is stopped, continued and ended. Must not know: what its clients do.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec

from loadtest.results import LoadtestError
from loadtest.soak.clients import Command, Crowd
from loadtest.soak.records import Done, Record, Status, decode

__all__ = ["CrowdProcess"]

_LINE_BYTES = 2**20
_LEAVE_S = 10.0


class CrowdProcess:
    """`start` it, `read` it in a task, and `end` it. status: the newest it told; done: what it has carried out."""

    def __init__(self, crowd: Crowd, take: Callable[[Record], None]) -> None:
        self.number = crowd.process
        self.seats = tuple(seat.number for seat in crowd.seats)
        self.status: Status | None = None
        self.done: set[str] = set()
        self._crowd = crowd
        self._take = take
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "loadtest.soak.clients"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
            # Ctrl-C is for the soak alone, which ends it in order.
            start_new_session=True,
        )
        self._write(msgspec.json.encode(self._crowd))

    async def read(self) -> None:
        """Take its records until it ends. Raises `LoadtestError` when that is before it was told to."""
        process = self._running()
        assert process.stdout is not None  # noqa: S101 -- started with pipes
        while line := await process.stdout.readline():
            record = decode(line)
            match record:
                case Status():
                    self.status = record
                case Done(what=what):
                    self.done.add(what)
                case _:
                    self._take(record)
        if "leave" not in self.done:
            raise LoadtestError(f"Client process {self.number} ended before its time.")

    def tell(self, command: Command) -> None:
        """Give a command; a process that is stopped finds it when it goes on."""
        self._write(msgspec.json.encode(command))

    @property
    def settled(self) -> bool:
        """Whether all its clients are connected, say nothing, and have an answer to all they said."""
        return self.status is not None and not self.status.unsettled

    def stop(self) -> None:
        """SIGSTOP: it reads nothing any more, and its connections stay open."""
        self._running().send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT. What it told before counts no longer."""
        self.status = None
        with suppress(ProcessLookupError):
            self._running().send_signal(signal.SIGCONT)

    async def end(self) -> None:
        """Everybody has left: it ends by itself; killed when it does not."""
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            async with asyncio.timeout(_LEAVE_S):
                await process.wait()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """However it stands, it is gone afterwards."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None  # noqa: S101 -- started
        return self._process

    def _write(self, line: bytes) -> None:
        stdin = self._running().stdin
        assert stdin is not None  # noqa: S101 -- started with pipes
        # A few hundred bytes now and then; nobody has to wait for them.
        stdin.write(line + b"\n")

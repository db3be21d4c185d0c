"""The client under test: a program that is told on stdin what to do, and prints what its client gives it.

Knows: processes and lines of JSON. Must not know: transcripts.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

# What is looked at of what a driver prints; other events are the client's own business.
SHOWN = frozenset(
    {"translation.final", "translation.failed", "utterance.cancelled", "utterance.replaced", "closed"}
)


class DriverFailed(Exception):
    """The driver ended with an error, or printed something else than events."""


class Driver:
    """One run of the driver, for one transcript."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    @asynccontextmanager
    async def started(cls, command: Sequence[str]) -> AsyncGenerator[Driver, None]:
        """Start the program; it is gone when the block ends. Raises `OSError` if there is none."""
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            # What it printed last is not needed; unread, it would hold up the wait for its end.
            process._transport.close()  # type: ignore[attr-defined]
            await process.wait()

    async def do(self, command: dict[str, Any]) -> None:
        """Give a command."""
        assert self._process.stdin is not None  # noqa: S101 -- it is a pipe
        self._process.stdin.write(json.dumps(command, ensure_ascii=False).encode() + b"\n")
        with suppress(ConnectionError):  # what it prints, or its exit status, says why
            await self._process.stdin.drain()

    async def shown(self) -> dict[str, Any] | None:
        """The next event that is looked at; None once the program has closed its stdout. Raises `DriverFailed`."""
        assert self._process.stdout is not None  # noqa: S101 -- it is a pipe
        while line := await self._process.stdout.readline():
            try:
                event = json.loads(line)
            except ValueError:
                raise DriverFailed(f"The driver printed something else than JSON: {line[:200]!r}") from None
            if isinstance(event, dict) and event.get("type") in SHOWN:
                return event
        return None

    async def end(self) -> None:
        """Close its stdin and wait until it has ended. Raises `DriverFailed` for an exit status."""
        assert self._process.stdin is not None  # noqa: S101 -- it is a pipe
        self._process.stdin.close()
        if status := await self._process.wait():
            raise DriverFailed(f"The driver ended with status {status}.")

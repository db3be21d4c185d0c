"""Opening sessions, thousands of them: a bounded number at a time, each tried several times.

Knows: how a session begins. Must not know: what is said or read in it.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct
from websockets.exceptions import WebSocketException

from gateway.protocol.messages import SessionStart
from loadtest.driving.wire import Wire, open_wire
from loadtest.results import LoadtestError, first_error

# Connections that are being opened at a time: a gateway with one core takes them one after the other anyway.
_OPENING = 64
_OPEN_S = 60.0
_TRIES = 8
_PAUSE_S = 0.25

# Besides connections: the standard streams, the event loop's own files.
_FILES = 64

_STARTED = b'{"type":"session.started"'
_ERROR = b'{"type":"error"'


class Wanted(Struct, frozen=True):
    """A session that is to be opened, and who takes it then."""

    start: SessionStart
    take: Callable[[Wire], object]


class _Error(Struct):
    message: str
    retryable: bool = False
    retry_after_ms: int | None = None


async def open_all(url: str, wanted: Sequence[Wanted]) -> None:
    """Open sessions and hand each over once it has begun. Raises `LoadtestError`."""
    left = iter(wanted)

    async def open_some() -> None:
        for each in left:
            each.take(await _open(url, each.start))

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(_OPENING, len(wanted))):
                tasks.create_task(open_some())
    except ExceptionGroup as errors:
        raise first_error(errors) from None


def allow_files(files: int) -> None:
    """Raise how many connections this process may have. Raises `LoadtestError` where the machine forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = files + _FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            raise LoadtestError(f"This machine allows a process no {files} connections (`ulimit -Hn` is {hard}).")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _open(url: str, start: SessionStart) -> Wire:
    """A connection whose session has begun. Raises `LoadtestError`."""
    why = "it did not answer"
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE_S * attempt)
        try:
            wire = await open_wire(url)
        except (OSError, TimeoutError, WebSocketException) as error:
            why = str(error) or type(error).__name__
            continue
        try:
            async with asyncio.timeout(_OPEN_S):
                why = await _start(wire, start)
        except TimeoutError:
            why = f"no session began within {_OPEN_S:g} s"
        except BaseException:
            wire.close()
            raise
        if not why:
            return wire
        wire.close()
    raise LoadtestError(f"The gateway opens no further session: {why}.")


async def _start(wire: Wire, start: SessionStart) -> str:
    """Ask for a session; what went wrong, empty when it has begun. Raises `LoadtestError` when it never will."""
    answers: asyncio.Queue[bytes] = asyncio.Queue()
    wire.take = answers.put_nowait
    wire.ended = lambda why: answers.put_nowait(b"")
    start = msgspec.structs.replace(start, token=os.environ.get("GATEWAY_TOKEN"))
    while True:
        wire.send(msgspec.json.encode(start))
        while not (answer := await answers.get()).startswith((_STARTED, _ERROR)):
            if not answer:
                return wire.lost or "the connection was lost"
        if answer.startswith(_STARTED):
            return ""
        error = msgspec.json.decode(answer, type=_Error)
        if not error.retryable:
            raise LoadtestError(f"The gateway refuses a session: {error.message}")
        await asyncio.sleep((error.retry_after_ms or 1_000) / 1000)

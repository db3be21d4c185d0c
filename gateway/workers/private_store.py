"""A Redis or Valkey of the gateway's own, on a Unix socket, whose data outlive it.

Nothing that it has answered is lost, whichever process is killed: it writes to its disk before it answers. It
ends with the process that started it. If it ends before, or hangs, it is started again.
Knows: the server's program and options. Must not know: what is kept in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import logging
import math
import shutil
import signal
from pathlib import Path
from urllib.parse import quote

from gateway.domain.errors import StartupError
from gateway.ownership import check_folder, check_peer, make_folder
from gateway.runtime import cancelled, within

_log = logging.getLogger(__name__)

_PROGRAMS = ("valkey-server", "redis-server")

# How many workers keep one store busy: docs/benchmarks/README.md.
_WORKERS_OF_ONE = 4

# Longest wait for it to take commands; it reads all its data first.
_START_S = 60.0
# Longest wait for it to end by itself.
_STOP_S = 20.0
_LOOK_S = 0.02
# Longest pause before it is started again.
_AGAIN_MAX_S = 10.0
# Time between two questions whether it is there, longest wait for an answer, and how many in a row it may leave
# without one: 8 to 16 s in all. It does not answer while it writes to its disk, and a disk may take seconds.
_ASK_S = 1.0
_UNANSWERED = 8

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def data_folders(folder: Path, workers: int) -> list[Path]:
    """Where stores of these workers keep their data: as many as there are already, or one for every few workers.

    Meetings are looked for in the same number of stores as before, however many workers there are now. Raises
    `StartupError` if they cannot be made.
    """

    def numbered(n: int) -> Path:
        return folder / ("store" if n == 1 else f"store-{n}")

    before = list(itertools.takewhile(Path.exists, map(numbered, itertools.count(1))))
    wanted = [numbered(n) for n in range(1, 1 + math.ceil(workers / _WORKERS_OF_ONE))]
    if before:
        if len(before) != len(wanted):
            _log.info("%s has the data of %d stores, so there are as many again", folder, len(before))
        for each in before:
            check_folder(each, secret=True)
        return before
    try:
        for each in reversed(wanted):  # the first one last: where it is, all of them are
            make_folder(each, secret=True)
    except OSError as error:
        raise StartupError(f"The gateway's store cannot be started ({error}).") from None
    return wanted


def store_program() -> str:
    """The path of what is started. Raises `StartupError` if there is none."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise StartupError(
            "Several workers need a store: install redis-server (7.0 or newer) or valkey-server, or give the "
            "address of one with --store redis://…."
        )
    return program


class PrivateStore:
    """One process at a time. folder: where its socket is, which must be private. data: where its files are.

    lock: a file descriptor that it inherits, so that no other process uses its files while it runs. Raises
    `StartupError` if no such program is installed.
    """

    def __init__(self, folder: Path, data: Path, lock: int) -> None:
        program = store_program()
        self._socket = folder / f"{data.name}.sock"
        self._lock = lock
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(data),
            "logfile": str(data / "store.log"),
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
        }
        self._data = data
        self._command = [program, *(part for name, value in options.items() for part in (f"--{name}", value))]
        # Without this, it would write snapshots besides.
        self._command += ["--save", ""]
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self._socket))}"

    async def start(self) -> None:
        """Returns once it takes commands. Raises `StartupError`."""
        try:
            make_folder(self._data, secret=True)
            await self._begin()
        except OSError as error:
            raise StartupError(f"The gateway's store cannot be started ({error}).") from None
        # Awaited by `stop`.
        self._watching = asyncio.create_task(self._watch(), name="private store")

    async def stop(self) -> None:
        """End it, after everything that uses it."""
        await cancelled(self._watching)
        if (process := self._process) is not None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
                await within(_STOP_S, process.wait())
                process.kill()
            await process.wait()

    async def _watch(self) -> None:
        pause_s = 0.0
        while True:
            assert self._process is not None  # noqa: S101 -- it was started
            status = await self._until_over(self._process)
            _log.error("the store in %s ended with status %s; it is started again", self._data, status)
            await asyncio.sleep(pause_s)
            pause_s = min(_AGAIN_MAX_S, 2 * pause_s + 0.1)
            try:
                await self._begin()
            except (StartupError, OSError) as error:
                _log.error("the store in %s could not be started again: %s", self._data, error)
            else:
                pause_s = 0.0

    async def _until_over(self, process: asyncio.subprocess.Process) -> int:
        """The status that it ended with. If it does not answer any more, it is killed."""
        # One task for all the time: each `wait` that is given up stays in a list of the process.
        ending = asyncio.ensure_future(process.wait())
        unanswered = 0
        try:
            while not ending.done():
                await asyncio.wait([ending], timeout=_ASK_S)
                # Counted, as the time in which this process itself was frozen does not matter.
                answered = False
                with contextlib.suppress(StartupError):
                    answered = bool(await self._answer(_ASK_S))
                unanswered = 0 if answered else unanswered + 1
                if unanswered == _UNANSWERED and not ending.done():
                    _log.error("the store (process %d) does not answer; it is killed", process.pid)
                    process.kill()
            return ending.result()
        finally:
            ending.cancel()

    async def _begin(self) -> None:
        self._socket.unlink(missing_ok=True)
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            # A terminal's signals are for the gateway, which ends it last.
            start_new_session=True,
            pass_fds=(self._lock,),
            preexec_fn=_end_with_parent,
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_START_S):
                while process.returncode is None:
                    if await self._answer() == b"+PONG\r\n":
                        return
                    await asyncio.sleep(_LOOK_S)
        how = "does not answer" if process.returncode is None else f"ended with status {process.returncode}"
        raise StartupError(f"The gateway's store {how}; its log is {self._data / 'store.log'}.")

    async def _answer(self, within_s: float | None = None) -> bytes:
        """What it says to a PING, also if it is busy; nothing if it does not answer.

        Raises `StartupError` if another user's process does.
        """
        with contextlib.suppress(OSError):
            async with asyncio.timeout(within_s):
                reader, writer = await asyncio.open_unix_connection(self._socket)
                try:
                    check_peer(writer.get_extra_info("socket"), self._socket)
                    writer.write(b"PING\r\n")
                    return await reader.readline()
                finally:
                    writer.close()
        return b""


def _end_with_parent() -> None:
    # A gateway that is killed leaves no store behind.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

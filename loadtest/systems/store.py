"""A Redis that several gateways may share: on a loopback port, started again whenever it ends.

Knows: Redis' options, processes. Must not know: what is kept in it. What it has confirmed is on its disk.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from loadtest.results import LoadtestError

_START_S, _LOOK_S = 30.0, 0.02


class Store:
    """port: free. folder: for its files."""

    def __init__(self, port: int, folder: Path) -> None:
        password = secrets.token_hex(16)
        self.url = f"redis://:{password}@127.0.0.1:{port}"
        self._port = port
        self._folder = folder
        self._file = folder / "store.conf"
        self._options = {
            "port": str(port),
            "bind": "127.0.0.1",
            "requirepass": password,
            "dir": str(folder),
            "logfile": str(folder / "store.log"),
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "save": '""',
        }
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Of its process; None while there is none."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def start(self) -> None:
        """Returns once it takes connections. Raises `LoadtestError`."""
        program = shutil.which("redis-server")
        if program is None:
            raise LoadtestError("A store needs redis-server, which is not installed.")
        self._folder.mkdir(parents=True, exist_ok=True)
        # Not on its command line, which everybody sees.
        self._file.touch(mode=0o600)
        self._file.write_text("".join(f"{name} {value}\n" for name, value in self._options.items()))
        # Awaited by `end`.
        self._running = asyncio.create_task(self._run(program), name="store")
        try:
            async with asyncio.timeout(_START_S):
                while True:
                    with suppress(OSError):
                        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
                        writer.close()
                        return
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            raise LoadtestError(f"redis-server takes no connections after {_START_S:g} s.") from None

    def signal(self, number: signal.Signals) -> bool:
        """Signal its process; false while there is none."""
        if self.pid is None:
            return False
        os.kill(self.pid, number)
        return True

    async def end(self) -> None:
        """It is gone afterwards."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self, program: str) -> None:
        while True:
            self._process = process = await asyncio.create_subprocess_exec(
                *(program, str(self._file)),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                # Ctrl-C is for the load test alone.
                start_new_session=True,
            )
            try:
                await process.wait()
            except asyncio.CancelledError:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
                raise
            # One that cannot start is not started in a hurry.
            await asyncio.sleep(_LOOK_S)

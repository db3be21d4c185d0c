"""A Redis that several gateways may share: on a loopback port, started again whenever it ends.

Knows: Redis' options, processes; Linux's network namespaces and nft, for a network to it that loses packets. Must
not know: what is kept in it. What it has confirmed is on its disk.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import secrets
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from loadtest.results import LoadtestError
from loadtest.systems.processes import STORE, named_below, signal_below
from loadtest.systems.server import Server

# See unshare(2).
_CLONE_NEWNET = 0x40000000

_RULES = """
table inet loss {{
    chain input {{
        type filter hook input priority 0; policy accept;
        tcp dport {port} numgen random mod 10000 < {parts} drop
        tcp sport {port} numgen random mod 10000 < {parts} drop
    }}
}}
"""


def enter_lossy_network(port: int, percent: float) -> None:
    """Leave the machine's network for one that is only a loopback interface, where so many of the TCP packets from
    and to the port are lost.

    What this thread starts from now on is in it too. It is gone with the last of these processes; the machine's
    own is not touched. Raises `LoadtestError` where that is not allowed.
    """
    for program in ("ip", "nft"):
        if shutil.which(program) is None:
            raise LoadtestError(f"Packets cannot be lost without `{program}`: install it, or leave out --loss.")
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        why = os.strerror(ctypes.get_errno())
        raise LoadtestError(f"This machine allows no network of its own ({why}), so leave out --loss.")
    _run(["ip", "link", "set", "lo", "up"], "")
    _run(["nft", "-f", "-"], _RULES.format(port=port, parts=round(percent * 100)))


def _run(command: list[str], text: str) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise LoadtestError(f"Packets cannot be lost on this machine: `{' '.join(command)}` failed ({said}).")


_START_S, _LOOK_S = 30.0, 0.02

# For a shell: the program and its file again and again; one that cannot start is not started in a hurry.
_AGAIN = f'while :; do "$0" "$1"; sleep {_LOOK_S}; done'


class Store:
    """port: free. folder: for its files."""

    def __init__(self, port: int, folder: Path) -> None:
        password = secrets.token_hex(16)
        self.url = f"redis://:{password}@127.0.0.1:{port}"
        self.port = port
        self._folder = folder
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
        self._shell: Server | None = None

    @property
    def pid(self) -> int | None:
        """Its process; None while there is none."""
        return None if self._shell is None else next(iter(named_below(self._shell.pid, STORE)), None)

    async def start(self) -> None:
        """Returns once it takes connections. Raises `LoadtestError`."""
        program = shutil.which("redis-server")
        if program is None:
            raise LoadtestError("A store needs redis-server, which is not installed.")
        self._folder.mkdir(parents=True, exist_ok=True)
        # Not on its command line, which everybody sees.
        file = self._folder / "store.conf"
        file.touch(mode=0o600)
        file.write_text("".join(f"{name} {value}\n" for name, value in self._options.items()))
        command = ["sh", "-c", _AGAIN, program, str(file)]
        self._shell = Server("The store", command, self.port, self._folder / "shell.log")
        await self._shell.start()
        try:
            async with asyncio.timeout(_START_S):
                while True:
                    with suppress(OSError):
                        _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                        writer.close()
                        return
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            raise LoadtestError(f"redis-server takes no connections after {_START_S:g} s.") from None

    def signal(self, number: signal.Signals) -> bool:
        """Signal its process; false while there is none."""
        return self._shell is not None and signal_below(self._shell.pid, STORE, number)

    async def end(self) -> None:
        """It is gone afterwards."""
        if self._shell is not None:
            await self._shell.end()

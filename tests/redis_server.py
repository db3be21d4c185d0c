"""A real Redis for tests: a process of its own on a Unix socket, with its files in a folder of its own."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from gateway.stores.redis.store import RedisStore
from tests.patience import PATIENCE_MS

# What the gateway asks of its store.
SAFE = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}


class RedisServer:
    """Redis with these settings. It ends with the process that started it, however that ends."""

    def __init__(self, folder: Path, **settings: str) -> None:
        if (program := shutil.which("redis-server")) is None:
            raise RuntimeError("There is no redis-server on the PATH: scripts/system_packages.sh installs one.")
        self.folder = folder
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        options = {
            "port": "0",
            "bind": "127.0.0.1",
            "unixsocket": str(self.socket),
            "dir": str(folder),
            "save": "",
            **SAFE,
        }
        options |= {name.replace("_", "-"): value for name, value in settings.items()}
        self._command = ["setpriv", "--pdeathsig", "KILL", program]
        self._command += [
            part for name, value in options.items() for part in (f"--{name}", *(value.split() or [""]))
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> RedisServer:
        """Returns once it takes commands."""
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE_MS / 1_000
        while True:
            try:
                if self.ask("PING").startswith(("+PONG", "-NOAUTH")):
                    return self
            except OSError:
                pass
            assert self._process.poll() is None, "redis-server has ended"
            assert time.monotonic() < until, "redis-server does not answer"
            time.sleep(0.01)

    def ask(self, command: str) -> str:
        """The beginning of the answer to one command, without any library."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(65_536).decode()

    def connections(self) -> set[str]:
        """The number of each, which nobody has again; without this question's."""
        listed = self.ask("CLIENT LIST").splitlines()
        return {line.split()[0] for line in listed if line.startswith("id=") and "cmd=client|list " not in line}

    def freeze(self) -> None:
        """It does nothing more, and nobody is told, until it thaws."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """As when the machine loses its power, but for what its kernel holds."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def new_folder() -> Path:
    """In memory, if possible: Redis waits for its disk as ever, and is done sooner."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
    return Path(tempfile.mkdtemp(prefix="redis-", dir=memory if os.access(memory, os.W_OK) else None))


@cache
def shared_server() -> RedisServer:
    """One for all tests of this process that leave it as it was; each has keys of its own."""
    folder = new_folder()
    server = RedisServer(folder).start()

    def end() -> None:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return server


def shared_urls(count: int) -> str:
    """So many stores on the shared server, as the setting names them."""
    return " ".join(f"{shared_server().url}?db={n}" for n in range(count))


@contextmanager
def server_to_kill() -> Iterator[RedisServer]:
    """One of a test's own."""
    folder = new_folder()
    server = RedisServer(folder)
    try:
        yield server.start()
    finally:
        server.kill()
        shutil.rmtree(folder)


@contextmanager
def impatient(store: RedisStore, seconds: float = 0.2) -> Iterator[None]:
    """Calls that cannot be answered are given up soon. Those that can may take their time, on a busy machine."""
    commands, pushes = store.commands, store.pushes
    before = commands._patience_s, pushes._patience_s
    commands._patience_s = pushes._patience_s = seconds
    try:
        yield
    finally:
        commands._patience_s, pushes._patience_s = before

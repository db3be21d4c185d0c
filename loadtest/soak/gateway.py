"""The gateway under test as an operator runs it: a process of its own, with its engine in another below it.

Knows: how to start, signal and ask it, and what Linux tells of its processes. Must not know: clients, what is
counted, when anything is broken. It signals no process but those that it started and those below them.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from loadtest.results import LoadtestError

__all__ = ["Memory", "ServedGateway", "free_port", "metric"]

_LOOK_S = 0.25
_HTTP_S = 10.0

# SIGTERM drains for `drain_s`; what hangs longer than this is killed.
_STOP_S = 90.0

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# The name that vLLM gives the process with the model.
_ENGINE = re.compile(r"EngineCore")


class Memory(Struct, frozen=True):
    """Resident memory in MiB of the gateway's process and of all those below it."""

    gateway_mib: float
    engine_mib: float


class ServedGateway:
    """`gateway serve` on `port`.

    incarnation: number of the process: 1, 2, 3 … leaving: it was told to stop.
    """

    def __init__(self, port: int, settings: Mapping[str, str], folder: Path) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.incarnation = 0
        self.leaving = False
        self._environment = {**os.environ, **settings}
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process; `ready` waits for it."""
        self.incarnation += 1
        self.leaving = False
        log = self._folder / f"gateway-{self.incarnation}.log"
        with log.open("wb") as stderr:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gateway", "serve", "--host", "127.0.0.1", "--port", str(self.port)),
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=stderr,
                # Ctrl-C is for the soak alone, which ends it in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None  # noqa: S101 -- started
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def ready(self, patience_s: float) -> float:
        """Wait until the engine takes requests; the seconds that took. Raises `LoadtestError`."""
        began_s = time.monotonic()
        while time.monotonic() - began_s < patience_s:
            self.check()
            if await self.is_ready():
                return time.monotonic() - began_s
            await asyncio.sleep(_LOOK_S)
        raise LoadtestError(f"The gateway was not ready within {patience_s:g} s. {self._last_words()}")

    async def is_ready(self) -> bool:
        """Whether `/readyz` says so."""
        status, _ = await self._get("/readyz")
        return status == 200

    def check(self) -> None:
        """Raises `LoadtestError` when the process has ended by itself."""
        if self._process is not None and self._process.returncode is not None:
            raise LoadtestError(f"The gateway ended with status {self._process.returncode}. {self._last_words()}")

    async def stop(self) -> int:
        """SIGTERM; its exit status once it is gone. Killed when it hangs."""
        process = self._process
        assert process is not None  # noqa: S101 -- started
        self.leaving = True
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_S):
                return await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise LoadtestError(f"The gateway did not leave within {_STOP_S:g} s of SIGTERM.") from None

    async def end(self) -> None:
        """However it stands, it is gone afterwards, and what is below it too."""
        if self._process is None or self._process.returncode is not None:
            return
        below = [os.pidfd_open(pid) for pid in _below(self.pid)]
        try:
            with suppress(LoadtestError):  # killed; nobody asks any more
                await self.stop()
            for descriptor in below:
                _signal(descriptor, signal.SIGKILL)
        finally:
            for descriptor in below:
                os.close(descriptor)

    # ------------------------------------------------------------ the engine

    def signal_engine(self, number: signal.Signals) -> bool:
        """Signal the engine's process below this gateway; false when there is none."""
        for pid in _below(self.pid):
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                # Looked at once more behind the descriptor: a number may be given to another process meanwhile.
                if pid in _below(self.pid) and _ENGINE.search(_name(pid)):
                    return _signal(descriptor, number)
            finally:
                os.close(descriptor)
        return False

    def memory(self) -> Memory:
        """What its processes hold now; zeros for what is not there."""
        if not self.running:
            return Memory(0.0, 0.0)
        return Memory(_resident_mib(self.pid), round(sum(map(_resident_mib, _below(self.pid))), 1))

    # ------------------------------------------------------------ what it says

    async def metrics(self) -> str | None:
        """Prometheus' text; null when it cannot be asked."""
        status, body = await self._get("/metrics")
        return body if status == 200 else None

    async def transcript(self, meeting: str) -> Any | None:
        """`transcript.json` of a meeting, decoded; null when there is none."""
        status, body = await self._get(f"/v1/meetings/{meeting}/transcript.json")
        return json.loads(body) if status == 200 else None

    def tracebacks(self) -> int:
        """How many its processes wrote to their logs; each is a bug."""
        logs = self._folder.glob("gateway-*.log")
        return sum(log.read_text(errors="replace").count("Traceback (most recent call last)") for log in logs)

    async def _get(self, path: str) -> tuple[int, str]:
        return await asyncio.to_thread(self._get_now, path)

    def _get_now(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=_HTTP_S) as response:  # noqa: S310 -- our own
                return int(response.status), response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, ""
        except (OSError, ValueError):
            return 0, ""

    def _last_words(self) -> str:
        log = self._folder / f"gateway-{self.incarnation}.log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return "Its last words: " + " / ".join(lines[-3:]) if lines else "It said nothing."


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def metric(text: str, name: str, **labels: str) -> float | None:
    """The sum of a metric over its series with these labels; null when it has none."""
    values = [
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if re.match(rf"{re.escape(name)}(\{{|\s)", line)
        and all(f'{label}="{value}"' in line for label, value in labels.items())
    ]
    return sum(values) if values else None


def _signal(descriptor: int, number: signal.Signals) -> bool:
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    return True


def _below(pid: int) -> list[int]:
    """Every process below this one that lives."""
    return list(_descendants(pid))


def _descendants(pid: int) -> Iterator[int]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = [int(child) for child in children.read_text().split()]
        except OSError:
            continue  # it ended
        for child in found:
            yield child
            yield from _descendants(child)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _resident_mib(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return round(pages * _PAGE_BYTES / 2**20, 1)

"""A gateway as an operator starts it: the console command, in a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

# Signals as a terminal leaves them, whatever the test runner was started by: `&` and nohup have some ignored.
DEFAULT_SIGNALS = ("env", "--default-signal=INT,HUP,QUIT")
WITH_US = ("setpriv", "--pdeathsig", "TERM")
# A group of its own, as a terminal makes one.
IN_A_TERMINAL = ("setsid", *DEFAULT_SIGNALS)
COMMAND = str(Path(sys.executable).parent / "gateway")
# A busy machine is no reason to refuse what waits. Tests read lines for people, as on a terminal.
PATIENT = {"GATEWAY__MAX_QUEUE_S": "3600", "GATEWAY__LOG_FORMAT": "text"}
# Nor to give up what is drained.
UNHURRIED = {"GATEWAY__DRAIN_S": "3600"}


class GatewayProcess:
    """A running `gateway serve` on a free port unless given; `said` is everything it wrote.

    `url` is known once `listening` or `ready` has returned.
    """

    def __init__(
        self, *arguments: str, env: dict[str, str] | None = None, prefix: tuple[str, ...] = DEFAULT_SIGNALS
    ) -> None:
        self.said = ""
        self.url = ""
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            # It ends with the tests, however these end.
            [*WITH_US, *prefix, COMMAND, "serve", *(() if "--port" in arguments else ("--port", "0")), *arguments],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **PATIENT, **(env or {})},
        )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.said += line
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()
        self.process.stderr.close()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first match in what the process says; fails when it ends without."""
        with self._changed:
            while (match := re.search(pattern, self.said)) is None:
                assert self.process.poll() is None or self._reading.is_alive(), self.said
                self._changed.wait(1)
        return match

    def listening(self) -> GatewayProcess:
        """It serves the page; the engine may still be loading."""
        self.url = self.wait_for(r"the page is at (https?://\S+)").group(1)
        return self

    def ready(self) -> GatewayProcess:
        """The engine takes requests."""
        self.url = self.wait_for(r"Ready: (https?://\S+)").group(1)
        return self

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path) as response:  # noqa: S310 -- our own address
            return str(response.read().decode())

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = [line for line in self.get("/metrics").splitlines() if re.match(rf"{name}(\{{|\s)", line)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; the exit status, once nothing that it started is left."""
        started: list[int] = []
        if self.process.poll() is None:
            started = descendants(self.process.pid)
            self.process.send_signal(number)
        return self.ended(started)

    def ended(self, started: list[int]) -> int:
        """Wait for its end, whoever brought it about; the exit status, once none of what it started is left."""
        status = self.process.wait(400)
        self._reading.join(120)
        # However it ended: what outlives it keeps the engine's memory. The suite's timeout is the bound.
        while any(map(alive, started)):
            time.sleep(0.05)
        return status


@contextlib.contextmanager
def gateway_process(
    *arguments: str, env: dict[str, str] | None = None, prefix: tuple[str, ...] = DEFAULT_SIGNALS
) -> Iterator[GatewayProcess]:
    """Start one; it is gone when the block ends."""
    gateway = GatewayProcess(*arguments, env=env, prefix=prefix)
    try:
        yield gateway
    finally:
        if gateway.process.poll() is None:
            gateway.end()


def descendants(pid: int) -> list[int]:
    """Every process below a process; of one that is gone, none."""
    found: list[int] = []
    # While an engine loads, threads and processes come and go.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (task / "children").read_text().split())
    return found + [grandchild for child in found for grandchild in descendants(child)]


def engine_processes(gateway: GatewayProcess) -> list[int]:
    found: list[int] = []
    for pid in descendants(gateway.process.pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{pid}/comm").read_text().startswith("VLLM"):
                found.append(pid)
    return found


def parent(pid: int) -> int:
    # The name in parentheses may contain anything.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def resident_bytes(pid: int) -> int:
    """Memory of one process that is in RAM."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

"""What a server says of itself, Prometheus' text over HTTP; a server in a process of its own: started, awaited,
ended with everything below it; systems that take requests, and several of them at once.

Knows: that format, processes, ports, how a server is asked whether it is ready, context managers. Must not know:
what it serves, what the names mean. It signals no process but those that it started and those below them.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import signal
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gateway.engines.host import processes as engine_processes
from loadtest.options import Say
from loadtest.results import LoadtestError, first_error
from loadtest.systems import processes
from loadtest.trial.values import Address

_HTTP_S = 10.0

# Servers of ours are asked directly, past any proxy that the environment names.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def only(url: str, names: Iterable[str]) -> str:
    """Where these metrics alone are told, if the server knows how: a thousand series take it a while."""
    return f"{url}?{urllib.parse.urlencode([('name[]', name) for name in names])}"


def get(url: str, timeout_s: float = _HTTP_S) -> tuple[int, str]:
    """Status and body; status 0 when nothing answers. Blocks."""
    try:
        with _opener.open(url, timeout=timeout_s) as response:
            return int(response.status), response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(errors="replace")
    except (OSError, ValueError):
        return 0, ""


def metric(text: str, name: str, **labels: str) -> float | None:
    """The sum of a metric over its series with these labels; None when it has none."""
    values = [
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith(name)
        and re.match(r"[{\s]", line[len(name) :])
        and all(f'{label}="{value}"' in line for label, value in labels.items())
    ]
    return sum(values) if values else None


def buckets(text: str, name: str) -> dict[float, float]:
    """A histogram: upper bound → so many not above it, over all series; empty when there is none."""
    counts: dict[float, float] = {}
    for line in text.splitlines():
        if line.startswith(f"{name}_bucket{{") and (found := re.search(r'le="([^"]+)"', line)):
            bound = float(found[1].replace("+Inf", "inf"))
            counts[bound] = counts.get(bound, 0.0) + float(line.rsplit(" ", 1)[1])
    return counts


def work(text: str) -> float | None:
    """Translations that wait or run, of a gateway; None where it cannot be asked."""
    names = ("gateway_translations_waiting", "gateway_translations_running")
    return sum(metric(text, name) or 0.0 for name in names) if text else None


async def until_idle(url: str, patience_s: float, look_s: float, say: Callable[[str], object]) -> str:
    """Wait until a gateway has nothing to translate, so that what comes next is counted alone; its metrics.

    Raises `LoadtestError` when it still translates after so long.
    """
    until_s = time.monotonic() + patience_s
    while True:
        _, text = await asyncio.to_thread(get, url)
        if not work(text):
            return text
        if time.monotonic() > until_s:
            raise LoadtestError(f"Within {patience_s:g} s the gateway did not finish its work; is it in use?")
        say("waiting: the gateway finishes what it accepted")
        await asyncio.sleep(look_s)


# ---------------------------------------------------------------- a server in a process of its own


# How long a server may take until it is ready, and between looks at it.
_START_S, _LOOK_S = 600.0, 0.25

# Long enough for an engine to shut down in order; what hangs longer is killed. Then for killed ones to be gone.
_STOP_S, _KILL_S = 90.0, 10.0

# Browsers refuse some ports below this one, 1720 for example (https://fetch.spec.whatwg.org/#bad-port).
_BROWSERS_REFUSE = 10_081

# From which the kernel chooses ports of connections, and of servers that name none.
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


@dataclass(eq=False)
class Server:
    """`command`, which serves on the loopback interface at `port`; its output goes to the file `log`."""

    # For people, as in "The gateway".
    what: str
    command: Sequence[str]
    port: int
    log: Path
    environment: Mapping[str, str] | None = None
    # Answers 200 once the server takes requests.
    ready_path: str = "/readyz"
    # File descriptors that the process inherits.
    pass_fds: Sequence[int] = ()
    # Between SIGTERM and SIGKILL.
    stop_s: float = _STOP_S
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start the process; `ready` waits for it."""
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.command,
                env=self.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=self.pass_fds,
                # Ctrl-C is for the load test alone, which ends the server; and what it leaves behind is found.
                start_new_session=True,
            )

    async def ready(self, title: str, say: Say, limit_s: float = _START_S) -> None:
        """Return once it takes requests. Raises `LoadtestError` when it ends, or is not ready in time."""
        began_s = time.monotonic()
        while True:
            self.check()
            status, body = await asyncio.to_thread(get, self.url + self.ready_path)
            if status == 200:
                return
            elapsed_s = time.monotonic() - began_s
            if elapsed_s > limit_s:
                raise LoadtestError(f"{self.what} takes no requests after {limit_s:g} s. {self.last_words()}")
            reason = ""
            with suppress(ValueError, KeyError, TypeError):
                reason = f", {json.loads(body)['reason']}"
            say(f"{title}: {elapsed_s:.0f} s{reason}")
            await asyncio.sleep(_LOOK_S)

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
            raise LoadtestError(f"{self.what} ended with status {self._process.returncode}. {self.last_words()}")

    async def stop(self) -> int:
        """SIGTERM; its exit status once it is gone. Raises `LoadtestError` when it hangs; then it is killed."""
        process = self._process
        assert process is not None  # noqa: S101 -- started
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self.stop_s):
                return await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise LoadtestError(f"{self.what} did not leave within {self.stop_s:g} s of SIGTERM.") from None

    async def end(self) -> None:
        """Make sure that it is gone, and everything that it started too."""
        if self._process is None:
            return
        # A process with a session of its own is found only while its parents live.
        family = (
            engine_processes.descendants(engine_processes.with_pids(self.pid)) if self.running else frozenset()
        )
        try:
            with suppress(LoadtestError):  # killed
                await self.stop()
        finally:
            # The thread goes on when its caller is interrupted a second time. What the processes held, the
            # memory of a GPU above all, is free for the next server.
            family |= engine_processes.with_pids(*processes.in_session(self.pid))
            await asyncio.to_thread(engine_processes.kill, family, _KILL_S)

    def last_words(self) -> str:
        """The end of its log, as a sentence."""
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        return "Its last words: " + " / ".join(lines[-3:]) if lines else "It said nothing."


@asynccontextmanager
async def serving(server: Server, name: str, say: Say) -> AsyncIterator[Server]:
    """The server, ready; gone when the block ends. say: told how far it is. Raises `LoadtestError`."""
    try:
        await server.start()
        await server.ready(f"starting {name}", say)
        yield server
    finally:
        await server.end()


def free_port() -> int:
    """A loopback port that is free, that no browser refuses, and that no process gets unless it asks for it."""
    first = int(_RANGE.read_text().split()[0])
    while True:
        with socket.socket() as sock, suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port = first - 1 - secrets.randbelow(first - _BROWSERS_REFUSE) if first > 2 * _BROWSERS_REFUSE else 0
            sock.bind(("127.0.0.1", port))
            return int(sock.getsockname()[1])


# ---------------------------------------------------------------- systems, and several of them at once


_Started = TypeVar("_Started")


@dataclass(frozen=True)
class Running:
    """A system that takes requests."""

    # Its name in tables.
    name: str
    address: Address
    # The part of its configuration that matters.
    settings: dict[str, Any]
    # The process that answers; None where that is a client process itself, or belongs to another user.
    pid: int | None = None
    # Where it shows Prometheus' text.
    metrics_url: str | None = None
    # The process in which a gateway's engine runs, where that is not below the gateway's.
    host: int | None = None


@asynccontextmanager
async def together(*systems: AbstractAsyncContextManager[_Started]) -> AsyncIterator[list[_Started]]:
    """All of them, ready, in the order given; gone when the block ends, or when one of them cannot start.

    They start at the same time; on a GPU their memory has to be shared out (`share`).
    """
    loop = asyncio.get_running_loop()
    ready: list[asyncio.Future[_Started]] = [loop.create_future() for _ in systems]
    leave = asyncio.Event()

    async def hold(system: AbstractAsyncContextManager[_Started], known: asyncio.Future[_Started]) -> None:
        # Entered and left in one task, as task groups and time limits inside ask for.
        async with system as started:
            known.set_result(started)
            await leave.wait()

    try:
        async with asyncio.TaskGroup() as tasks:
            for system, known in zip(systems, ready, strict=True):
                tasks.create_task(hold(system, known))
            yield [await known for known in ready]
            leave.set()
    except BaseExceptionGroup as errors:
        # The group wraps what its block raises too.
        raise first_error(errors) from None


@asynccontextmanager
async def attempted(system: AbstractAsyncContextManager[_Started]) -> AsyncIterator[_Started | LoadtestError]:
    """The system, or why it could not start."""
    async with AsyncExitStack() as stack:
        outcome: _Started | LoadtestError
        try:
            outcome = await stack.enter_async_context(system)
        except LoadtestError as error:
            outcome = error
        yield outcome


def standing(
    names: Iterable[str], started: Iterable[_Started | LoadtestError], fails: Callable[[str, str], None]
) -> dict[str, _Started]:
    """Those that could start, by name; `fails` is told the names of the others, and why."""
    found: dict[str, _Started] = {}
    for name, each in zip(names, started, strict=True):
        if isinstance(each, LoadtestError):
            fails(name, str(each))
        else:
            found[name] = each
    return found

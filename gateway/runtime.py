"""The process as a whole: pauses of the Python interpreter, file descriptors, logging, how late the event loop is.

Knows: Python's garbage collector and threads, limits of the process, logging, timers, tasks, proxies.
Must not know: what the process does, who gives way when it is full.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol, Self, TextIO
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from gateway.tracing import spans

_log = logging.getLogger(__name__)

# File descriptors kept for the engine, for logs, and for refusing clients.
RESERVED_FILES = 256

# File descriptors that the process asks for where the system has no limit.
_MOST_FILES = 1_048_576

# How long another thread, such as one that writes metrics, may hold up the event loop. Python's default is 5 ms,
# about the time of one token.
_SWITCH_S = 0.001

# Thresholds of the garbage collector's three generations.
# A session is 200 objects that survive. While thousands of sessions open, a pass of the middle generation looks at
# the product of the first two numbers, and takes 20 ms. With a smaller first number, passes take a twentieth of a
# full event loop. A full pass takes seconds with any setting, so it is made rare.
_GARBAGE_THRESHOLDS = (10_000, 5, 1_000)

# Between two looks at how late the event loop is.
_LAG_LOOK_S = 0.05

# How far back the mean goes.
_LAG_REMEMBERED_S = 1.0

# What uvicorn logs about requests and frames that it refuses: anybody could fill the log with it.
_ABOUT_CLIENTS = (
    "ASGI callable returned without completing handshake",
    "Invalid HTTP request received",
    "Invalid UTF-8 sequence received",
    "Unsupported upgrade request",
)


def settle_interpreter() -> None:
    """Keep the interpreter's own pauses short. For a process that serves."""
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_S)


def raise_file_limit() -> int:
    """Let the process open as many files and sockets as the system allows it. Returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return _MOST_FILES if soft == resource.RLIM_INFINITY else soft


class LogStyle(NamedTuple):
    """How a process logs. level: of the gateway's own log."""

    level: str | int
    format: Literal["text", "json"] = "text"


class _Text(logging.Formatter):
    def __init__(self, who: str) -> None:
        super().__init__(f"%(asctime)s %(levelname)s {who and f'{who}: '}%(name)s: %(message)s")


class _Json(logging.Formatter):
    """One object a line; what a record has as its `fields` is beside its message."""

    def __init__(self, who: str) -> None:
        super().__init__()
        self._who = {"process": who} if who else {}

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            **self._who,
        }
        line |= {"logger": record.name, "message": record.getMessage(), **getattr(record, "fields", {})}
        line |= spans.exemplar(spans.current()) or {}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


_FORMATS: dict[str, Callable[[str], logging.Formatter]] = {"text": _Text, "json": _Json}


def style_for(terminal: TextIO, level: str, format: Literal["auto", "text", "json"]) -> LogStyle:
    """How a process logs to `terminal`, as its settings say. level: in any case."""
    if format == "auto":
        format = "text" if terminal.isatty() else "json"
    return LogStyle(level.upper(), format)


class Says(Protocol):
    """The stream on which a process tells its parent or its terminal."""

    def write(self, text: str, /) -> int: ...

    def flush(self) -> None: ...

    def isatty(self) -> bool: ...


class _LoggedLines:
    """Lines that become messages of the log, which a program reads."""

    def __init__(self) -> None:
        self._begun = ""

    def write(self, text: str, /) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            _log.info("%s", line.strip())
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def log_to(terminal: TextIO, style: LogStyle, *, who: str = "") -> Says:
    """Send the logs of the gateway and of uvicorn to `terminal`.

    who: which process it is, where there are several alike. Returns where everything else is to be said.
    """
    handler = logging.StreamHandler(terminal)
    handler.setFormatter(_FORMATS[style.format](who))
    for name in ("gateway", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
    logging.getLogger("gateway").setLevel(style.level)
    uvicorn_log = logging.getLogger("uvicorn.error")
    uvicorn_log.setLevel("WARNING")
    uvicorn_log.addFilter(lambda record: not record.getMessage().startswith(_ABOUT_CLIENTS))
    return terminal if style.format == "text" else _LoggedLines()


def log_from(level: str) -> None:
    """Log what is at least so severe from now on."""
    logging.getLogger("gateway").setLevel(level.upper())


def log_level() -> str:
    """From which severity on this process logs, as in the settings."""
    return logging.getLevelName(logging.getLogger("gateway").getEffectiveLevel()).lower()


def log_style() -> LogStyle:
    """How this process logs, for one that it starts."""
    logger = logging.getLogger("gateway")
    is_json = any(isinstance(handler.formatter, _Json) for handler in logger.handlers)
    return LogStyle(logger.getEffectiveLevel(), "json" if is_json else "text")


class EventLoopLag:
    """How late the event loop comes to what is due: how full the process is, as everything in it feels it.

    Measured while its context is open, in seconds. mean_s: of about the last second. on_late: is told each time.
    """

    def __init__(self, on_late: Callable[[float], None] = lambda _: None) -> None:
        self.mean_s = 0.0
        self._on_late = on_late
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._look_again()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def late(self, late_s: float) -> None:
        """The loop came so late to something."""
        self._on_late(late_s)
        # By time, not by number: while the loop is late, there are fewer looks.
        remembered = math.exp(-(_LAG_LOOK_S + late_s) / _LAG_REMEMBERED_S)
        # One long pause, of the whole machine for instance, is not what fills the process.
        self.mean_s = self.mean_s * remembered + min(late_s, _LAG_REMEMBERED_S) * (1 - remembered)

    def _look(self) -> None:
        self.late(max(0.0, time.monotonic() - self._due_s))
        self._look_again()

    def _look_again(self) -> None:
        self._due_s = time.monotonic() + _LAG_LOOK_S
        self._timer = asyncio.get_running_loop().call_later(_LAG_LOOK_S, self._look)


async def cancelled(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel those that there are, and wait until nothing of them runs any more."""
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)


async def within(seconds: float | None, waiting: Awaitable[object]) -> bool:
    """Wait for it, no longer than this; whether it came. None: however long it takes."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiting
            return True
    return False


def proxy_of(url: str) -> str | None:
    """The proxy for an address that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`), if any."""
    parts = urlsplit(url)
    # A proxy cannot reach the loopback address of this machine.
    if parts.hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(parts.netloc):
        return None
    proxy = getproxies().get(parts.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy

"""The driver: client processes that say lines to a system, all from the same moment on.

Knows: processes, how lines and loads are split over them, when a pass is over, whether the driver, and not the
system, was the limit. Must not know: protocols (`client`), what is made of the records.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, BinaryIO, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.runtime import within
from loadtest.driving import exchange
from loadtest.driving.exchange import Share
from loadtest.options import Say
from loadtest.results import LoadtestError, first_error
from loadtest.trial.values import (
    Address,
    Closed,
    Delivered,
    EngineInProcess,
    InMeetings,
    Line,
    Load,
    Open,
    ProcessUse,
    Record,
)

# A part of a core above which a process has no time to spare: what comes next to it waits.
_MOST_CPU = 0.85

# Late by no more than this is nothing that a reader, or a percentile that is shown, would notice.
_LEAST_LAG_MS = 10.0

# Share of the latency that is measured.
_MOST_LAG = 0.05


class Driven(Struct, frozen=True):
    """One pass."""

    # Reading of `time.monotonic` from which seconds in records count.
    began_s: float
    # Seconds from there to the last record.
    elapsed_s: float
    records: list[Record]
    delivered: Delivered
    # An entry for each client process.
    clients: list[ProcessUse]
    # Whether the client process is part of the system.
    holds_engine: bool = False
    # When the first client process of a closed loop sent its last line; from then on fewer and fewer are in
    # flight. None in any other loop.
    ran_out_s: float | None = None


def bottleneck(driven: Driven, load: Load) -> str | None:
    """One sentence, if the clients could not keep up with what they measured; None if they could.

    They could not where one was late by more than 10 ms and by more than a twentieth of the median time to the
    first text (p99 of its lag), or used more than 85 % of a core. A client that holds the engine itself is part of
    the system: nothing is said of it.
    """
    if driven.holds_engine:
        return None
    first_ms = [(each.first_s - each.due_s) * 1000 for each in driven.records if each.first_s is not None]
    most_ms = max(_LEAST_LAG_MS, _MOST_LAG * statistics.median(first_ms) if first_ms else 0.0)
    lag_ms = max(each.lag_p99_ms for each in driven.clients)
    cpu = max(each.cpu_s / max(each.elapsed_s, 1e-9) for each in driven.clients)
    advice = "fewer at a time" if isinstance(load, Closed) else "a lower rate"
    if cpu > _MOST_CPU:
        return (
            f"The driver was the limit: a client process used {cpu:.0%} of a core (at most {_MOST_CPU:.0%}); take "
            f"more client processes, or {advice}."
        )
    if lag_ms > most_ms:
        return (
            f"The driver was the limit: a client process was late by {lag_ms:.1f} ms (p99; at most {most_ms:.1f} "
            f"ms); take more client processes, {advice}, or a machine that does less besides."
        )
    return None


# ---------------------------------------------------------------- the driver


# For a client to open; an engine that compiles takes minutes.
_OPEN_S = 120.0
_OPEN_ENGINE_S = 900.0

# For sessions and prompts of one pass.
_PREPARE_S = 300.0

# From the order to begin until the first line is due: every process has read the order by then.
_AHEAD_S = 0.3

# For the records of a pass to arrive, once its time is up.
_TELL_S = 60.0

# For an engine to forget; it does between two steps.
_RESET_S = 30.0

_LEAVE_S = 10.0
_LEAVE_ENGINE_S = 30.0

_SAY_S = 1.0

# Bytes of a client's log that are quoted.
_TAIL_BYTES = 2_000

_One = TypeVar("_One", exchange.Done, exchange.Played)


class Driver:
    """Client processes whose sessions are open."""

    def __init__(self, address: Address, load: Load, processes: Sequence[_Process], say: Say) -> None:
        self._in_process = isinstance(address, EngineInProcess)
        self._load = load
        self._processes = processes
        self._say = say
        self.pids = [each.pid for each in processes]

    async def play(
        self,
        lines: Sequence[Line],
        *,
        limit_s: float,
        load: Load | None = None,
        keep_text: bool = False,
        stage: str = "playing",
    ) -> Driven:
        """Say all lines, and wait until all have ended; what has not after `limit_s` has failed (`time limit`).

        load: another than the one that was opened for, of the same kind. keep_text: records hold the translations.
        stage: what the progress is called. Raises `LoadtestError` when a
        client process ends or cannot go on.
        """
        load, count = load or self._load, len(self._processes)
        parts = zip(split_lines(lines, load, count), split_load(load, count), strict=True)
        orders = [exchange.Prepare(*part) for part in parts]
        async with _first_error():
            async with asyncio.timeout(_PREPARE_S), asyncio.TaskGroup() as tasks:
                for process, order in zip(self._processes, orders, strict=True):
                    tasks.create_task(process.ask(order, exchange.Done))
            for process in self._processes:
                process.progress = exchange.Progress(0, 0)
            begin = exchange.Begin(time.monotonic() + _AHEAD_S, limit_s, keep_text)
            async with asyncio.timeout(_AHEAD_S + limit_s + _TELL_S), asyncio.TaskGroup() as tasks:
                playing = [tasks.create_task(process.ask(begin, exchange.Played)) for process in self._processes]
                showing = tasks.create_task(self._show(stage))
                played = await asyncio.gather(*playing)
                showing.cancel()
        ran_out_s = [each.ran_out_s for each in played if each.ran_out_s is not None]
        return Driven(
            began_s=begin.begin_s,
            elapsed_s=max(each.elapsed_s for each in played),
            records=[record for each in played for record in each.records],
            delivered=_together([each.delivered for each in played]),
            clients=[each.use for each in played],
            holds_engine=self._in_process,
            ran_out_s=min(ran_out_s, default=None),
        )

    async def reset_prefix_cache(self) -> None:
        """An engine that the client holds keeps nothing of earlier passes; a client that holds none does nothing.

        Raises `LoadtestError` when the engine cannot, or the client process ends.
        """
        async with _first_error(), asyncio.timeout(_RESET_S), asyncio.TaskGroup() as tasks:
            for process in self._processes:
                tasks.create_task(process.ask(exchange.ResetPrefixCache(), exchange.Done))

    async def _show(self, stage: str) -> None:
        before = 0
        while True:
            await asyncio.sleep(_SAY_S)
            done = sum(each.progress.done for each in self._processes)
            failed = sum(each.progress.failed for each in self._processes)
            self._say(f"{stage}: {(done - before) / _SAY_S:.0f}/s, {done} done, {failed} errors")
            before = done


@asynccontextmanager
async def driver(address: Address, load: Load, *, processes: int, say: Say) -> AsyncIterator[Driver]:
    """Start client processes, no more than have something to do; they are gone when the block ends.

    say: told how far a pass is, once a second. Raises `LoadtestError` when a client finds no system.
    """
    engine = isinstance(address, EngineInProcess)
    if isinstance(load, Closed):
        processes = max(1, min(processes, load.in_flight))
    loads = split_load(load, 1 if engine else processes)
    token = secrets.token_hex(4)
    say("building the engine in a client process" if engine else f"opening {len(loads)} client processes")
    async with AsyncExitStack() as stack:
        started = [await stack.enter_async_context(_process(engine=engine)) for _ in loads]
        limit = asyncio.timeout(_OPEN_ENGINE_S if engine else _OPEN_S)
        async with _first_error(), limit, asyncio.TaskGroup() as tasks:
            for index, (process, part) in enumerate(zip(started, loads, strict=True)):
                share = Share(index, len(loads), token)
                tasks.create_task(process.ask(exchange.Start(address, part, share), exchange.Done))
        try:
            yield Driver(address, load, started, say)
        finally:
            for process in started:
                process.dismiss()


def split_load(load: Load, processes: int) -> list[Load]:
    """Each client process's share."""
    match load:
        case Closed(in_flight=in_flight):
            return [Closed(len(range(index, in_flight, processes))) for index in range(processes)]
        case Open(per_s=per_s):
            return [replace(load, per_s=per_s / processes) for _ in range(processes)]
        case InMeetings():
            # Who says what, and where, only the client knows: it is told everything, and which part is its own.
            return [load] * processes


def split_lines(lines: Sequence[Line], load: Load, processes: int) -> list[list[Line]]:
    """Each client process's lines: in turns, one for each target; those in meetings go to every process."""
    if isinstance(load, InMeetings):
        return [list(lines)] * processes
    single = [
        line if len(line.targets) == 1 else replace(line, targets=(target,))
        for line in lines
        for target in line.targets
    ]
    # In a closed loop, by turns over those that are in flight: a process with more of them gets more lines.
    turns = load.in_flight if isinstance(load, Closed) else processes
    return [
        [line for number, line in enumerate(single) if number % turns % processes == index]
        for index in range(processes)
    ]


def _together(delivered: Sequence[Delivered]) -> Delivered:
    def all_of(name: str) -> list[float]:
        together = [ms for each in delivered for ms in getattr(each, name)]
        random.Random("together").shuffle(together)
        return together

    counts: dict[str, Any] = {
        name: sum(getattr(each, name) for each in delivered) for name in ("frames", "bytes", "finals")
    }
    return Delivered(**counts | {name: all_of(name) for name in ("final_ms", "text_ms", "accepted_ms")})


# ---------------------------------------------------------------- one client process


class _Process:
    """progress: what it said last while playing, with the first texts of the last second."""

    def __init__(self, process: asyncio.subprocess.Process, log: BinaryIO) -> None:
        assert process.stdin is not None  # noqa: S101 -- it was started with pipes
        assert process.stdout is not None  # noqa: S101 -- it was started with pipes
        self._process = process
        self._orders = process.stdin
        self._answers = process.stdout
        self._log = log
        self.pid = process.pid
        self.progress = exchange.Progress(0, 0)

    async def ask(self, order: exchange.Order, kind: type[_One]) -> _One:
        """Give an order and wait for the answer to it. Raises `LoadtestError`."""
        # One that has just ended is found out by reading.
        with suppress(ConnectionError):
            self._orders.write(msgspec.json.encode(order) + b"\n")
            await self._orders.drain()
        while True:
            line = await self._answers.readline()
            if not line.endswith(b"\n"):
                self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                said = self._log.read().decode(errors="replace").strip()
                said = f" It said: {said}" if said else ""
                raise LoadtestError(f"A client process ended before its time.{said}")
            answer = exchange.answers.decode(line)
            if isinstance(answer, kind):
                return answer
            match answer:
                case exchange.Progress():
                    self.progress = answer
                case exchange.Broken(reason=reason):
                    raise LoadtestError(reason)
                case _:
                    raise LoadtestError(f"A client process said {type(answer).__name__} out of turn.")

    def dismiss(self) -> None:
        """There are no more orders."""
        self._orders.close()

    async def leave(self, within_s: float) -> None:
        """Let it end by itself, and make sure of it and of whatever it started."""
        self.dismiss()
        try:
            await within(within_s, self._process.wait())
        finally:
            # It leads a session of its own, in which everything that it started is.
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            await self._process.wait()


@asynccontextmanager
async def _process(*, engine: bool) -> AsyncIterator[_Process]:
    with tempfile.TemporaryFile(prefix="loadtest-client-") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "loadtest.driving.process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=exchange.LINE_BYTES,
            start_new_session=True,
        )
        client = _Process(process, log)
        try:
            yield client
        finally:
            await client.leave(_LEAVE_ENGINE_S if engine else _LEAVE_S)


@asynccontextmanager
async def _first_error() -> AsyncIterator[None]:
    """One error is told where several processes go wrong together."""
    try:
        yield
    except TimeoutError:
        raise LoadtestError("The client processes did not answer in time.") from None
    except ExceptionGroup as errors:
        raise first_error(errors) from None

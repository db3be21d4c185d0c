"""Commands to the store, many in one go: those that arrive while a pipeline is under way go with the next one.

So the store writes to its disk once for all of them. Everything that is sent can be repeated: when a
connection is lost before an answer came, it is sent again on the next one, in the same order.

Knows: pipelines, patience, connecting again. Must not know: what a command does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.domain.errors import LogUnavailable
from gateway.stores.redis.connection import Command, Full, Lost, NotLoaded, Refused

_log = logging.getLogger(__name__)

# Seconds between two attempts to connect: the first, and the longest.
_FIRST_WAIT_S = 0.02
_LONGEST_WAIT_S = 0.5
_RETRY_MS = 1_000
# Weight of the newest pipeline in the mean of how long they take.
_WEIGHT = 0.1
_TELL_AGAIN_S = 60.0


class Wire(Protocol):
    """A connection: see `connection.Connection`."""

    async def connect(self) -> None: ...

    async def send(self, commands: Sequence[Command]) -> None: ...

    async def receive(self) -> Any: ...

    async def close(self) -> None: ...


def wait_s(failures: int) -> float:
    """How long to wait before the next attempt, after so many that failed in a row."""
    return min(_FIRST_WAIT_S * float(2 ** min(failures, 8)), _LONGEST_WAIT_S)


def unavailable(why: str) -> LogUnavailable:
    """The error that callers get, with when to try again."""
    return LogUnavailable(why, retry_after_ms=_RETRY_MS)


@dataclass(slots=True, eq=False)
class _Waiting:
    """A command whose caller waits for the answer."""

    command: Command
    answer: asyncio.Future[Any]
    # Whether it may have been done already.
    sent: bool = False

    @property
    def is_wanted(self) -> bool:
        """What was given up before it was sent is not sent. If its caller was cancelled, it is sent once."""
        return not self.answer.done() or (self.answer.cancelled() and not self.sent)

    def end(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@contextlib.contextmanager
def tried(failed: str) -> Iterator[None]:
    """What is done again later, or not at all: where the store is away, nothing is said. failed: for the log."""
    try:
        yield
    except LogUnavailable:
        pass
    except Exception:
        _log.exception(failed)


class Commands:
    """One connection for everything that is answered.

    connect: a new connection, not connected yet.
    prepare: is sent first on each connection, and again when the server has lost a script.
    patience_s: how long a caller waits at most, before and after sending.
    answer_s: without any answer for so long, the connection counts as lost.
    most: commands in one pipeline.
    most_waiting: commands that wait; more are refused.
    address: of the store, for the log.
    """

    def __init__(
        self,
        connect: Callable[[], Wire],
        prepare: Sequence[Command] = (),
        *,
        patience_s: float = 5.0,
        answer_s: float = 3.0,
        most: int = 256,
        most_waiting: int = 20_000,
        address: str = "",
    ) -> None:
        self._address = address
        self._connect = connect
        self._prepare = prepare
        self._patience_s = patience_s
        self._answer_s = answer_s
        self._most = most
        self._most_waiting = most_waiting
        self._queue: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._connection: Wire | None = None
        # Whether the store has refused new work, until it has room again.
        self.is_full = False
        # How long pipelines have taken lately, in seconds.
        self.answered_s = 0.0
        # Why it refuses commands → when that was said.
        self._told_s: dict[str, float] = {}
        # Attempts to connect since it worked.
        self._failures = 0
        self._worker: asyncio.Task[None] | None = None

    @property
    def is_answered(self) -> bool:
        """False from the first command without an answer until one has an answer again."""
        return not self._failures

    def start(self) -> None:
        """Begin to send; `close` ends it."""
        self._worker = asyncio.create_task(self._work(), name="commands to the store")

    async def run(self, *command: bytes | str | int, patience_s: float | None = None) -> Any:
        """The answer to one command. Raises `LogUnavailable`; it may have been done, or be done later."""
        if self._worker is None or self._worker.done():
            raise unavailable("The gateway has left the store.")
        if len(self._queue) >= self._most_waiting:
            raise unavailable("Too much waits for the store.")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(command, loop.create_future())
        self._queue.append(waiting)
        self._arrived.set()
        patience = loop.call_later(
            self._patience_s if patience_s is None else patience_s,
            lambda: waiting.fail(unavailable("The store of the meetings' logs does not answer.")),
        )
        try:
            return await waiting.answer
        finally:
            patience.cancel()

    async def close(self) -> None:
        """What still waits is told that the store is not available. Never raises."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait([self._worker])
        await self._disconnect()
        while self._queue:
            self._queue.popleft().fail(unavailable("The gateway has left the store."))

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            batch = self._next()
            if not batch:
                self._arrived.clear()
                continue
            try:
                await self._exchange(batch)
                self._failures = 0
            except (Lost, TimeoutError) as error:
                await self._disconnect()
                if not self._failures:
                    _log.warning("the store %s cannot be reached (%s)", self._address, str(error) or "no answer")
                self._failures += 1
                await asyncio.sleep(wait_s(self._failures))
            except Exception:
                _log.exception("a pipeline to the store failed")
                await self._disconnect()
                for waiting in batch:
                    waiting.fail(unavailable("The store gave an answer that makes no sense."))
            finally:
                # In the same order, before what came meanwhile.
                self._queue.extendleft(waiting for waiting in reversed(batch) if waiting.is_wanted)

    def _next(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        while self._queue and len(batch) < self._most:
            waiting = self._queue.popleft()
            if waiting.is_wanted:
                batch.append(waiting)
        return batch

    async def _exchange(self, batch: list[_Waiting]) -> None:
        """Send all and take their answers; what has none is still to be done. Raises `Lost`, `TimeoutError`."""
        if self._connection is None:
            self._connection = await self._connected()
        connection = self._connection
        loop = asyncio.get_running_loop()
        prepared, begun_s = True, loop.time()
        async with asyncio.timeout(self._answer_s) as patience:
            for waiting in batch:
                waiting.sent = True
            await connection.send([waiting.command for waiting in batch])
            for waiting in batch:
                try:
                    waiting.end(await connection.receive())
                except NotLoaded:
                    prepared = False
                except Full as error:
                    self.is_full = True
                    self._tell_refused(error)
                    waiting.fail(unavailable("The store of the meetings' logs is full."))
                except Refused as error:
                    self._tell_refused(error)
                    waiting.fail(unavailable("The store refuses what the gateway asks."))
                patience.reschedule(loop.time() + self._answer_s)
            if not prepared:
                await self._send_first(connection)
        self.answered_s += _WEIGHT * (loop.time() - begun_s - self.answered_s)

    def _tell_refused(self, error: Refused) -> None:
        """Once a minute for each reason, which is its first word: the rest may differ each time."""
        why, now_s = str(error).split(" ", 1)[0], asyncio.get_running_loop().time()
        if now_s - self._told_s.get(why, -math.inf) >= _TELL_AGAIN_S:
            self._told_s[why] = now_s
            _log.error("the store %s refuses a command: %s", self._address, why)

    async def _connected(self) -> Wire:
        connection = self._connect()
        try:
            await connection.connect()
            async with asyncio.timeout(self._answer_s):
                await self._send_first(connection)
        except Refused as error:
            await connection.close()
            raise Lost(str(error)) from None
        except BaseException:
            await connection.close()
            raise
        if self._failures:
            _log.info("the store %s is there again", self._address)
        return connection

    async def _send_first(self, connection: Wire) -> None:
        if self._prepare:
            await connection.send(self._prepare)
            for _ in self._prepare:
                await connection.receive()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                await connection.close()

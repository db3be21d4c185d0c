"""What an engine generates for one gateway, and what it generates for all of them.

Knows: the engine port, the messages of a generation. Must not know: sockets, how many gateways there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from gateway.domain.engine import EngineCapacity, EngineState, TokenEvent
from gateway.domain.errors import GatewayError
from gateway.domain.ports import Engine
from gateway.engines.host.messages import (
    Aborted,
    Activity,
    Begun,
    Generate,
    Generated,
    GenerationFailed,
    GetMetrics,
    Held,
    Metrics,
    ToGateway,
    ToHost,
    generation_failed,
)
from gateway.engines.host.slots import Wanted
from gateway.runtime import EventLoopLag

_log = logging.getLogger(__name__)


class Turns:
    """Generations run together, but for those that run alone; these come first."""

    def __init__(self) -> None:
        self._together = 0
        self._alone = 0
        self._one = asyncio.Lock()
        self._waiting: set[asyncio.Future[None]] = set()

    def free(self, *, alone: bool) -> bool:
        """Whether a turn would come at once."""
        return not self._alone and not (alone and self._together)

    @contextlib.asynccontextmanager
    async def turn(self, *, alone: bool) -> AsyncIterator[None]:
        """The turn lasts as long as the context."""
        if not alone:
            await self._until(lambda: not self._alone)
            self._together += 1
            try:
                yield
            finally:
                self._together -= 1
                self._wake()
            return
        self._alone += 1
        try:
            async with self._one:
                await self._until(lambda: not self._together)
                yield
        finally:
            self._alone -= 1
            self._wake()

    async def _until(self, free: Callable[[], bool]) -> None:
        while not free():
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(woken)
            try:
                await woken
            finally:
                self._waiting.discard(woken)

    def _wake(self) -> None:
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)


class EngineWork:
    """What an engine does for all its gateways.

    on_failure: called when a generation failed; this may be the first sign that the engine died.
    """

    def __init__(self, engine: Engine, *, on_failure: Callable[[], None] = lambda: None) -> None:
        self.engine = engine
        self.on_failure = on_failure
        # How late this process is, while that is measured.
        self.lag = EventLoopLag()
        self.turns = Turns()
        self.measuring = asyncio.Lock()
        self.generations = 0
        self.progress = 0

    @property
    def ready(self) -> bool:
        return self.engine.health().state is EngineState.READY

    def capacity(self) -> EngineCapacity:
        """The engine's, with how late this process is, or another one of the engine's."""
        capacity = self.engine.capacity()
        return replace(capacity, lag_s=max(capacity.lag_s, round(self.lag.mean_s, 3)))

    def activity(self) -> Activity:
        """What the engine is doing for all gateways."""
        return Activity(self.generations, self.progress)


class GatewayWork:
    """What it does for one gateway.

    say: sends a message to this gateway. ids: what its request ids begin with in the engine, so that those of two
    gateways differ. on_change: called when a generation has begun or ended.
    """

    def __init__(
        self,
        work: EngineWork,
        say: Callable[[ToGateway], None],
        *,
        ids: str = "",
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._work = work
        self._say = say
        self._ids = ids
        self._on_change = on_change
        self._tasks: set[asyncio.Task[None]] = set()
        self._generations: dict[int, asyncio.Task[None]] = {}
        # How many of them are of finals.
        self._finals = 0

    @property
    def wanted(self) -> Wanted:
        """What is in flight."""
        return Wanted(self._finals, len(self) - self._finals)

    def __len__(self) -> int:
        """Generations in flight."""
        return len(self._generations)

    def heard(self, message: ToHost) -> None:
        """Do what this gateway asks for, if it is about its generations or the engine's metrics."""
        match message:
            case Generate():
                self._generations[message.number] = task = self._run(self._generate(message))
                self._count(1, message)
                # Not in the coroutine: a task that is cancelled before its first step runs no code.
                task.add_done_callback(lambda _: self._ended(message))
            case Aborted():
                if (running := self._generations.get(message.number)) is not None:
                    running.cancel()
            case GetMetrics():
                self._run(self._get_metrics(message))

    async def close(self) -> None:
        """End everything."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _ended(self, message: Generate) -> None:
        if self._generations.pop(message.number, None) is not None:
            self._count(-1, message)

    def _count(self, more: int, message: Generate) -> None:
        self._finals += more * message.request.final
        self._work.generations += more
        self._work.progress += 1
        self._on_change()

    async def _generate(self, message: Generate) -> None:
        work, number, say = self._work, message.number, self._say
        request = replace(message.request, id=self._ids + message.request.id) if self._ids else message.request

        def tell(event: TokenEvent) -> None:
            work.progress += 1
            say(Generated(number, event))

        held = not (work.turns.free(alone=request.alone) and work.ready)
        if held:
            say(Held(number))
        try:
            async with work.turns.turn(alone=request.alone):
                # Before it begins: it may be what kills this process.
                if (held or request.alone) and work.ready:
                    say(Begun(number))
                await work.engine.generate(request, tell)
        except GatewayError as error:
            work.on_failure()
            say(generation_failed(number, error))
        except Exception as error:
            _log.exception("a generation failed")
            say(
                GenerationFailed(
                    number, False, f"The engine could not translate this text ({type(error).__name__})."
                )
            )

    async def _get_metrics(self, message: GetMetrics) -> None:
        # One at a time: several such threads would slow the event loop down.
        async with self._work.measuring:
            page = await self._work.engine.metrics(message.names)
        self._say(Metrics(message.number, page))

"""Engine port over an engine of which several processes ask for generations: its front ends.

Preparing requests and handing out tokens can fill a process before the engine is full. The process that hosts such
an engine starts more of them. Each is a host of its own for the gateways that it has, and to this process what a
gateway is to a host: it says what its gateways want, and divides the seats that it is given.
Knows: the processes, that they live and die together.
Must not know: which engine it is, how its processes reach it, which gateway comes to which.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec.structs import replace

from gateway.domain.engine import (
    EngineCapacity,
    EngineHealth,
    EngineProfile,
    EngineState,
    OnEvent,
    TranslationRequest,
)
from gateway.domain.ports import Engine
from gateway.engines.host.messages import Activity, Demands, Pause, Paused, Resume, Seats, ToGateway
from gateway.engines.host.proxy import Host, HostedEngine, start_host
from gateway.engines.host.seats import Wanted
from gateway.engines.host.sharing import Sharing
from gateway.engines.host.turns import Pauses
from gateway.exposition import summed

Begin = Callable[[Sequence[Callable[[], Engine]]], Coroutine[Any, Any, None]]


@runtime_checkable
class Divisible(Engine, Protocol):
    """An engine that several processes can ask for generations."""

    def divide(self, count: int, at: Path, begin: Begin) -> None:
        """To be called before `start`, which lets so many front ends `begin`, if there can be several.

        begin: to be called with what makes the engine of each in a process of its own, as early as it can wait
        there for the rest. at: a path in a private folder; what it makes there differs from it in the suffix.
        """

    def fail(self, reason: str) -> None:
        """It has failed, since one of its front ends has; it keeps its log, if it has one."""


class DividedEngine:
    """Engine port, and `Divided`. build: makes the engine. count: of front ends, if it can have several.

    Its own process asks as well, for whoever has it; its seats are divided among the front ends alone.
    """

    def __init__(self, build: Callable[[], Engine], count: int) -> None:
        self._own = build()
        self._count = count
        self._fronts: list[_FrontEnd] = []
        self._joined: asyncio.Future[tuple[Path, Sharing]] = asyncio.get_running_loop().create_future()
        self._starting: asyncio.TaskGroup | None = None

    @property
    def log_path(self) -> Path | None:
        path: Path | None = getattr(self._own, "log_path", None)
        return path

    # ------------------------------------------------------------ life

    def join(self, at: Path, sharing: Sharing) -> None:
        """See `Divided`."""
        self._joined.set_result((at, sharing))

    async def start(self) -> None:
        at, sharing = await self._joined
        if isinstance(self._own, Divisible):
            self._own.divide(self._count, at, partial(self._begin, self._own, at, sharing))
        try:
            async with asyncio.TaskGroup() as self._starting:
                self._starting.create_task(self._own.start())
        except ExceptionGroup as failed:
            # The first; it has ended the others.
            raise failed.exceptions[0] from None

    async def _begin(
        self, engine: Divisible, at: Path, sharing: Sharing, builds: Sequence[Callable[[], Engine]]
    ) -> None:
        """Start the front ends, which wait for the engine."""
        if engine.health().state is not EngineState.STARTING:
            return
        assert self._starting is not None  # noqa: S101 -- by `start`
        work = sharing.work
        for number, build in enumerate(builds, start=1):
            path = at.with_suffix(f".{number}")
            front = _FrontEnd(number, partial(start_host, build, path, number), self._paused, engine.fail, sharing)
            # It may end before it has said anything.
            front.log_path = self.log_path
            self._fronts.append(front)
            sharing.add(front)
            work.front_ends.append(str(path))
            self._starting.create_task(front.start())
        work.below, work.everywhere = self._paused, self._activity
        # Each of them has begun.
        await asyncio.sleep(0)

    async def stop(self) -> None:
        await asyncio.gather(*(front.stop() for front in self._fronts))
        await self._own.stop()

    # ------------------------------------------------------------ front ends

    @contextlib.asynccontextmanager
    async def _paused(self, but: _FrontEnd | None = None) -> AsyncIterator[None]:
        """While the context lasts, nothing of the front ends runs, but of this one."""
        with contextlib.ExitStack() as pauses:
            await asyncio.gather(
                *(pauses.enter_context(front.pauses.asked()) for front in self._fronts if front is not but)
            )
            yield

    def _activity(self, own: Activity) -> Activity | None:
        """What all of them do. None as long as one of them has not answered, as a host that hangs does not."""
        answered = not any(front.asking for front in self._fronts)
        each = [front.activity() for front in self._fronts]
        if not answered:
            return None
        return Activity(
            own.generations + sum(is_busy for is_busy, _ in each), own.progress + sum(count for _, count in each)
        )

    # ------------------------------------------------------------ Engine

    def generate(self, request: TranslationRequest, on_event: OnEvent) -> Coroutine[Any, Any, None]:
        return self._own.generate(request, on_event)

    def health(self) -> EngineHealth:
        own = self._own.health()
        starting = any(front.health().state is EngineState.STARTING for front in self._fronts)
        if own.state is EngineState.READY and starting:
            return EngineHealth(EngineState.STARTING, "starting its front ends")
        return own

    def capacity(self) -> EngineCapacity:
        own = self._own.capacity()
        if not self._fronts:
            return own
        each = [own, *(front.capacity() for front in self._fronts)]
        asked = sum(capacity.running + capacity.waiting for capacity in each)
        running = min(asked, own.max_running)
        lag_s = max(capacity.lag_s for capacity in each)
        return EngineCapacity(own.max_running, running, asked - running, lag_s)

    def profile(self) -> EngineProfile:
        return self._own.profile()

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        if not self._fronts:
            return await self._own.metrics(names)
        engines: list[Engine] = [self._own, *self._fronts]
        busy = [index for index, engine in enumerate(engines) if engine.capacity().running]
        pages = await asyncio.gather(*(engine.metrics(names) for engine in engines))
        # An engine tells one of those that ask it how it is: one that asks nothing has heard of it a while ago,
        # and if nobody asks, whoever heard last knows that it is idle.
        gauges, choice = ([pages[index] for index in busy], max) if busy else (pages, min)
        return await asyncio.to_thread(summed, pages, gauges, choice)


class _FrontEnd(HostedEngine):
    """One of them.

    paused: while its context lasts, nothing runs in the engine but what the given one runs. on_failure: is told
    which this one is and why it has failed.
    """

    def __init__(
        self,
        number: int,
        open: Callable[[], Host],
        paused: Callable[[_FrontEnd], contextlib.AbstractAsyncContextManager[None]],
        on_failure: Callable[[str], None],
        sharing: Sharing,
    ) -> None:
        super().__init__(open)
        self._name = f"front end {number}"
        self._paused = paused
        self._on_failure = on_failure
        self._sharing = sharing
        self._wanted = [Wanted()]
        self._seats: Seats | None = None
        self.pauses = Pauses(self._say, self._alone)

    async def stop(self) -> None:
        await self.pauses.close()
        await super().stop()

    def _discard_log(self, keep: bool) -> None:
        """It is the engine's, which knows whether it is worth reading."""

    def _changed(self, health: EngineHealth) -> None:
        super()._changed(health)
        if health.state is EngineState.FAILED:
            names_it = health.reason.startswith(self._name)
            self._on_failure(health.reason if names_it else f"{self._name}: {health.reason}")

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """While the context lasts, nothing runs but what this one runs: one of those that want it at a time."""
        async with self._sharing.work.turns.turn(alone=True), self._paused(self):
            yield

    def wanted(self, _now_s: float) -> list[Wanted]:
        """See `Sharer`."""
        return self._wanted

    def tell(self, seats: Seats) -> None:
        """See `Sharer`."""
        # It is asked itself how late it is.
        seats = replace(seats, lag_s=0.0)
        # What is said before there is a connection is lost.
        if seats != self._seats and self._life.state is EngineState.READY:
            self._seats = seats
            self._say(seats)

    def _heard(self, message: ToGateway) -> None:
        match message:
            case Demands():
                self._wanted = message.wanted
                self._sharing.divide()
            case Pause() | Paused() | Resume():
                self.pauses.heard(message)
            case _:
                super()._heard(message)

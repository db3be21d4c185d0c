"""Serves one engine to every gateway that asks it, and divides its slots among them.

The gateway that has the host is one of them; where there are workers, the others come to a listening Unix socket.
A gateway that goes away takes its generations with it. A worker that does not read is dropped before it costs more
than a few megabytes, and a gateway that does not answer keeps no slots that it does not use.
Knows: the engine port, which gateways are connected, what each runs and last said that it wants.
Must not know: who starts the gateways, how the engine is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gateway.domain.engine import EngineCapacity, EngineState
from gateway.domain.errors import EngineFailed, GatewayError
from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import (
    Aborted,
    Demand,
    Failed,
    Generate,
    GetMetrics,
    Metrics,
    Slots,
    Started,
    Step,
    ToHost,
    Wanted,
    failed_with,
)
from gateway.engines.lifecycle import Generation, Generations
from gateway.engines.prompting.completions import Completions, News
from gateway.engines.prompting.model import PromptedModel
from gateway.engines.simulated import SimulatedModel
from gateway.runtime import EventLoopLag, cancelled

_log = logging.getLogger(__name__)

# For how long a gateway is believed that more of its translations wait; it says so more often than that. One that
# is frozen stops saying it.
DEMAND_S = 2.0

# Shortest time between two divisions of the slots: about that of a token.
_DIVIDE_S = 0.01

_UNREAD_BYTES = 4 * 2**20


def fair_shares(demands: Sequence[int], slots: int) -> list[int]:
    """Slots for each demand: none gets more than it wants, nor more than another that wants more than it has.

    The rest of a division goes to the first.
    """
    shares = [0] * len(demands)
    # The least demanding first: what they leave is divided among the others.
    order = sorted(range(len(demands)), key=lambda index: (demands[index], -index))
    left = max(0, slots)
    for served, index in enumerate(order):
        shares[index] = share = min(demands[index], left // (len(order) - served))
        left -= share
    return shares


def grants(wanted: Sequence[Wanted], slots: int) -> list[int]:
    """How many sequences each gateway may run now, at least one: a max-min fair division.

    Finals are served first; what they leave is for the others. A gateway that has all it wants may use what it
    would get if it wanted more, so that one that has been idle can begin without asking. What is in use, at most
    what each wants, is never more than there is; but one that would get nothing may use one.
    """
    finals = fair_shares([each.finals for each in wanted], slots)
    left = slots - sum(finals)
    demands = [each.others for each in wanted]
    others = fair_shares(demands, left)
    granted = []
    for i, each in enumerate(wanted):
        served, share = finals[i], others[i]
        if served + share == each.finals + each.others:
            share = max(share, fair_shares([*demands[:i], slots, *demands[i + 1 :]], left)[i])
        granted.append(max(1, served + share))
    return granted


class Turns:
    """Generations run together, but for those that run alone; these come first."""

    def __init__(self) -> None:
        self._together = 0
        self._alone = 0
        self._one = asyncio.Lock()
        self._waiting: set[asyncio.Future[None]] = set()

    def is_free(self, *, alone: bool) -> bool:
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


class Sharing:
    """An engine, the gateways that ask it, and what it does for all of them.

    on_failure: called when a generation failed; this may be the first sign that the engine died.
    """

    def __init__(self, engine: Completions, *, on_failure: Callable[[], None] = lambda: None) -> None:
        self.engine = engine
        self.on_failure = on_failure
        # How late this process is, while that is measured.
        self.lag = EventLoopLag()
        self.turns = Turns()
        self.measuring = asyncio.Lock()
        # Those in flight, of all gateways.
        self.generations = Generations()
        self._gateways: list[Gateway] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._due: asyncio.TimerHandle | None = None
        self._divided_s = 0.0

    @contextlib.asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Accept workers at `path`, which must be in a private folder, while the context lasts."""
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(lambda: _Worker(self), path)
        try:
            yield
        finally:
            server.close()

    @property
    def ready(self) -> bool:
        return self.engine.health().state is EngineState.READY

    def capacity(self) -> EngineCapacity:
        """The engine's, with how late this process is, or another one of the engine's."""
        capacity = self.engine.capacity()
        return replace(capacity, lag_s=max(capacity.lag_s, round(self.lag.mean_s, 3)))

    def started(self) -> Started:
        """What a gateway is told first; the engine is ready."""
        engine, model = self.engine, self.engine.model
        assert isinstance(model, PromptedModel | SimulatedModel)  # noqa: S101 -- there is no other
        return Started(profile=engine.profile(), model=model, max_running=engine.capacity().max_running)

    def join(self, gateway: Gateway) -> None:
        """One more gateway gets a share of the slots."""
        self._gateways.append(gateway)
        self.divide()

    def leave(self, gateway: Gateway) -> None:
        """It gets none any more, and what it runs ends. Does nothing for one that has not joined."""
        if gateway in self._gateways:
            self._gateways.remove(gateway)
            self._closing.add(closing := asyncio.create_task(gateway.end_all()))
            closing.add_done_callback(self._closing.discard)
            self.divide()

    async def close(self) -> None:
        """Let all gateways leave, and wait until nothing runs for them."""
        for gateway in [*self._gateways]:
            gateway.close()
            self.leave(gateway)
        if self._due is not None:
            self._due.cancel()
        if self._closing:
            await asyncio.wait(self._closing)

    def divide(self) -> None:
        """Divide the slots again, soon; called whenever demand may have changed."""
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(max(loop.time(), self._divided_s + _DIVIDE_S), self._divide)

    def _divide(self) -> None:
        self._due = None
        self._divided_s = now_s = asyncio.get_running_loop().time()
        if not self.ready:
            return
        capacity = self.capacity()
        wanted = [gateway.wanted(now_s) for gateway in self._gateways]
        for gateway, granted in zip(self._gateways, grants(wanted, capacity.max_running), strict=True):
            gateway.show_slots(Slots(granted, capacity.running, capacity.waiting, capacity.lag_s))


class Gateway(Channel[Any, ToHost]):
    """A gateway that asks the engine."""

    def __init__(self, sharing: Sharing) -> None:
        super().__init__(ToHost, self.heard, self.lost)
        self._sharing = sharing
        self._waiting = Wanted()
        self._said_s = 0.0
        self._slots: Slots | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # Those in flight, by the gateway's numbers, and how many of them are of finals.
        self.generations: dict[int, asyncio.Task[None]] = {}
        self._finals = 0
        # What is to be said at the end of this turn: after a step of the engine, all that it has brought.
        self._step: Step | None = None

    def wanted(self, now_s: float) -> Wanted:
        """What it runs and wants to run."""
        waiting = self._waiting if now_s - self._said_s < DEMAND_S else Wanted()
        others = len(self.generations) - self._finals
        return Wanted(self._finals + waiting.finals, others + waiting.others)

    def show_slots(self, slots: Slots) -> None:
        """Say how many slots it has, if that has changed; called often."""
        if slots != self._slots:
            self._slots = slots
            self.say(slots)

    def heard(self, message: ToHost) -> None:
        """Do what it asks for, if it is about its generations, its slots or the engine's metrics."""
        match message:
            case Generate():
                self._waits(message.waiting)
                generation = self._sharing.generations.open()
                self.generations[message.number] = task = self._run(self._generate(message, generation))
                self._count(1, message)
                # Not in the coroutine: a task that is cancelled before its first step runs no code.
                task.add_done_callback(lambda _: self._ended(message, generation))
            case Demand():
                self._waits(message.waiting)
                self._sharing.divide()
            case Aborted():
                if (running := self.generations.get(message.number)) is not None:
                    running.cancel()
            case GetMetrics():
                self._run(self._get_metrics(message))

    def lost(self) -> None:
        self._sharing.leave(self)

    async def end_all(self) -> None:
        await cancelled(*self._tasks)

    def _waits(self, waiting: Wanted) -> None:
        self._waiting, self._said_s = waiting, asyncio.get_running_loop().time()

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _ended(self, message: Generate, generation: Generation) -> None:
        generation.close()
        if self.generations.pop(message.number, None) is not None:
            self._count(-1, message)

    def _count(self, more: int, message: Generate) -> None:
        self._finals += more * message.prompt.final
        self._sharing.divide()

    def _tell(self) -> Step:
        """What is said at the end of this turn, to be added to."""
        if self._step is None:
            self._step = Step([], [], [], [])
            asyncio.get_running_loop().call_soon(self._say_step)
        return self._step

    def _say_step(self) -> None:
        if (step := self._step) is not None:
            self._step = None
            self.say(step)

    async def _generate(self, message: Generate, generation: Generation) -> None:
        sharing, number, prompt = self._sharing, message.number, message.prompt

        def hand_on(news: News) -> None:
            sharing.generations.heard()
            self._tell().news.append((number, news))

        held = not (sharing.turns.is_free(alone=prompt.alone) and sharing.ready)
        if held:
            self._tell().held.append(number)
        try:
            with generation:
                async with sharing.turns.turn(alone=prompt.alone):
                    if (held or prompt.alone) and sharing.ready:
                        self._tell().begun.append(number)
                        # Before it begins: it may be what kills this process.
                        self._say_step()
                    await sharing.engine.complete(prompt, hand_on)
        except GatewayError as error:
            sharing.on_failure()
            self._tell().failed.append((number, failed_with(error)))
        except Exception as error:
            _log.exception("a generation failed")
            sentence = f"The engine could not translate this text ({type(error).__name__})."
            self._tell().failed.append((number, Failed(EngineFailed.code, sentence)))

    async def _get_metrics(self, message: GetMetrics) -> None:
        # One at a time: several such threads would slow the event loop down.
        async with self._sharing.measuring:
            page = await self._sharing.engine.metrics(message.names)
        self.say(Metrics(message.number, page))


class _Worker(Gateway):
    """A gateway that comes to share the engine, which must be ready: it is told at once what the engine can do."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        sharing = self._sharing
        if self.is_refused:
            return
        if not sharing.ready:
            self.close()
            return
        self.say(sharing.started())
        # Only then: the first message is as long as a vocabulary.
        self.bound_unread(_UNREAD_BYTES)
        sharing.join(self)

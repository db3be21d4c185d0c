"""Who runs alone runs with nobody else, and comes first: in one process, and in all that ask one engine."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.engines.host.front_ends import DividedEngine, _FrontEnd
from gateway.engines.host.sharing import Sharing
from gateway.engines.host.turns import Pauses, Turns
from gateway.engines.host.work import EngineWork
from gateway.engines.simulated import SimulatedEngine


class Stage:
    """Generations that run until they are told to end."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.running: set[str] = set()
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, name: str, *, alone: bool = False) -> None:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._run(name, alone))
        await settled()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await settled()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await settled()

    async def _run(self, name: str, alone: bool) -> None:
        async with self.turns.turn(alone=alone):
            self.running.add(name)
            try:
                await self._ends[name].wait()
            finally:
                self.running.remove(name)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_others_run_together() -> None:
    stage = Stage()
    await stage.begin("a")
    await stage.begin("b")
    assert stage.running == {"a", "b"}


async def test_whether_a_turn_would_come_at_once() -> None:
    stage = Stage()
    assert stage.turns.free(alone=False)
    assert stage.turns.free(alone=True)
    await stage.begin("a")
    assert stage.turns.free(alone=False)
    assert not stage.turns.free(alone=True)
    await stage.begin("suspect", alone=True)
    await stage.end("a")
    assert not stage.turns.free(alone=False)
    assert not stage.turns.free(alone=True)
    await stage.end("suspect")
    assert stage.turns.free(alone=True)


async def test_one_that_runs_alone_waits_for_those_that_run_and_goes_before_those_that_come() -> None:
    stage = Stage()
    await stage.begin("a")
    await stage.begin("suspect", alone=True)
    await stage.begin("b")
    await stage.begin("another suspect", alone=True)
    assert stage.running == {"a"}
    await stage.end("a")
    assert stage.running == {"suspect"}
    await stage.end("suspect")
    assert stage.running == {"another suspect"}
    await stage.end("another suspect")
    assert stage.running == {"b"}


async def test_one_that_gives_up_keeps_nobody() -> None:
    stage = Stage()
    await stage.begin("a")
    await stage.begin("suspect", alone=True)
    await stage.begin("b")
    await stage.cancel("suspect")
    assert stage.running == {"a", "b"}
    await stage.begin("c", alone=True)
    await stage.cancel("b")
    assert stage.running == {"a"}
    await stage.cancel("a")
    assert stage.running == {"c"}


# ---------------------------------------------------------------- several processes


FRONT_ENDS = 3


class Wire:
    """One direction of a channel: what is said is heard later, in order."""

    def __init__(self, heard: Callable[[Any], None]) -> None:
        self._heard = heard
        self._said: deque[Any] = deque()

    def say(self, message: Any) -> None:
        self._said.append(message)

    def deliver(self) -> bool:
        if self._said:
            self._heard(self._said.popleft())
            return True
        return False


class Processes:
    """The host of an engine and its front ends, without the sockets between them."""

    def __init__(self) -> None:
        engine = DividedEngine(SimulatedEngine, FRONT_ENDS)
        host = EngineWork(engine)
        sharing = Sharing(host)
        engine.join(Path("at.sock"), sharing)
        host.below = engine._paused
        self.works = [host]
        self.wires: list[Wire] = []
        for number in range(1, FRONT_ENDS + 1):
            work = EngineWork(SimulatedEngine())
            front = _FrontEnd(number, _never, engine._paused, _never, sharing)
            up = Wire(front._heard)
            pauses = Pauses(up.say, lambda work=work: work.turns.turn(alone=True))  # type: ignore[misc]
            front._channel = down = Wire(pauses.heard)  # type: ignore[assignment]
            work.above = pauses.lasting
            engine._fronts.append(front)
            self.works.append(work)
            self.wires += [up, down]
        self.running: dict[int, bool] = {}
        self.ran: set[int] = set()
        self._ends: list[asyncio.Event] = []
        self.tasks: list[asyncio.Task[None]] = []

    def begin(self, place: int, *, alone: bool) -> None:
        self._ends.append(asyncio.Event())
        self.tasks.append(asyncio.create_task(self._run(len(self.tasks), self.works[place], alone)))

    async def _run(self, number: int, work: EngineWork, alone: bool) -> None:
        async with work.alone() if alone else work.turns.turn(alone=False):
            self.running[number] = alone
            self.ran.add(number)
            try:
                await self._ends[number].wait()
            finally:
                del self.running[number]

    def end(self, which: int) -> None:
        if self.running:
            self._ends[[*self.running][which % len(self.running)]].set()

    def cancel(self, which: int) -> None:
        if self.tasks:
            self.tasks[which % len(self.tasks)].cancel()

    async def settle(self) -> None:
        for _ in range(12):
            await asyncio.sleep(0)
        assert len(self.running) < 2 or not any(self.running.values()), "one that runs alone does not"


def _never(*_: object) -> Any:
    raise AssertionError


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(0, FRONT_ENDS)),
        st.tuples(st.just("begin alone"), st.integers(0, FRONT_ENDS)),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("deliver"), st.integers(0, 2 * FRONT_ENDS - 1)),
        st.tuples(st.just("deliver all"), st.just(0)),
    ),
    max_size=40,
)


@given(OPERATIONS)
def test_in_any_order_nothing_runs_beside_what_runs_alone_and_everything_has_its_turn(
    operations: list[tuple[str, int]],
) -> None:
    asyncio.run(_run(operations))


async def _run(operations: list[tuple[str, int]]) -> None:
    there = Processes()
    for what, which in operations:
        match what:
            case "begin" | "begin alone":
                there.begin(which, alone=what == "begin alone")
            case "end":
                there.end(which)
            case "cancel":
                there.cancel(which)
            case "deliver":
                there.wires[which].deliver()
            case _:
                for wire in there.wires:
                    while wire.deliver():
                        pass
        await there.settle()
    # Nobody asks for more, and what runs ends: all others come, one after another.
    while not all(task.done() for task in there.tasks):
        delivered = [wire.deliver() for wire in there.wires]
        ends = bool(there.running)
        there.end(0)
        await there.settle()
        assert ends or any(delivered) or all(task.done() for task in there.tasks), "they wait for each other"
    assert {number for number, task in enumerate(there.tasks) if not task.cancelled()} <= there.ran
    while any([wire.deliver() for wire in there.wires]):
        await there.settle()
    assert all(work.turns.free(alone=True) for work in there.works)

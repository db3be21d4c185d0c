"""Who runs alone runs alone over all processes that ask one engine, whatever happens in which order."""

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
from gateway.engines.host.turns import Pauses
from gateway.engines.host.work import EngineWork
from gateway.engines.simulated import SimulatedEngine

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
        for _ in range(FRONT_ENDS):
            work = EngineWork(SimulatedEngine())
            front = _FrontEnd(_never, engine._paused, sharing)
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


def _never() -> Any:
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

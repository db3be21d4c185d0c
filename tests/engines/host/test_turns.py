"""Who runs alone runs with nobody else, and comes first."""

from __future__ import annotations

import asyncio

from gateway.engines.host.turns import Turns


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

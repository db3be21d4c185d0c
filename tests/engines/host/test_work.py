"""What the engine does for one gateway: counted, kept apart from others', and ended with it."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from gateway.engines.host.messages import (
    Aborted,
    Begun,
    Generate,
    Generated,
    GenerationFailed,
    GetMetrics,
    Held,
    Metrics,
)
from gateway.engines.host.work import EngineWork, GatewayWork, Turns
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from tests.engines.host.pairs import Faulty, request

FAST = Script(first_token_s=0, token_s=0, rules=(Rule(match="endless", repeat=1_000), Rule("bad", fail_after=1)))


async def test_generations_and_tokens_are_counted_for_all() -> None:
    engine = SimulatedEngine(FAST)
    await engine.start()
    work = EngineWork(engine)
    said: list[object] = []
    changes: list[int] = []
    one = GatewayWork(work, said.append, ids="1:", on_change=lambda: changes.append(work.generations))
    two = GatewayWork(work, said.append, ids="2:")
    one.heard(Generate(1, request("a word")))
    two.heard(Generate(1, request("endless")))
    assert (len(one), len(two), work.activity().generations) == (1, 1, 2)
    while len(one):
        await asyncio.sleep(0)
    # Two that began, one that ended, at least its three tokens.
    assert work.activity().progress >= 6
    assert changes == [1 + 1 - 1, 1]
    two.heard(Aborted(1))
    while len(two):
        await asyncio.sleep(0)
    assert work.activity().generations == 0
    assert [m.event.text for m in said if isinstance(m, Generated)][:1] == ["[de]"]


async def test_the_end_of_one_is_not_that_of_others() -> None:
    engine = SimulatedEngine(FAST)
    await engine.start()
    work = EngineWork(engine)
    one, two = (GatewayWork(work, lambda _: None) for _ in range(2))
    for gateway in (one, two):
        gateway.heard(Generate(1, request("endless")))
        gateway.heard(Generate(2, request("endless")))
    await one.close()
    await asyncio.sleep(0)
    assert (len(one), len(two), work.activity().generations) == (0, 2, 2)
    await two.close()


async def test_waiting_behind_a_lone_text_is_told_held() -> None:
    engine = SimulatedEngine(FAST)
    await engine.start()
    work = EngineWork(engine)
    said: list[object] = []
    one, two = GatewayWork(work, said.append, ids="1:"), GatewayWork(work, said.append, ids="2:")
    one.heard(Generate(1, request("most need no message")))
    while len(one):
        await asyncio.sleep(0)
    assert {type(message) for message in said} == {Generated}
    said.clear()
    one.heard(Generate(2, replace(request("endless"), alone=True)))
    two.heard(Generate(3, request("another one's")))
    two.heard(Generate(4, replace(request("endless"), alone=True)))
    while len(said) < 4:
        await asyncio.sleep(0)
    assert said[:3] == [Begun(2), Held(3), Held(4)]
    # Another one that is to run alone comes next, and then what waits.
    one.heard(Aborted(2))
    while Begun(4) not in said:
        await asyncio.sleep(0)
    assert Begun(3) not in said
    two.heard(Aborted(4))
    while Begun(3) not in said:
        await asyncio.sleep(0)
    await two.close()


async def test_with_an_engine_that_is_dead_nothing_begins() -> None:
    engine = SimulatedEngine(FAST)
    await engine.start()
    said: list[object] = []
    gateway = GatewayWork(EngineWork(engine), said.append)
    engine.fail("it was told to")
    gateway.heard(Generate(1, request("late")))
    gateway.heard(Generate(2, replace(request("late and alone"), alone=True)))
    while len(gateway):
        await asyncio.sleep(0)
    assert [type(message) for message in said] == [Held, GenerationFailed, Held, GenerationFailed]


async def test_failures_are_told_and_metrics_given() -> None:
    failures: list[bool] = []
    engine = Faulty(FAST)
    await engine.start()
    work = EngineWork(engine, on_failure=lambda: failures.append(True))
    said: list[object] = []
    gateway = GatewayWork(work, said.append)
    gateway.heard(Generate(1, request("bad")))
    gateway.heard(Generate(2, request("odd")))
    gateway.heard(GetMetrics(3, ["a"]))
    while len(gateway) or gateway._tasks:
        await asyncio.sleep(0)
    failed = {m.number: m.message for m in said if isinstance(m, GenerationFailed)}
    assert failed[1] == "The script says that this text fails."
    assert "ZeroDivisionError" in failed[2]
    assert failures == [True]
    assert Metrics(3, b"asked for a") in said


# ---------------------------------------------------------------- running alone


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


async def test_lone_turn_waits_for_running_and_precedes_new() -> None:
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


async def test_cancelled_turn_blocks_no_other() -> None:
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

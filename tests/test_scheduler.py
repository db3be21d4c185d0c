"""Admission: bounded, fair between meetings, and every place is given back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from gateway.errors import Draining, EngineFailed, EngineUnavailable, Overloaded
from gateway.events import (
    EngineCapacity,
    EngineHealth,
    EngineProfile,
    EngineState,
    FinishReason,
    TokenEvent,
    TranslationRequest,
)
from gateway.scheduler import Scheduler, Ticket


class HandEngine:
    """An engine that generates when the test says so; records the order in which generations began."""

    def __init__(self, max_running: int = 1) -> None:
        self.begun: list[str] = []
        self.state = EngineState.READY
        self.running = 0
        self._max_running = max_running
        self._go: dict[str, asyncio.Event] = {}

    def let(self, request_id: str) -> None:
        self._go.setdefault(request_id, asyncio.Event()).set()

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def generate(self, request: TranslationRequest) -> AsyncGenerator[TokenEvent, None]:
        self.begun.append(request.id)
        self.running += 1
        try:
            yield TokenEvent("a", 1)
            await self._go.setdefault(request.id, asyncio.Event()).wait()
            if request.text == "bad":
                raise EngineFailed("bad text")
            yield TokenEvent("b", 1, FinishReason.STOP)
        finally:
            self.running -= 1

    def health(self) -> EngineHealth:
        return EngineHealth(self.state, "because")

    def capacity(self) -> EngineCapacity:
        return EngineCapacity(self._max_running, self.running, 0)

    def profile(self) -> EngineProfile:
        return EngineProfile("m", "f", ("en", "ja"))


def request(request_id: str, text: str = "x") -> TranslationRequest:
    return TranslationRequest(id=request_id, text=text, source="en", target="ja")


async def consume(ticket: Ticket) -> str:
    return "".join([event.text async for event in ticket.stream()])


async def spin(until: object) -> None:
    """Let other tasks run until the condition holds; the test's timeout is the bound."""
    while not until():  # type: ignore[operator]
        await asyncio.sleep(0)


async def test_meetings_take_turns() -> None:
    engine = HandEngine(max_running=1)
    scheduler = Scheduler(engine, max_waiting=100, lookahead=0)
    busy = scheduler.admit("busy", [request(f"busy{n}") for n in range(5)])
    lone = scheduler.admit("lone", [request("lone")])
    tasks = [asyncio.ensure_future(consume(ticket)) for ticket in (*busy, *lone)]
    for name in ("busy0", "busy1", "lone", "busy2", "busy3", "busy4"):
        engine.let(name)
    assert await asyncio.gather(*tasks) == ["ab"] * 6
    # One slot's worth of work at most before the other meeting: busy0 ran already, then they alternate.
    assert engine.begun == ["busy0", "busy1", "lone", "busy2", "busy3", "busy4"]


async def test_capacity_and_lookahead_bound_what_the_engine_gets() -> None:
    engine = HandEngine(max_running=2)
    scheduler = Scheduler(engine, max_waiting=100, lookahead=1)
    tickets = scheduler.admit("m", [request(f"r{n}") for n in range(5)])
    tasks = [asyncio.ensure_future(consume(ticket)) for ticket in tickets]
    await spin(lambda: len(engine.begun) == 3)
    assert (scheduler.running, scheduler.waiting) == (3, 2)
    engine.let("r1")
    await spin(lambda: len(engine.begun) == 4)
    for n in range(5):
        engine.let(f"r{n}")
    await asyncio.gather(*tasks)
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_full_is_said_at_once_and_nothing_of_the_call_is_admitted() -> None:
    scheduler = Scheduler(HandEngine(max_running=1), max_waiting=4, lookahead=0)
    scheduler.admit("m", [request("a"), request("b")])
    with pytest.raises(Overloaded) as caught:
        scheduler.admit("m", [request("c"), request("d")])
    assert caught.value.retry_after_ms
    assert (scheduler.running, scheduler.waiting) == (1, 1)
    scheduler.admit("m", [request("c")])


async def test_one_meeting_may_not_fill_the_queue() -> None:
    scheduler = Scheduler(HandEngine(max_running=1), max_waiting=4, lookahead=0)
    scheduler.admit("greedy", [request(f"g{n}") for n in range(3)])  # one runs, two wait: half of the queue
    with pytest.raises(Overloaded, match="share is 2"):
        scheduler.admit("greedy", [request("g3")])
    scheduler.admit("other", [request("o1"), request("o2")])
    with pytest.raises(Overloaded, match="limit is 4"):
        scheduler.admit("third", [request("t1")])


async def test_a_waiting_ticket_can_be_withdrawn() -> None:
    engine = HandEngine(max_running=1)
    scheduler = Scheduler(engine, max_waiting=10, lookahead=0)
    first, second, third = scheduler.admit("m", [request("a"), request("b"), request("c")])
    second.withdraw()
    second.withdraw()
    assert scheduler.waiting == 1
    engine.let("a")
    engine.let("c")
    await consume(first)
    await consume(third)
    assert engine.begun == ["a", "c"]


async def test_a_ticket_whose_turn_came_gives_the_turn_on_when_withdrawn() -> None:
    engine = HandEngine(max_running=1)
    scheduler = Scheduler(engine, max_waiting=10, lookahead=0)
    first, second = scheduler.admit("m", [request("a"), request("b")])
    first.withdraw()
    engine.let("b")
    assert await consume(second) == "ab"


@pytest.mark.parametrize("stage", ["waiting", "running"])
async def test_a_cancelled_reader_gives_its_place_back_and_ends_the_generation(stage: str) -> None:
    engine = HandEngine(max_running=1)
    scheduler = Scheduler(engine, max_waiting=10, lookahead=0)
    tickets = scheduler.admit("m", [request("a"), request("b")])
    tasks = [asyncio.ensure_future(consume(ticket)) for ticket in tickets]
    await spin(lambda: engine.begun == ["a"])
    victim, other = tasks if stage == "running" else reversed(tasks)
    victim.cancel()
    await asyncio.wait([victim])
    engine.let("a")
    engine.let("b")
    assert await other == "ab"
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_many_cancelled_in_one_moment_leave_nothing_behind() -> None:
    engine = HandEngine(max_running=2)
    scheduler = Scheduler(engine, max_waiting=20, lookahead=0)
    tickets = scheduler.admit("m", [request(f"r{n}") for n in range(9)])
    tasks = [asyncio.ensure_future(consume(ticket)) for ticket in tickets]
    await spin(lambda: len(engine.begun) == 2)
    for task in tasks[:8]:
        task.cancel()
    engine.let("r8")
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes[:8]] == [asyncio.CancelledError] * 8
    assert outcomes[8] == "ab"
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_a_failing_generation_fails_alone() -> None:
    engine = HandEngine(max_running=2)
    scheduler = Scheduler(engine, max_waiting=10)
    bad, good = scheduler.admit("m", [request("a", "bad"), request("b")])
    tasks = [asyncio.ensure_future(consume(ticket)) for ticket in (bad, good)]
    engine.let("a")
    engine.let("b")
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], EngineFailed)
    assert results[1] == "ab"
    assert scheduler.running == 0


async def test_drain_refuses_new_work_and_waits_for_the_old() -> None:
    engine = HandEngine()
    scheduler = Scheduler(engine, max_waiting=10)
    (ticket,) = scheduler.admit("m", [request("a")])
    task = asyncio.ensure_future(consume(ticket))
    draining = asyncio.ensure_future(scheduler.drain(60))
    await spin(lambda: scheduler.draining)
    with pytest.raises(Draining):
        scheduler.admit("m", [request("b")])
    assert not draining.done()
    engine.let("a")
    assert await draining is True
    assert await task == "ab"


async def test_drain_gives_up_at_its_deadline() -> None:
    engine = HandEngine(max_running=1)
    scheduler = Scheduler(engine, max_waiting=10, lookahead=0)
    tickets = scheduler.admit("m", [request("running"), request("waiting"), request("never collected")])
    tasks = [asyncio.ensure_future(ticket.collect(lambda _: None)) for ticket in tickets[:2]]
    await spin(lambda: engine.begun == ["running"])
    assert await scheduler.drain(0) is False
    for outcome in await asyncio.gather(*tasks, tickets[2].collect(lambda _: None), return_exceptions=True):
        assert isinstance(outcome, Draining)
    assert (scheduler.running, scheduler.waiting, engine.running) == (0, 0, 0)


async def test_an_engine_that_is_not_ready_admits_nothing() -> None:
    engine = HandEngine()
    engine.state = EngineState.STARTING
    with pytest.raises(EngineUnavailable, match="because"):
        Scheduler(engine, max_waiting=10).admit("m", [request("a")])


async def test_timings_follow_the_stages() -> None:
    now = [0.0]
    engine = HandEngine()
    scheduler = Scheduler(engine, max_waiting=10, lookahead=0, clock=lambda: now[0])
    first, second = scheduler.admit("m", [request("a"), request("b")])
    now[0] = 1.0
    stream = first.stream()
    await anext(stream)
    now[0] = 3.0
    engine.let("a")
    assert [event.text async for event in stream] == ["b"]
    assert (first.admitted_s, first.started_s, first.first_token_s, first.finished_s) == (0.0, 0.0, 1.0, 3.0)
    assert second.started_s == 3.0
    assert first.tokens == 2

"""Which state of an engine may follow which, and who is told."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from gateway.domain.engine import EngineHealth, EngineState
from gateway.domain.errors import EngineRestarting, EngineUnavailable
from gateway.engines.lifecycle import Generation, Generations, Lifecycle
from tests.clocks import swiftly

STARTING, READY, RESTARTING, FAILED, STOPPED = EngineState
ROADS = {STARTING: (), READY: (READY,), RESTARTING: (READY, RESTARTING), FAILED: (FAILED,), STOPPED: (STOPPED,)}


def in_state(state: EngineState, *, tried_again: bool = False) -> Lifecycle:
    lifecycle = Lifecycle(tried_again=tried_again)
    for step in ROADS[state]:
        assert lifecycle.become(step, "on the way")
    assert lifecycle.state is state
    return lifecycle


@pytest.mark.parametrize(("before", "after"), list(itertools.product(EngineState, EngineState)))
def test_what_may_follow(before: EngineState, after: EngineState) -> None:
    allowed = {
        *((STARTING, state) for state in (STARTING, READY, FAILED, STOPPED)),
        *((READY, state) for state in (RESTARTING, FAILED, STOPPED)),
        *((RESTARTING, state) for state in (RESTARTING, READY, FAILED, STOPPED)),
        (FAILED, STOPPED),
    }
    lifecycle = in_state(before)
    health = lifecycle.health
    assert lifecycle.become(after, "new") is ((before, after) in allowed)
    assert lifecycle.health == (EngineHealth(after, "new") if (before, after) in allowed else health)


def test_a_supervised_engine_that_failed_is_tried_again() -> None:
    lifecycle = in_state(FAILED, tried_again=True)
    assert lifecycle.become(FAILED, "again")
    assert not lifecycle.become(RESTARTING)
    assert lifecycle.become(READY)


def test_change_of_state_is_told_once() -> None:
    told: list[EngineHealth] = []
    lifecycle = Lifecycle(on_change=told.append)
    lifecycle.become(STARTING, "importing")
    lifecycle.become(READY)
    lifecycle.become(FAILED, "died")
    lifecycle.become(FAILED, "died again")
    assert told == [EngineHealth(READY), EngineHealth(FAILED, "died")]


def test_a_listener_that_raises_does_not_undo_the_change() -> None:
    def broken(_: EngineHealth) -> None:
        raise RuntimeError

    lifecycle = Lifecycle(on_change=broken)
    assert lifecycle.become(READY)
    assert lifecycle.state is READY


def test_only_a_ready_engine_takes_work() -> None:
    in_state(READY).check()
    for state in (STARTING, FAILED, STOPPED):
        with pytest.raises(EngineUnavailable, match="not ready"):
            in_state(state).check()
    with pytest.raises(EngineRestarting):
        in_state(RESTARTING).check()


async def wait_in(generation: Generation) -> None:
    try:
        with generation:
            await asyncio.Event().wait()
    finally:
        generation.close()


async def waiting(generations: Generations) -> asyncio.Task[None]:
    task = asyncio.create_task(wait_in(generation := generations.open()))
    while not generation.waiting:
        await asyncio.sleep(0)
    return task


async def test_waiters_are_woken_with_the_first_reason() -> None:
    generations = Generations()
    tasks = [await waiting(generations) for _ in range(3)]
    assert len(generations) == 3
    generations.end("first")
    generations.end("second")
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, EngineUnavailable)
        assert outcome.message == "first"
    assert not any(task.cancelling() for task in tasks)
    assert len(generations) == 0
    with pytest.raises(EngineUnavailable, match="first"):
        generations.open()


async def test_running_task_is_told_at_its_next_wait() -> None:
    generations = Generations()
    generation = generations.open()
    assert not generation.waiting
    generations.end("over")
    with pytest.raises(EngineUnavailable, match="over"), generation:
        await asyncio.sleep(0)


async def test_end_from_within_a_wait_leaves_no_cancellation() -> None:
    generations = Generations()
    with generations.open():
        generations.end("over")
    await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_cancellation_by_other_code_passes() -> None:
    generations = Generations()
    task = await waiting(generations)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    # Also when both come at once, in either order.
    for end_first in (True, False):
        generations = Generations()
        task = await waiting(generations)
        for end in (end_first, not end_first):
            if end:
                generations.end("over")
            else:
                task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


@pytest.mark.parametrize("inner_first", [True, False])
async def test_ends_within_ends_and_a_deadline_around_them(inner_first: bool) -> None:
    inner, outer = Generations(), Generations()
    around = outer.open()

    async def run() -> None:
        async with asyncio.timeout(60):
            with around, inner.open():
                await asyncio.Event().wait()

    task = asyncio.create_task(run())
    while not around.waiting:
        await asyncio.sleep(0)
    for generations in (inner, outer) if inner_first else (outer, inner):
        generations.end("over")
    with pytest.raises(EngineUnavailable):
        await task
    assert not task.cancelling()


async def test_a_deadline_around_it_stays_a_deadline() -> None:
    generations = Generations()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await wait_in(generations.open())
    assert len(generations) == 0


async def test_cancellation_without_caller_is_engine_unavailable() -> None:
    socket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    socket.cancel()
    with pytest.raises(EngineUnavailable, match="ended this generation"), Generations().open():
        await socket


async def test_errors_of_the_engine_pass() -> None:
    with pytest.raises(ValueError, match="bad"), Generations().open():
        raise ValueError("bad")


@swiftly
async def test_only_a_token_ends_the_silence() -> None:
    generations = Generations()
    generations.heard()
    await asyncio.sleep(5)
    assert generations.silent_s == 0.0
    first = await waiting(generations)
    await asyncio.sleep(2)
    # One that comes and goes is no sign of life.
    second = await waiting(generations)
    second.cancel()
    await asyncio.wait([second])
    assert round(generations.silent_s) == 2
    generations.heard()
    await asyncio.sleep(1)
    assert round(generations.silent_s) == 1
    # Nobody waits: there is nothing to be heard.
    first.cancel()
    await asyncio.wait([first])
    assert generations.silent_s == 0.0

"""Which state of an engine may follow which, and who is told."""

from __future__ import annotations

import itertools

import pytest

from gateway.domain.engine import EngineHealth, EngineState
from gateway.domain.errors import EngineRestarting, EngineUnavailable
from gateway.engines.lifecycle import Lifecycle

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

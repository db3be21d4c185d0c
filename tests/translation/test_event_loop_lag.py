"""How late the event loop is: a mean over time that rises while it is full and falls when it has time again."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.translation.event_loop_lag import EventLoopLag


@given(late_s=st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_the_mean_lies_between_none_and_the_greatest(late_s: list[float]) -> None:
    lag = EventLoopLag()
    for each_s in late_s:
        lag.late(each_s)
        assert 0 <= lag.mean_s <= max(late_s) * (1 + 1e-9)


def test_it_is_what_it_was_all_along_and_forgets_what_is_over() -> None:
    lag = EventLoopLag()
    for _ in range(100):
        lag.late(0.02)
    assert lag.mean_s == pytest.approx(0.02, rel=0.01)
    for _ in range(100):
        lag.late(0.0)
    assert lag.mean_s < 0.001


def test_one_second_of_standstill_weighs_a_second_not_one_look_of_many() -> None:
    lag = EventLoopLag()
    for _ in range(20):
        lag.late(0.0)
    lag.late(1.0)
    assert lag.mean_s > 0.5


async def test_a_loop_that_is_kept_from_its_work_is_late() -> None:
    lag = EventLoopLag()
    with lag:
        await asyncio.sleep(0)
        time.sleep(0.3)  # noqa: ASYNC251 -- somebody's long computation
        while not lag.mean_s:
            await asyncio.sleep(0)
    assert lag.mean_s > 0.01


async def test_it_looks_no_more_once_it_is_left() -> None:
    lag = EventLoopLag()
    with lag:
        pass
    time.sleep(0.1)  # noqa: ASYNC251 -- a look would be due
    for _ in range(3):
        await asyncio.sleep(0)
    assert lag.mean_s == 0

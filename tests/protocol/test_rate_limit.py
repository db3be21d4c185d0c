"""The bucket: a burst at once, then the rate, by whatever clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocol.rate_limit import TokenBucket


def test_burst_comes_back_at_the_rate() -> None:
    bucket = TokenBucket(rate=10, burst=3)
    assert [bucket.take(100.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.1]
    assert bucket.take(100.125) == 0.0
    assert bucket.take(100.125) > 0


def test_announced_wait_is_enough() -> None:
    bucket = TokenBucket(rate=4, burst=8)
    assert bucket.take(0.0, 8) == 0.0
    wait_s = bucket.take(0.0, 6)
    assert wait_s == 1.5
    assert bucket.take(wait_s, 6) == 0.0


def test_a_refusal_costs_nothing() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    assert bucket.take(0.0) == 0.0
    assert [bucket.take(0.5) for _ in range(3)] == [0.5] * 3


def test_cost_above_burst_is_capped() -> None:
    bucket = TokenBucket(rate=1, burst=5)
    assert bucket.take(0.0, cost=10) == 0.0
    assert bucket.take(0.0, cost=10) == 5.0
    assert bucket.take(5.0, cost=10) == 0.0


def test_pause_gathers_at_most_the_burst() -> None:
    bucket = TokenBucket(rate=10, burst=2)
    bucket.take(0.0)
    assert [bucket.take(1e6) == 0.0 for _ in range(3)] == [True, True, False]


def test_clock_that_goes_back_changes_nothing() -> None:
    bucket = TokenBucket(rate=1, burst=2)
    assert [bucket.take(now_s) for now_s in (10.0, 9.0)] == [0.0, 0.0]
    assert bucket.take(9.0) == pytest.approx(1.0)


@given(st.lists(st.floats(0, 2), max_size=60))
def test_never_more_than_burst_plus_rate_times_time(gaps: list[float]) -> None:
    bucket, now_s, admitted = TokenBucket(rate=5, burst=4), 0.0, 0
    for gap in gaps:
        now_s += gap
        admitted += bucket.take(now_s) == 0
        assert admitted <= 4 + 5 * now_s + 1e-6

"""Seats are divided so that nobody gets more while somebody who wants less is kept waiting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engines.host.seats import fair_shares, grants

DEMANDS = st.lists(st.integers(0, 50), max_size=12)
SEATS = st.integers(1, 64)


@pytest.mark.parametrize(
    ("demands", "shares"),
    [
        ([100], [16]),
        ([100, 100], [8, 8]),
        ([3, 100], [3, 13]),
        ([0, 100], [0, 16]),
        ([100, 5, 100], [6, 5, 5]),
        ([9] * 20, [1] * 20),
        ([], []),
    ],
)
def test_examples_of_sixteen_seats(demands: list[int], shares: list[int]) -> None:
    assert fair_shares(demands, 16) == shares


@given(DEMANDS, SEATS)
def test_shares_are_max_min_fair(demands: list[int], seats: int) -> None:
    shares = fair_shares(demands, seats)
    wanting = sum(demand > 0 for demand in demands)
    assert all(min(demand, 1) <= share <= demand for demand, share in zip(demands, shares, strict=True))
    # All seats are used if they are wanted, and never more, but for one for each.
    assert sum(shares) <= max(seats, wanting)
    assert sum(shares) >= min(seats, sum(demands))
    # Whoever gets less than they want gets as much as anybody, but for what cannot be divided.
    kept_short = [share for demand, share in zip(demands, shares, strict=True) if share < demand]
    if kept_short:
        assert max(shares) <= min(kept_short) + 1


@given(DEMANDS, SEATS)
def test_grants_leave_room_for_more_and_use_no_more(demands: list[int], seats: int) -> None:
    granted, shares = grants(demands, seats), fair_shares(demands, seats)
    assert all(1 <= grant <= max(seats, share) for grant, share in zip(granted, shares, strict=True))
    assert [min(demand, grant) for demand, grant in zip(demands, granted, strict=True)] == shares


def test_one_that_has_been_idle_may_begin_with_its_share_at_once() -> None:
    assert grants([0, 100], 16) == [8, 16]
    assert grants([0, 3], 16) == [13, 16]
    assert grants([0], 16) == [16]

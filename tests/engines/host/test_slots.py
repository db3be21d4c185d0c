"""Slots are divided so that nobody gets more while somebody who wants less is kept waiting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engines.host.slots import Wanted, fair_shares, grants

NUMBERS = st.integers(0, 50)
DEMANDS = st.lists(NUMBERS, max_size=12)
WANTED = st.lists(st.builds(Wanted, NUMBERS, NUMBERS), max_size=12)
SEATS = st.integers(1, 64)


def used(wanted: list[Wanted], granted: list[int]) -> list[int]:
    return [min(each.finals + each.others, grant) for each, grant in zip(wanted, granted, strict=True)]


@pytest.mark.parametrize(
    ("demands", "shares"),
    [
        ([100], [16]),
        ([100, 100], [8, 8]),
        ([3, 100], [3, 13]),
        ([0, 100], [0, 16]),
        ([100, 5, 100], [6, 5, 5]),
        ([9] * 20, [1] * 16 + [0] * 4),
        ([], []),
    ],
)
def test_examples_of_sixteen_slots(demands: list[int], shares: list[int]) -> None:
    assert fair_shares(demands, 16) == shares


@given(DEMANDS, SEATS)
def test_shares_are_max_min_fair(demands: list[int], slots: int) -> None:
    shares = fair_shares(demands, slots)
    assert all(0 <= share <= demand for demand, share in zip(demands, shares, strict=True))
    # All slots are used if they are wanted, and never more.
    assert sum(shares) == min(slots, sum(demands))
    # Whoever gets less than they want gets as much as anybody, but for what cannot be divided.
    kept_short = [share for demand, share in zip(demands, shares, strict=True) if share < demand]
    if kept_short:
        assert max(shares) <= min(kept_short) + 1


@given(WANTED, SEATS)
def test_grants_never_exceed_slots(wanted: list[Wanted], slots: int) -> None:
    granted = grants(wanted, slots)
    assert all(1 <= grant <= slots for grant in granted)
    in_use = used(wanted, granted)
    wanting = sum(each != Wanted() for each in wanted)
    # But for the one that everybody may use.
    assert sum(in_use) <= slots + sum(use == 1 for use in in_use)
    assert sum(in_use) >= min(slots, sum(each.finals + each.others for each in wanted))
    assert sum(use > 0 for use in in_use) == wanting


@given(WANTED, SEATS)
def test_finals_get_what_they_would_get_without_all_others(wanted: list[Wanted], slots: int) -> None:
    finals = fair_shares([each.finals for each in wanted], slots)
    assert all(grant >= share for grant, share in zip(grants(wanted, slots), finals, strict=True))


@pytest.mark.parametrize(
    ("wanted", "granted"),
    [
        # Whoever has been idle may begin with its share at once.
        ([Wanted()], [16]),
        ([Wanted(), Wanted(0, 100)], [8, 16]),
        ([Wanted(), Wanted(3)], [13, 16]),
        # Finals come before others, whoever's they are.
        ([Wanted(0, 100), Wanted(100, 100)], [1, 16]),
        ([Wanted(0, 100), Wanted(6, 100)], [5, 11]),
        ([Wanted(4, 100), Wanted(100)], [4, 12]),
    ],
)
def test_examples_of_grants(wanted: list[Wanted], granted: list[int]) -> None:
    assert grants(wanted, 16) == granted

"""The arithmetic on what a load test measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.results import first_error, nearest_rank


@pytest.mark.parametrize(
    ("quantile", "expected"),
    [(0.0, 1), (0.01, 1), (0.5, 50), (0.501, 51), (0.99, 99), (0.991, 100), (1.0, 100)],
)
def test_the_nearest_rank_of_one_to_a_hundred(quantile: float, expected: float) -> None:
    assert nearest_rank([float(n) for n in range(100, 0, -1)], quantile) == expected


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.floats(0, 1))
def test_a_percentile_is_a_value_that_was_measured_and_covers_its_share(
    values: list[float], quantile: float
) -> None:
    found = nearest_rank(values, quantile)
    assert found in values
    assert sum(value <= found for value in values) >= quantile * len(values) * (1 - 1e-9)


def test_of_a_group_of_errors_the_first_one_is_told() -> None:
    inner = ExceptionGroup("of tasks", [KeyError("first"), ValueError("then")])
    assert str(first_error(ExceptionGroup("of more", [inner, OSError()]))) == "'first'"
    alone = ValueError("alone")
    assert first_error(alone) is alone

"""The arithmetic on what a load test measured."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.results import first_error, nearest_rank, until_it_ends


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


# ---------------------------------------------------------------- an early end


async def test_what_was_measured_before_the_time_was_up_is_kept() -> None:
    assert await until_it_ends(asyncio.sleep(0), 5, lambda: True) == ""
    why = await until_it_ends(asyncio.Event().wait(), 0.01, lambda: False)  # type: ignore[arg-type]
    assert "--time-limit-s" in why


@pytest.mark.parametrize("something", [True, False])
async def test_an_interruption_keeps_what_was_measured(something: bool) -> None:
    async def interrupted() -> str:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        why = await until_it_ends(asyncio.sleep(5), 5, lambda: something)
        # What is left to be done is not cancelled.
        await asyncio.sleep(0)
        return why

    task = asyncio.create_task(interrupted())
    if something:
        assert await task == "It was interrupted."
    else:
        with pytest.raises(asyncio.CancelledError):
            await task

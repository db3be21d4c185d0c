"""The searches, played against synthetic systems."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadtest.capacity.search import Bounds, Ended, Found, Run, capacity_search, given_loads

System = Callable[[Run], bool | Ended]


def play(search: Generator[Run, bool | Ended, Any], system: System) -> tuple[Any, list[Run]]:
    """The answer of a search, and all runs that it asked for."""
    runs: list[Run] = []
    run = next(search)
    while True:
        runs.append(run)
        try:
            run = search.send(system(run))
        except StopIteration as stop:
            return stop.value, runs


def monotone(limit: float) -> System:
    """Keeps the objective up to a load."""
    return lambda run: run.load <= limit


def noisy(limit: float, seed: int) -> System:
    """Says anything within a factor of two of its limit."""
    rng = random.Random(seed)
    return lambda run: run.load <= limit * rng.uniform(0.5, 2)


# ---------------------------------------------------------------- capacity


@pytest.mark.parametrize(
    ("start", "bounds", "limit", "loads", "answer"),
    [
        (2, {}, 11, [2, 4, 8, 16, 11, 13, 12, 11], Found(11, 12, Ended.CONFIRMED, 8)),
        # The last run is kept for the confirmation.
        (2, {"runs": 5}, 11, [2, 4, 8, 16, 8], Found(8, 16, Ended.CONFIRMED, 5)),
        (64, {}, 3, [64, 32, 16, 8, 4, 2, 3, 3], Found(3, 4, Ended.CONFIRMED, 8)),
        (4, {}, 0.5, [4, 2, 1], Found(None, 1, Ended.NOTHING, 3)),
        # The largest load that is allowed is confirmed, too.
        (4, {"high": 10}, 1_000, [4, 8, 10, 10], Found(10, None, Ended.CEILING, 4)),
    ],
)
def test_a_capacity_is_doubled_to_bisected_and_confirmed(
    start: float, bounds: dict[str, Any], limit: float, loads: list[float], answer: Found
) -> None:
    found, runs = play(capacity_search(start, Bounds(whole=True, **bounds)), monotone(limit))
    assert [run.load for run in runs] == loads
    assert found == answer
    assert [run.long for run in runs] == [False] * (len(runs) - 1) + [found.ended.confirmed]


def test_a_confirmation_that_fails_lowers_the_answer() -> None:
    found, _ = play(capacity_search(8, Bounds(whole=True)), lambda run: run.load <= (7 if run.long else 11))
    assert (found.capacity, found.at_most, found.ended) == (7, 8, Ended.CONFIRMED)


def test_one_unlucky_run_does_not_make_the_answer_too_small() -> None:
    def unlucky(run: Run) -> bool:
        return run.load <= 12 and (run.long or run.load != 9)

    bounds = Bounds(whole=True, runs=24)
    assert play(capacity_search(9, bounds), unlucky)[0].capacity == 8
    both = Bounds(whole=True, runs=24, both_sides=True)
    assert play(capacity_search(9, both), unlucky)[0].capacity == 12


def test_what_is_clearly_worse_is_given_up_early() -> None:
    found, runs = play(capacity_search(40, Bounds(whole=True), worth=36), monotone(25))
    assert found == Found(20, 28, Ended.WORSE, 3)
    assert [run.load for run in runs] == [40, 20, 28]


def test_what_is_nearly_as_good_is_looked_at_closely() -> None:
    found, _ = play(capacity_search(40, Bounds(whole=True), worth=36), monotone(39))
    assert (found.capacity, found.ended) == (39, Ended.CONFIRMED)


@pytest.mark.parametrize("stop", [Ended.TIME, Ended.DRIVER, Ended.FAILED, Ended.INTERRUPTED])
def test_a_search_that_cannot_go_on_tells_why_and_what_it_has(stop: Ended) -> None:
    told: Iterator[bool | Ended] = iter([True, stop])
    found, _ = play(capacity_search(2, Bounds(whole=True)), lambda _run: next(told))
    assert found == Found(2, None, stop, 1)
    assert (found.ended.cut_short, found.ended.confirmed) == (True, False)
    # What was confirmed stays so when the time is up before the load above it gets its second run.
    bounds = Bounds(whole=True, both_sides=True)
    found, runs = play(capacity_search(2, bounds), lambda run: stop if run == Run(3, True) else run.load <= 2)
    assert (found.capacity, found.ended) == (2, Ended.CONFIRMED)
    assert runs[-1] == Run(3, long=True)


@given(limit=st.integers(1, 500), start=st.integers(1, 500))
def test_whole_loads_are_found_within_the_resolution(limit: int, start: int) -> None:
    found, runs = play(capacity_search(start, Bounds(high=1_000, whole=True, runs=30)), monotone(limit))
    assert found.ended is Ended.CONFIRMED
    assert found.capacity is not None
    assert found.capacity <= limit < max(found.capacity * 1.05, found.capacity + 1) + 1e-9
    assert found.at_most > limit
    assert len(runs) == found.runs


@given(limit=st.floats(0.2, 5_000), start=st.floats(0.2, 5_000))
def test_rates_are_found_within_the_resolution(limit: float, start: float) -> None:
    found, _ = play(capacity_search(start, Bounds(low=0.1, runs=40)), monotone(limit))
    assert found.ended is Ended.CONFIRMED
    # Loads have three digits.
    assert found.capacity <= limit <= found.capacity * 1.05 * 1.01


@given(
    limit=st.floats(0.01, 2_000),
    seed=st.integers(0, 1_000),
    runs=st.integers(2, 20),
    both=st.booleans(),
    whole=st.booleans(),
)
def test_a_noisy_system_gets_no_more_runs_than_granted(
    limit: float, seed: int, runs: int, both: bool, whole: bool
) -> None:
    bounds = Bounds(high=1_000, whole=whole, runs=runs, both_sides=both)
    found, asked = play(capacity_search(10, bounds), noisy(limit, seed))
    assert len(asked) == found.runs <= runs
    assert all(bounds.low <= run.load <= bounds.high for run in asked)
    if found.ended.confirmed:
        assert any(run.long and run.load == found.capacity for run in asked)
    if found.capacity is not None and found.at_most is not None:
        assert found.capacity < found.at_most


@given(answers=st.lists(st.booleans(), min_size=30, max_size=30), both=st.booleans())
def test_any_answers_at_all_end_the_search(answers: list[bool], both: bool) -> None:
    told = iter(answers)
    bounds = Bounds(whole=True, runs=25, both_sides=both)
    _, asked = play(capacity_search(5, bounds), lambda _run: next(told))
    assert len(asked) <= 25


# ---------------------------------------------------------------- sweep

SWEEP = Bounds(resolution=0.1, confirms=False, past=(1.5, 2.0))


def test_a_sweep_looks_around_the_knee_and_beyond_it() -> None:
    found, runs = play(capacity_search(1, SWEEP), monotone(22))
    assert [run.load for run in runs][:6] == [1, 2, 4, 8, 16, 32]
    assert (found.capacity, found.ended) == (20.7, Ended.COMPLETE)
    # Clearly beyond it, too.
    assert [run.load for run in runs][-2:] == [31, 41.4]
    assert not any(run.long for run in runs)


def test_a_sweep_tells_whether_its_runs_or_its_time_were_used_up() -> None:
    few = replace(SWEEP, runs=3)
    assert play(capacity_search(1, few), monotone(22))[0].ended is Ended.RUNS
    found, _ = play(capacity_search(1, few), lambda run: True if run.load < 4 else Ended.TIME)
    assert (found.capacity, found.ended) == (2, Ended.TIME)


@pytest.mark.parametrize("kept", [{2, 8}, {2}])
def test_the_knee_of_given_loads_is_below_the_first_that_was_lost(kept: set[float]) -> None:
    # By good luck 8 is kept, or because of bad luck at 4 it is not.
    found, runs = play(given_loads([2, 4, 8]), lambda run: run.load in kept)
    assert [run.load for run in runs] == [2, 4, 8]
    assert (found.capacity, found.at_most, found.ended) == (2, 4, Ended.COMPLETE)
    found, _ = play(given_loads([1, 2, 4]), lambda run: True if run.load < 4 else Ended.TIME)
    assert (found.capacity, found.ended) == (2, Ended.TIME)


@pytest.mark.parametrize(
    ("bounds", "limit", "capacity", "loads"),
    [(SWEEP, 0, None, [4, 2, 1]), (replace(SWEEP, high=10), 100, 10, [4, 8, 10])],
)
def test_a_sweep_ends_at_its_bounds(
    bounds: Bounds, limit: float, capacity: float | None, loads: list[float]
) -> None:
    found, runs = play(capacity_search(4, bounds), monotone(limit))
    assert (found.capacity, [run.load for run in runs]) == (capacity, loads)


@given(limit=st.floats(0.01, 2_000), seed=st.integers(0, 1_000), runs=st.integers(2, 20), whole=st.booleans())
def test_a_noisy_sweep_ends(limit: float, seed: int, runs: int, whole: bool) -> None:
    bounds = replace(SWEEP, high=1_000, whole=whole, runs=runs)
    _, asked = play(capacity_search(10, bounds), noisy(limit, seed))
    assert len(asked) <= runs

"""The arithmetic on what a load test measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.results import Round, Route, Spread, nearest_rank, ratios, summarise


def measured(
    route: Route, repetition: int, *, tokens: int = 1_000, elapsed_s: float = 10.0, failed: int = 0
) -> Round:
    return Round(
        route=route,
        in_flight=4,
        repetition=repetition,
        elapsed_s=elapsed_s,
        utterances=20,
        failed=failed,
        tokens=tokens,
        serving_cpu_s=0.5,
        engine_cpu_s=9.0,
        client_cpu_s=0.25 if route is Route.WEBSOCKET else 0.0,
        other_cpu_s=1.0,
        first_token_ms=[10.0 * repetition, 20.0 * repetition],
        total_ms=[100.0, 200.0],
    )


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


def test_a_round_counts_only_what_was_translated() -> None:
    each = measured(Route.DIRECT, 1, failed=5)
    assert each.requests_per_s == 1.5
    assert each.tokens_per_s == 100
    assert each.serving_cpu_s_per_1000_tokens == 0.5


def test_a_summary_has_the_median_the_range_and_percentiles_over_all_repetitions() -> None:
    rounds = [measured(Route.WEBSOCKET, n, tokens=tokens) for n, tokens in ((1, 900), (2, 1_000), (3, 1_400))]
    summary = summarise(rounds)
    assert summary.tokens_per_s == Spread(100, 90, 140)
    assert summary.utterances == 60
    assert (summary.first_token.p50_ms, summary.first_token.p99_ms) == (20, 60)
    assert summary.other_cores.median == 0.1


def test_percentiles_of_nothing_are_unknown() -> None:
    silent = Round(Route.DIRECT, 1, 1, 1.0, 1, 1, 0, 0.1, 0.1, 0.0, 0.0, [], [])
    assert summarise([silent]).first_token.p99_ms is None


def test_each_repetition_is_compared_with_its_neighbour() -> None:
    direct = [measured(Route.DIRECT, 1, tokens=1_000), measured(Route.DIRECT, 2, tokens=500)]
    websocket = [measured(Route.WEBSOCKET, 2, tokens=450), measured(Route.WEBSOCKET, 1, tokens=1_000)]
    assert ratios(direct, websocket) == Spread(0.95, 0.9, 1.0)

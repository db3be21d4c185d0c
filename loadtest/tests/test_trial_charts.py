"""Which charts a report has for which trials, and which trials are one curve."""

from __future__ import annotations

import msgspec
import pytest

from loadtest.tests.made_up_trials import closed_trial, comparison, journey, open_trial, sweep
from loadtest.trial.charts import Group, charts, groups
from loadtest.trial.content import MOST_SERIES, Chart
from loadtest.trial.summary import summaries
from loadtest.trial.values import Objective, Trial


def drawn(trials: list[Trial]) -> dict[str, Chart]:
    told = summaries(trials, Objective())
    return {chart.title: chart for chart in charts(told, trials, Objective())}


def grouped(trials: list[Trial], objective: Objective | None = None) -> list[Group]:
    return groups(summaries(trials, objective or Objective()))


# ---------------------------------------------------------------- groups


def test_trials_that_differ_by_the_rate_alone_are_one_curve_in_order_of_the_rate() -> None:
    (group,) = grouped([open_trial(20, 1, 1), open_trial(5, 1, 1), open_trial(5, 2, 1)])
    assert group.label == "gateway"
    assert group.loads == [5, 20]


def test_the_knee_is_the_last_rate_before_the_objective_was_missed() -> None:
    (group,) = grouped(sweep())
    assert [each.met for each in group.summaries] == [True] * 4 + [False] * 4
    assert group.knee is group.summaries[3]
    assert group.knee.offered_per_s == 60
    (missed,) = grouped(sweep(), Objective(first_token_ms=1.0))
    assert missed.knee is None


def test_of_a_load_that_was_tried_again_the_longer_trial_is_shown() -> None:
    again = msgspec.structs.replace(open_trial(20, 1, 2, seconds=20), name="gateway at 20/s, confirmed")
    (group,) = grouped([open_trial(5, 1, 1), again, open_trial(20, 1, 1)])
    assert [each.name for each in group.summaries] == ["gateway at 5/s", "gateway at 20/s, confirmed"]


def test_systems_and_kinds_of_load_are_curves_of_their_own() -> None:
    found = grouped(journey())
    assert [(group.label, group.closed) for group in found] == [
        ("one worker", True),
        ("two workers", True),
        ("static batches", True),
        ("gateway", True),
        ("gateway in meetings", False),
    ]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("5/s", "gateway"),
        ("12 meetings, confirmation", "gateway"),
        ("16 sequences, 1 meeting", "16 sequences"),
        ("vllm-serve, 256 in flight", "vllm-serve"),
        ("gateway, 64 sequences, uniform data: 25 at a time", "gateway, 64 sequences, uniform data"),
        ("one worker: 3.5 a second", "one worker"),
        ("meetings", "meetings"),
    ],
)
def test_a_curve_is_called_what_its_trials_are_called_without_their_loads(name: str, label: str) -> None:
    (group,) = grouped([msgspec.structs.replace(open_trial(5, 1, 1), name=name)])
    assert group.label == label


# ---------------------------------------------------------------- charts


def test_a_sweep_shows_latency_and_goodput_with_objective_and_knee() -> None:
    found = drawn(sweep())
    first = found["First token against offered rate"]
    assert [series.name for series in first.series] == ["p50", "p90", "p99"]
    assert [(mark.axis, mark.at) for mark in first.marks] == [("y", 300.0), ("x", 60)]
    assert "translations failed and have no latency" in first.caption
    goodput, finished = found["Goodput against offered rate"].series
    assert (goodput.name, finished.name) == ("goodput", "finished")
    # Past the knee the system goes on at its limit, and next to nothing of it is of use.
    assert goodput.y[-1] is not None
    assert finished.y[-1] is not None
    assert goodput.y[-1] < 0.2 * finished.y[-1]
    assert "GPU over time" in found
    assert "CPU over time" not in found
    assert not any("in flight" in title for title in found)


def test_without_a_gpu_the_cores_are_shown() -> None:
    found = drawn(sweep(gpu=False))
    assert "GPU over time" not in found
    panel = [series.name for series in found["CPU over time"].series if series.panel == "gateway at 120/s"]
    assert panel == ["engine", "serving", "clients"]


def test_a_closed_loop_compares_systems_by_requests_in_flight() -> None:
    found = drawn(comparison())
    speed = found["Requests a second against requests in flight"]
    assert [series.name for series in speed.series] == ["gateway", "asyncllm", "vllm-serve"]
    assert speed.series[0].x == [1, 5, 10, 25]
    assert not any("offered" in title for title in found)


def test_one_rate_alone_is_no_curve() -> None:
    assert not any("offered" in title for title in drawn([open_trial(20, 1, 1)]))


def test_nothing_is_shown_of_trials_in_which_nothing_was_asked() -> None:
    assert drawn([]) == {}
    assert drawn([msgspec.structs.replace(open_trial(20, 1, 1), records=[])]) == {}


def test_a_chart_of_several_gpus_says_that_it_is_their_mean() -> None:
    trial = open_trial(10, 1, 1)
    both = [msgspec.structs.replace(each, gpus={"2": 40.0, "3": 60.0}) for each in trial.samples]
    several = drawn([msgspec.structs.replace(trial, samples=both)])
    assert "The mean of the 2 GPUs that the engines use." in several["GPU over time"].caption
    assert "The mean" not in drawn([trial])["GPU over time"].caption


def test_no_chart_has_more_series_than_can_be_told_apart() -> None:
    trials = [
        closed_trial(f"system {number}", in_flight, 1, 1, slots=4, token_s=0.005)
        for number in range(15)
        for in_flight in (1, 2)
    ]
    for chart in drawn(trials).values():
        panels = {series.panel for series in chart.series}
        assert 0 < max(len(panels), len(chart.series) / len(panels)) <= MOST_SERIES, chart.title


@pytest.mark.parametrize("trials", [sweep, comparison, journey])
def test_every_chart_says_what_it_shows(trials: object) -> None:
    assert callable(trials)
    for chart in drawn(trials()).values():
        assert chart.caption.endswith(".")
        assert chart.x_label
        assert chart.y_label
        assert all(any(value is not None for value in series.y) for series in chart.series)

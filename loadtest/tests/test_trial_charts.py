"""Which charts a report has for which trials, and which trials are one curve."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from loadtest.tests.made_up_trials import closed_trial, comparison, journey, made_up, open_trial, sweep
from loadtest.trial import plots
from loadtest.trial.charts import charts
from loadtest.trial.content import MOST_SERIES, Chart, Mark, Series
from loadtest.trial.groups import Group, groups
from loadtest.trial.summary import summaries
from loadtest.trial.timelines import timelines
from loadtest.trial.values import Objective, Sample, Trial


def drawn(trials: list[Trial]) -> dict[str, Chart]:
    report = made_up("run", trials)
    return {chart.title: chart for chart in charts(report, summaries(trials, report.objective))}


def grouped(trials: list[Trial], objective: Objective | None = None) -> list[Group]:
    return groups(summaries(trials, objective or Objective()), trials)


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


def test_what_is_noted_while_measuring_makes_no_curve_of_its_own() -> None:
    trials = [
        msgspec.structs.replace(open_trial(per_s, 1, 1), settings={"max_num_seqs": 8, "engine_steps": per_s})
        for per_s in (5, 20)
    ]
    (group,) = grouped(trials)
    assert group.loads == [5, 20]


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


def test_names_that_say_nothing_are_replaced_by_the_settings_that_differ() -> None:
    trials = [
        msgspec.structs.replace(
            closed_trial("gateway", in_flight, 1, 1, slots=slots, token_s=0.01), name=f"{in_flight} of {slots}"
        )
        for slots in (8, 16)
        for in_flight in (1, 5)
    ]
    assert [group.label for group in grouped(trials)] == ["gateway max_num_seqs=8", "gateway max_num_seqs=16"]


# ---------------------------------------------------------------- charts


def test_a_sweep_shows_latency_and_goodput_with_objective_and_knee() -> None:
    found = drawn(sweep())
    first = found["First token against offered rate"]
    assert [series.name for series in first.series] == ["p50", "p90", "p99"]
    assert [(mark.axis, mark.at) for mark in first.marks] == [("y", 300.0), ("x", 60)]
    assert "kept up to 60 requests/s" in first.caption
    assert "were not finished" in first.caption
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


def test_at_one_level_there_are_bars() -> None:
    found = drawn(comparison(levels=(5,)))
    assert found["Requests a second with 5 requests in flight"].bars
    assert "Requests a second against requests in flight" not in found


def test_one_rate_alone_is_no_curve() -> None:
    assert not any("offered" in title for title in drawn([open_trial(20, 1, 1)]))


def test_nothing_is_shown_of_trials_in_which_nothing_was_asked() -> None:
    assert drawn([]) == {}
    assert drawn([msgspec.structs.replace(open_trial(20, 1, 1), records=[])]) == {}


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
        assert chart.bars or chart.y_label
        assert all(any(value is not None for value in series.y) for series in chart.series)


def test_a_counter_that_began_anew_is_no_negative_rate() -> None:
    samples = [Sample(at_s=float(n), tokens=float(tokens)) for n, tokens in enumerate((0, 100, 200, 10, 110, 210))]
    (chart,) = timelines([msgspec.structs.replace(open_trial(5, 1, 1), samples=samples)])
    assert list(chart.series[0].y) == [100, 100, 100, 100]


# ---------------------------------------------------------------- drawing

CHART = Chart(
    title="A <chart>",
    caption="All there is.",
    x_label="offered & <more>",
    y_label="ms",
    series=[
        Series("$p50$ <script>", [1, 2, 3], [0.005, None, 0.5]),
        Series("名前", [1, 2, 3], [1.0, 1.0, 1.0], [0.5, 0.5, 1.0], [1.5, 1.5, 1.0], style=2),
    ],
    marks=[Mark("bar", 0.3), Mark("knee", 2, "x"), Mark("all", axis="both")],
    log_y=True,
)


def test_a_drawing_takes_its_colours_from_the_page_and_needs_nothing_else() -> None:
    svg = plots.svg(CHART, "f7")
    assert svg.startswith("<svg viewBox=")
    assert "var(--ink)" in svg
    assert "var(--series-1)" in svg
    assert not re.search(r"http|#fe00|<style|<metadata|<!--|<script", svg)
    ids = re.findall(r'\bid="([^"]*)"', svg)
    assert all(each.startswith("f7-") for each in ids)
    assert len(ids) == len(set(ids))
    assert {found[0] or found[1] for found in re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)} <= set(ids)


def test_words_stay_words_and_numbers_stay_what_they_are() -> None:
    words = re.findall(r"<text[^>]*>([^<]*)</text>", plots.svg(CHART, "f7"))
    for each in ("$p50$ &lt;script&gt;", "名前", "offered &amp; &lt;more&gt;", "0.005", "knee"):
        assert each in words


def test_the_same_chart_is_the_same_drawing() -> None:
    assert plots.svg(CHART, "f1") == plots.svg(CHART, "f1")


def test_long_names_are_letters_with_a_key() -> None:
    long = msgspec.structs.replace(CHART, series=[Series(name * 12, [1, 2], [1, 2]) for name in ("ab", "cd")])
    assert plots.keyed(long)
    assert not plots.keyed(CHART)
    words = re.findall(r"<text[^>]*>([^<]*)</text>", plots.svg(long, "f1"))
    assert {"A", "B"} <= set(words)
    assert not any("ababab" in each for each in words)


def test_a_long_line_keeps_its_gaps() -> None:
    many = Series("GPU", range(36_000), [0.0 if n == 7_777 else 95.0 for n in range(36_000)], markers=False)
    svg = plots.svg(msgspec.structs.replace(CHART, series=[many], marks=[], log_y=False), "f1")
    line = max(re.findall(r'<path d="([^"]*)"[^>]*var\(--series-0\)', svg), key=len)
    heights = [float(each) for each in re.findall(r"[ML] [-\d.]+ ([-\d.]+)", line)]
    assert len(heights) <= 600
    assert max(heights) > 1.2 * min(heights)
    assert len(svg) < 50_000


def test_a_logarithm_is_for_values_that_are_far_apart() -> None:
    def ticks(values: list[float]) -> list[float]:
        near = msgspec.structs.replace(CHART, series=[Series("a", [1, 2], values)], marks=[])
        words = re.findall(r"<text[^>]*text-anchor: end[^>]*>([^<]*)</text>", plots.svg(near, "f1"))
        return [float(each.replace(",", "")) for each in words]

    assert ticks([31.6, 31.9])[0] == 0
    assert {10, 100, 1000} <= set(ticks([5.0, 2000.0]))


def test_a_bar_far_from_the_values_is_in_the_picture() -> None:
    far = msgspec.structs.replace(CHART, series=[Series("a", [1, 2], [20.0, 21.0])], marks=[Mark("bar", 300)])
    for chart in (far, msgspec.structs.replace(far, log_y=False)):
        _left, _top, width, height = map(
            float, re.findall(r'viewBox="([^"]*)"', plots.svg(chart, "f1"))[0].split()
        )
        ((x, y),) = re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>bar<', plots.svg(chart, "f1"))
        assert 0 < float(x) < width
        assert 0 < float(y) < height


@pytest.mark.parametrize("log_y", [False, True])
def test_words_stand_where_their_line_ends(log_y: bool) -> None:
    lines = [Series("low", [1, 2], [20.0, 25.0]), Series("high", [1, 2], [20.0, 400.0])]
    chart = msgspec.structs.replace(CHART, series=lines, marks=[Mark("bar", 9_000)], log_y=log_y)
    svg = plots.svg(chart, "f1")
    for number, each in enumerate(lines):
        line = re.findall(rf'<path d="([^"]*)"[^>]*var\(--series-{number}\)', svg)[0]
        end = float(re.findall(r"[ML] [-\d.]+ ([-\d.]+)", line)[-1])
        (words,) = re.findall(rf'<text[^>]* y="([\d.]+)"[^>]*>{each.name}<', svg)
        # On a straight axis they are pushed apart; letters stand on their lower edge.
        assert abs(float(words) - end) < (8 if log_y else 20)


def test_the_picture_has_the_colours_of_the_light_page() -> None:
    style = (Path(plots.__file__).with_name("page.css")).read_text()
    light = style[: style.index("@media")]
    assert tuple(re.findall(r"--series-\d+: (#\w+);", light)) == plots.PALETTE
    assert len(re.findall(r"--series-\d+: (#\w+);", style)) == 2 * MOST_SERIES

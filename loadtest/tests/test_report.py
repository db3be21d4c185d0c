"""A report as files: what is in them, and how it is made again from them."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import loadtest.__main__ as entry
from loadtest.results import LoadtestError
from loadtest.tests.made_up_trials import (
    FINDINGS,
    closed_trial,
    comparison,
    journey,
    made_up,
    open_trial,
    sweep,
    table_of,
    write,
)
from loadtest.trial import plots, report
from loadtest.trial.content import MOST_SERIES, Chart, Mark, Series, Table, markdown
from loadtest.trial.report import Group, charts, groups
from loadtest.trial.summary import summaries
from loadtest.trial.values import Finding, Objective, Record, Results, Trial

FILES = {"result.json.gz", "utterances.jsonl", "table.md", "plot.png"}
MORE = Chart(title="More", caption="It is.", x_label="x", y_label="y", series=[Series("a", [1, 2], [1, 2])])
EMPTY = Chart(title="Nothing", x_label="x", series=[Series("a", [1, 2], [None, None])])
TABLE = Table("Beside the others", ["what", "how much"], [["a | b", "1\n2"]], "As it was.")
SMALL = made_up([open_trial(per_s, 1, 1) for per_s in (10, 120)], parts=["First.", TABLE], charts=[EMPTY, MORE])
NOTHING = Results(model="m", findings=[])


@pytest.fixture(scope="module")
def drawn_once() -> Iterator[None]:
    """What was drawn is not drawn again: drawing takes most of the time here, and equal charts look the same."""
    picture = plots.picture
    pictures: dict[bytes, bytes] = {}

    def once(charts: Sequence[Chart], title: str, file: Path) -> None:
        key = msgspec.json.encode((charts, title))
        if key not in pictures:
            picture(charts, title, file)
            pictures[key] = file.read_bytes()
        file.write_bytes(pictures[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "picture", once)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, drawn_once: None) -> Path:
    """SMALL, written."""
    made = tmp_path_factory.mktemp("report") / "made" / "here"
    write(SMALL, "sweep", made)
    return made


def files(place: Path) -> set[str]:
    return {file.name for file in place.iterdir()}


def test_cells_cannot_break_a_table() -> None:
    assert markdown(["First.", TABLE]) == (
        "First.\n\n## Beside the others\n\n| what | how much |\n| --- | --- |\n| a \\| b | 1 2 |\n\nAs it was.\n"
    )


def test_everything_is_written(folder: Path) -> None:
    assert files(folder) == FILES
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    table = (folder / "table.md").read_text()
    assert table.startswith(table_of(SMALL, "sweep").rstrip())
    # The charts of the command come first; one without any value is left out.
    assert [line.split(":")[0] for line in table.splitlines() if line.startswith("- ")] == [
        "- More",
        "- First token against offered rate",
        "- Goodput against offered rate",
    ]


def test_the_result_has_samples_not_records(folder: Path) -> None:
    written = report.read(folder)
    assert written.summaries == summaries(SMALL.trials, Objective())
    assert [trial.samples for trial in written.trials] == [trial.samples for trial in SMALL.trials]
    assert not any(trial.records for trial in written.trials)
    assert written.findings == FINDINGS


def test_a_report_can_be_made_again(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "result.json.gz").write_bytes((folder / "result.json.gz").read_bytes())
    assert entry.main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (folder / "table.md").read_text()
    for name in FILES - {"utterances.jsonl"}:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_the_same_result_is_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(NOTHING, "run", tmp_path / name)
    one, two = ((tmp_path / name / "result.json.gz").read_bytes() for name in ("one", "two"))
    assert one == two
    # No time, and no name of a file.
    assert one[3:8] == bytes(5)


def test_without_charts_an_old_plot_goes(tmp_path: Path) -> None:
    (tmp_path / "plot.png").touch()
    write(replace(NOTHING, charts=[EMPTY], files={"more.toml": "a = 1"}), "recommend", tmp_path)
    assert files(tmp_path) == {"result.json.gz", "table.md", "more.toml"}


def test_without_matplotlib_only_the_plot_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(SMALL, "sweep", tmp_path)
    assert files(tmp_path) == FILES - {"plot.png"}
    assert "matplotlib is not installed" in (tmp_path / "table.md").read_text()


def test_a_folder_needs_a_result(tmp_path: Path) -> None:
    with pytest.raises(LoadtestError, match=r"holds no result\.json\.gz"):
        report.read(tmp_path)
    for broken in (b"{}", gzip.compress(b"{}"), gzip.compress(b'{"kind": 1}'), gzip.compress(b"{}")[:-4]):
        (tmp_path / "result.json.gz").write_bytes(broken)
        with pytest.raises(LoadtestError, match="not a result"):
            report.read(tmp_path)


def test_bars_decide_whether_a_load_test_passed() -> None:
    assert not report.passed(SMALL)
    assert report.passed(made_up([], findings=[Finding("a", "1", "≥ 1", True), Finding("b", "2")]))


# ---------------------------------------------------------------- the table


def test_the_table_has_trials_and_machine() -> None:
    text = table_of(made_up(comparison(levels=(5,))), "peers")
    assert "| first token p99 that the gateway adds, 25 in flight | 4.1 ms | ≤ 3 ms | FAILED | Two" in text
    assert sum(line.startswith("| gateway, 5 in flight | 5 in flight | ") for line in text.splitlines()) == 1
    for part in (
        "16 cores, 128 GiB, 1 × NVIDIA H200",
        "vllm 0.26.0",
        "`python -m loadtest peers --out results`",
        "revision abcdef1",
        "99 % of the translations finished, with their first token within 300 ms",
        "natural lengths, seed 1, ja to en",
        "Medians of the repetitions",
    ):
        assert part in text


def test_unknown_columns_are_left_out() -> None:
    text = table_of(made_up([open_trial(10, 1, 1, gpu=False)], findings=[]))
    assert "GPU busy" not in text
    assert "at readers" not in text
    assert "engine CPU s per 1,000 tokens" in text
    # A zero is known.
    assert "| failed |" in text


def test_the_fullest_host_is_told() -> None:
    trial = replace(open_trial(10, 1, 1), elapsed_s=10.0, host_cpu_s=11.0, hosts_cpu_s=[2.0, 9.0])
    assert "| 1.10 (the fullest of 2: 0.90) |" in table_of(made_up([trial]))
    alone = replace(trial, host_cpu_s=9.0, hosts_cpu_s=[9.0])
    assert "| 0.90 |" in table_of(made_up([alone]))


def test_several_gpus_are_said_to_be_several() -> None:
    trial = open_trial(10, 1, 1)
    both = replace(trial, samples=[replace(each, gpus={"2": 40.0, "3": 60.0}) for each in trial.samples])
    for trials, several in (([both], True), ([trial], False)):
        assert ("The engines use 2 GPUs" in table_of(made_up(trials))) is several
        caption = drawn(trials)["GPU over time"].caption
        assert ("The mean of the 2 GPUs that the engines use." in caption) is several


def test_failures_are_told_with_their_reasons() -> None:
    refused = [Record(f"l{n}", "en", 0.0, 0.0, None, None, failed="overloaded") for n in range(3)]
    trial = replace(open_trial(10, 1, 1), records=refused)
    text = table_of(made_up([trial], objective=Objective(), findings=[]))
    assert "3: 3 × overloaded" in text
    assert "0.0%" in text


def test_a_limiting_driver_is_told_beside_numbers() -> None:
    limited = replace(SMALL.trials[0], settings={"driver_was_the_limit": "A client process was late by 40 ms."})
    text = table_of(made_up([limited, SMALL.trials[1]]))
    assert "| gateway at 10/s * |" in text
    assert "| gateway at 120/s |" in text
    assert "* A client process was late by 40 ms." in text


def test_records_name_their_trial(tmp_path: Path) -> None:
    failed = Record("l\n1", "en", 0.123, 0.1, None, None, failed="overloaded")
    trial = replace(open_trial(5, 2, 1), records=[failed], samples=[])
    write(made_up([trial]), "run", tmp_path)
    assert [json.loads(line) for line in (tmp_path / "utterances.jsonl").read_text().splitlines()] == [
        {
            "trial": "gateway at 5/s",
            "repetition": 2,
            "line": "l\n1",
            "target": "en",
            "due_s": 0.123,
            "sent_s": 0.1,
            "first_s": None,
            "done_s": None,
            "failed": "overloaded",
        }
    ]


def drawn(trials: list[Trial]) -> dict[str, Chart]:
    told = summaries(trials, Objective())
    return {chart.title: chart for chart in charts(told, trials, Objective())}


def grouped(trials: list[Trial], objective: Objective | None = None) -> list[Group]:
    return groups(summaries(trials, objective or Objective()))


def test_trials_of_several_rates_are_one_curve() -> None:
    (group,) = grouped([open_trial(20, 1, 1), open_trial(5, 1, 1), open_trial(5, 2, 1)])
    assert group.label == "gateway"
    assert group.loads == [5, 20]


def test_the_knee_precedes_the_first_miss() -> None:
    (group,) = grouped(sweep())
    assert [each.met for each in group.summaries] == [True] * 4 + [False] * 4
    assert group.knee is group.summaries[3]
    assert group.knee.offered_per_s == 60
    (missed,) = grouped(sweep(), Objective(first_token_ms=1.0))
    assert missed.knee is None


def test_the_longer_of_equal_trials_counts() -> None:
    again = replace(open_trial(20, 1, 2, seconds=20), name="gateway at 20/s, confirmed")
    (group,) = grouped([open_trial(5, 1, 1), again, open_trial(20, 1, 1)])
    assert [each.name for each in group.summaries] == ["gateway at 5/s", "gateway at 20/s, confirmed"]


def test_systems_and_loops_are_separate_curves() -> None:
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
def test_a_curves_label_leaves_out_loads(name: str, label: str) -> None:
    (group,) = grouped([replace(open_trial(5, 1, 1), name=name)])
    assert group.label == label


# ---------------------------------------------------------------- charts


def test_a_sweep_charts_latency_and_goodput() -> None:
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


def test_several_sweeps_compare_their_p99() -> None:
    trials = [open_trial(per_s, 1, 1, meetings=meetings) for per_s in (10, 20) for meetings in (False, True)]
    first = drawn(trials)["First token against offered rate"]
    assert [series.name for series in first.series] == ["gateway p99", "gateway in meetings p99"]


def test_without_a_gpu_the_cores_are_shown() -> None:
    found = drawn(sweep(gpu=False))
    assert "GPU over time" not in found
    panel = [series.name for series in found["CPU over time"].series if series.panel == "gateway at 120/s"]
    assert panel == ["engine", "serving", "clients"]


def test_a_closed_loop_compares_systems() -> None:
    found = drawn(comparison())
    speed = found["Requests a second against requests in flight"]
    assert [series.name for series in speed.series] == ["gateway", "asyncllm", "vllm-serve"]
    assert speed.series[0].x == [1, 5, 10, 25]
    assert not any("offered" in title for title in found)


def test_empty_trials_have_no_charts() -> None:
    assert drawn([]) == {}
    assert drawn([replace(open_trial(20, 1, 1), records=[])]) == {}


def test_no_chart_has_too_many_series() -> None:
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


# ---------------------------------------------------------------- pictures


CHART = Chart(
    title="A chart",
    x_label="offered",
    y_label="ms",
    series=[
        Series("$p50$", [1, 2, 3], [0.005, None, 0.5]),
        Series("名前", [1, 2, 3], [1.0, 1.0, 1.0], [0.5, 0.5, 1.0], [1.5, 1.5, 1.0], style=2),
    ],
    marks=[Mark("bar", 0.3), Mark("knee", 2, "x"), Mark("all", axis="both")],
    log_y=True,
)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plots._pyplot().close("all")


def chart(series: Sequence[Series], marks: Sequence[Mark] = (), *, log_y: bool = False) -> Chart:
    return replace(CHART, series=series, marks=marks, log_y=log_y)


def axes_of(drawn: Chart) -> Any:
    """The axes of a chart alone in its picture, with everything in its place."""
    figure = plots.figure([drawn], "")
    figure.canvas.draw()
    return figure.axes[0]


def words_in(axes: Any) -> dict[str, tuple[float, float]]:
    """Words → where they are, in parts of the axes."""
    found = {}
    for text in axes.texts:
        box = text.get_window_extent()
        x, y = axes.transAxes.inverted().transform((box.x0, (box.y0 + box.y1) / 2))
        found[text.get_text()] = (float(x), float(y))
    return found


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_and_marks_are_literal() -> None:
    axes = axes_of(CHART)
    assert set(words_in(axes)) == {"bar", "knee"}
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["$p50$", "名前"]


def test_only_wide_values_get_a_logarithm() -> None:
    near = axes_of(chart([Series("a", [1, 2], [31.6, 31.9])], log_y=True))
    far = axes_of(chart([Series("a", [1, 2], [5.0, 2000.0])], log_y=True))
    assert (near.get_yscale(), near.get_ylim()[0]) == ("linear", 0)
    assert far.get_yscale() == "log"


def test_the_picture_holds_all_values() -> None:
    low, high = axes_of(chart([Series("a", [1, 2], [-2.0, 4.0])])).get_ylim()
    assert low < -2 < 4 < high
    for log_y in (False, True):
        words = words_in(axes_of(chart([Series("a", [1, 2], [20.0, 21.0])], [Mark("bar", 300)], log_y=log_y)))
        assert 0 < words["bar"][1] < 1.1


def test_each_panel_has_axes_of_its_own() -> None:
    lines = [Series("a", [1, 2], [1, 2], panel=panel) for panel in ("first", "second")]
    titles = [axes.get_title(loc="left") for axes in plots.figure([chart(lines)], "").axes]
    assert titles == ["first", "second"]

"""A report as files: what is in them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadtest.tests.made_up_trials import (
    FINDINGS,
    closed_trial,
    comparison,
    made_up,
    open_trial,
    read,
    table_of,
    write,
)
from loadtest.trial import plots, report
from loadtest.trial.content import Chart, Series, Table, markdown
from loadtest.trial.report import charts, groups
from loadtest.trial.summary import summaries
from loadtest.trial.values import Finding, Objective, Record, Results, Trial

FILES = {"result.json.gz", "utterances.jsonl", "table.md", "plot.png"}
MORE = Chart(title="More", x_label="x", y_label="y", series=[Series("a", [1, 2], [1, 2])])
EMPTY = Chart(title="Nothing", x_label="x", series=[Series("a", [1, 2], [None, None])])
TABLE = Table("Beside the others", ["what", "how much"], [["a | b", "1\n2"]], "As it was.")
SMALL = made_up([open_trial(per_s, 1, 1) for per_s in (10, 120)], parts=["First.", TABLE], charts=[EMPTY, MORE])
NOTHING = Results(model="m", findings=[])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    assert (folder / "table.md").read_text() == table_of(SMALL, "sweep")


def test_the_result_has_samples_not_records(folder: Path) -> None:
    written = read(folder)
    assert written.summaries == summaries(SMALL.trials, Objective())
    assert [trial.samples for trial in written.trials] == [trial.samples for trial in SMALL.trials]
    assert not any(trial.records for trial in written.trials)
    assert written.findings == FINDINGS


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
    trial = replace(open_trial(10, 1, 1), elapsed_s=10.0, hosts_cpu_s=[2.0, 9.0])
    assert "| 1.10 (the fullest of 2: 0.90) |" in table_of(made_up([trial]))
    alone = replace(trial, hosts_cpu_s=[9.0])
    assert "| 0.90 |" in table_of(made_up([alone]))


def test_several_gpus_are_said_to_be_several() -> None:
    trial = open_trial(10, 1, 1)
    both = replace(trial, samples=[replace(each, gpus={"2": 40.0, "3": 60.0}) for each in trial.samples])
    for trials, several in (([both], True), ([trial], False)):
        assert ("The engines use 2 GPUs" in table_of(made_up(trials))) is several


def test_failures_are_told_with_their_reasons() -> None:
    refused = [Record(f"l{n}", "en", 0.0, 0.0, None, None, failed="overloaded") for n in range(3)]
    trial = replace(open_trial(10, 1, 1), records=refused)
    text = table_of(made_up([trial], objective=Objective(), findings=[]))
    assert "3: 3 × overloaded" in text
    assert "0.0%" in text


def test_what_was_sent_again_is_told_with_its_wait() -> None:
    again = Record("l", "en", 0.0, 0.0, 0.9, 1.0, tokens=5, retries=2, again_s=0.5)
    retried = table_of(made_up([replace(open_trial(10, 1, 1), records=[again] * 95)]))
    assert "sent again | first token of what was accepted, since it was sent p50 / p90 / p99, ms |" in retried
    # Since it was accepted, not since it was due.
    assert "| 190 | 400 / 400 / 400 |" in retried
    assert "sent again" not in table_of(made_up([open_trial(10, 1, 1)]))


def test_a_limiting_driver_is_told_beside_numbers() -> None:
    limited = replace(SMALL.trials[0], limited="A client process was late by 40 ms.")
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


# ---------------------------------------------------------------- charts


def drawn(trials: list[Trial]) -> dict[tuple[str, str], Chart]:
    """By title and what is on the x axis."""
    return {(chart.title, chart.x_label): chart for chart in charts(summaries(trials, Objective()))}


def test_an_open_loop_is_one_curve_by_its_rates() -> None:
    found = drawn([open_trial(20, 1, 1), open_trial(5, 1, 1), open_trial(5, 2, 1)])
    assert list(found) == [(title, "offered, requests/s") for title in ("First token (p99)", "Goodput")]
    for chart in found.values():
        (series,) = chart.series
        assert (series.name, series.x) == ("gateway", [5, 20])
        assert all(series.y)


def test_a_closed_loop_compares_systems() -> None:
    found = drawn(comparison())
    assert {x_label for _, x_label in found} == {"requests in flight"}
    speed = found["Requests a second", "requests in flight"]
    assert [series.name for series in speed.series] == ["gateway", "asyncllm", "vllm-serve"]
    assert speed.series[0].x == [1, 5, 10, 25]


def test_the_longer_of_equal_trials_counts() -> None:
    again = replace(open_trial(20, 1, 2, seconds=20), name="gateway at 20/s, confirmed")
    told = summaries([open_trial(5, 1, 1), again, open_trial(20, 1, 1)], Objective())
    own = groups(told, closed=False)["gateway"]
    assert [each.name for each in own.values()] == ["gateway at 5/s", "gateway at 20/s, confirmed"]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("5/s", "gateway"),
        ("12 meetings, confirmation", "gateway"),
        ("16 sequences, 1 meeting", "16 sequences"),
        ("gateway, 64 sequences, uniform data: 25 at a time", "gateway, 64 sequences, uniform data"),
        ("one worker: 3.5 a second", "one worker"),
        ("meetings", "meetings"),
    ],
)
def test_a_curves_label_leaves_out_loads(name: str, label: str) -> None:
    assert list(groups(summaries([replace(open_trial(5, 1, 1), name=name)], Objective()), closed=False)) == [label]


def test_empty_trials_have_no_charts() -> None:
    assert drawn([]) == {}
    assert drawn([open_trial(20, 1, 1)]) == {}
    assert drawn([replace(closed_trial("a", 1, 1, 1, slots=1, token_s=0.01), records=[])]) == {}


def test_a_picture_takes_any_names_gaps_and_marks(tmp_path: Path) -> None:
    lines = [Series("$p50$", [1, 2, 3], [0.005, None, 0.5]), Series("名前", [1, 2], [1.0, 1.0], False, False)]
    for log_y in (False, True):
        chart = Chart(title="$", x_label="x", series=lines, marks=[("kill", 2)], x_ticks=[(1, "a")], log_y=log_y)
        plots.picture([chart, chart, chart], "m", tmp_path / "plot.png")
        assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")

"""A report as files: what is in them, and how it is made again from them."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

import loadtest.__main__ as entry
from loadtest.results import LoadtestError
from loadtest.tests.commands import table_of, write
from loadtest.tests.made_up_trials import FINDINGS, comparison, made_up, open_trial
from loadtest.trial import plots, report
from loadtest.trial.content import Chart, Series, Table, markdown
from loadtest.trial.summary import summaries
from loadtest.trial.values import Finding, Objective, Record, Results

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


def test_a_table_stays_a_table_whatever_is_in_its_cells() -> None:
    assert markdown(["First.", TABLE]) == (
        "First.\n\n## Beside the others\n\n| what | how much |\n| --- | --- |\n| a \\| b | 1 2 |\n\nAs it was.\n"
    )


def test_everything_is_written(folder: Path) -> None:
    assert files(folder) == FILES
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    table = (folder / "table.md").read_text()
    assert table.startswith(table_of(SMALL, "sweep").rstrip())
    # Of the charts, those of the command come first; one without any value is left out.
    assert [line.split(":")[0] for line in table.splitlines() if line.startswith("- ")] == [
        "- More",
        "- First token against offered rate",
        "- Goodput against offered rate",
    ]


def test_the_result_has_summaries_and_samples_and_no_records(folder: Path) -> None:
    written = report.read(folder)
    assert written.summaries == summaries(SMALL.trials, Objective())
    assert [trial.samples for trial in written.trials] == [trial.samples for trial in SMALL.trials]
    assert not any(trial.records for trial in written.trials)
    assert written.findings == FINDINGS


def test_a_report_is_made_again_as_it_was(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_a_report_without_a_chart_has_no_plot_of_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "plot.png").touch()
    write(msgspec.structs.replace(NOTHING, charts=[EMPTY], files={"more.toml": "a = 1"}), "recommend", tmp_path)
    assert files(tmp_path) == {"result.json.gz", "table.md", "more.toml"}


def test_without_matplotlib_all_but_the_plot_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(SMALL, "sweep", tmp_path)
    assert files(tmp_path) == FILES - {"plot.png"}
    assert "matplotlib is not installed" in (tmp_path / "table.md").read_text()


def test_a_folder_without_a_result_is_an_error(tmp_path: Path) -> None:
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


def test_the_table_has_a_row_for_each_trial_and_says_what_it_was_measured_on() -> None:
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


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    text = table_of(made_up([open_trial(10, 1, 1, gpu=False)], findings=[]))
    assert "GPU busy" not in text
    assert "at readers" not in text
    assert "engine CPU s per 1,000 tokens" in text
    # A zero is known.
    assert "| failed |" in text


def test_the_fullest_host_of_several_engines_is_told_beside_all_of_them() -> None:
    trial = msgspec.structs.replace(open_trial(10, 1, 1), elapsed_s=10.0, host_cpu_s=11.0, hosts_cpu_s=[2.0, 9.0])
    assert "| 1.10 (the fullest of 2: 0.90) |" in table_of(made_up([trial]))
    alone = msgspec.structs.replace(trial, host_cpu_s=9.0, hosts_cpu_s=[9.0])
    assert "| 0.90 |" in table_of(made_up([alone]))


def test_several_gpus_are_said_to_be_several() -> None:
    trial = open_trial(10, 1, 1)
    both = [msgspec.structs.replace(each, gpus={"2": 40.0, "3": 60.0}) for each in trial.samples]
    assert "The engines use 2 GPUs" in table_of(made_up([msgspec.structs.replace(trial, samples=both)]))
    assert "The engines use" not in table_of(made_up([trial]))


def test_failures_are_told_with_their_reasons() -> None:
    refused = [Record(f"l{n}", "en", 0.0, 0.0, None, None, failed="overloaded") for n in range(3)]
    trial = msgspec.structs.replace(open_trial(10, 1, 1), records=refused)
    text = table_of(made_up([trial], objective=Objective(), findings=[]))
    assert "3: 3 × overloaded" in text
    assert "0.0%" in text


def test_a_driver_that_was_the_limit_is_told_beside_the_numbers() -> None:
    limited = msgspec.structs.replace(
        SMALL.trials[0], settings={"driver_was_the_limit": "A client process was late by 40 ms."}
    )
    text = table_of(made_up([limited, SMALL.trials[1]]))
    assert "| gateway at 10/s * |" in text
    assert "| gateway at 120/s |" in text
    assert "* A client process was late by 40 ms." in text


def test_a_line_of_the_records_is_one_with_the_name_of_its_trial(tmp_path: Path) -> None:
    failed = Record("l\n1", "en", 0.123, 0.1, None, None, failed="overloaded")
    trial = msgspec.structs.replace(open_trial(5, 2, 1), records=[failed], samples=[])
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

"""A report as files: what is in them, and how it is made again from them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from loadtest.machine import Machine
from loadtest.results import LoadtestError
from loadtest.tests.made_up_trials import FINDINGS, MACHINE, comparison, made_up, open_trial
from loadtest.trial import plots, records_file, report
from loadtest.trial.command import Extras, report_command
from loadtest.trial.content import Chart, Figure, Series, Table
from loadtest.trial.summary import summaries
from loadtest.trial.values import Finding, Objective, Record, Report

FILES = {"result.json", "utterances.jsonl", "table.md", "plot.png", "report.html"}
SMALL = made_up("sweep", [open_trial(per_s, 1, 1) for per_s in (10, 120)])
MORE = Chart(title="More", caption="It is.", x_label="x", y_label="y", series=[Series("a", [1, 2], [1, 2])])
TABLE = Table("Beside the others", ["what", "how much"], [["a | b", "1"]], "As it was.")


@pytest.fixture(scope="module")
def drawn_once() -> Iterator[None]:
    """What was drawn is not drawn again: drawing takes most of the time here, and equal charts look the same."""
    svg, overview = plots.svg, plots.overview
    drawn: dict[bytes, str] = {}
    pictures: dict[bytes, bytes] = {}

    def svg_once(chart: Chart, prefix: str) -> str:
        key = msgspec.json.encode((chart, prefix))
        if key not in drawn:
            drawn[key] = svg(chart, prefix)
        return drawn[key]

    def overview_once(charts: Sequence[Chart], title: str, file: Path) -> None:
        key = msgspec.json.encode((charts, title))
        if key not in pictures:
            overview(charts, title, file)
            pictures[key] = file.read_bytes()
        file.write_bytes(pictures[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "svg", svg_once)
        patch.setattr(plots, "overview", overview_once)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, drawn_once: None) -> Path:
    """SMALL, written."""
    made = tmp_path_factory.mktemp("report") / "made" / "here"
    report.write(SMALL, made)
    return made


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """What it is made from, without what is made from it."""
    for name in ("result.json", "utterances.jsonl"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path


def files(place: Path) -> set[str]:
    return {file.name for file in place.iterdir()}


async def again(place: Path) -> str:
    """`python -m loadtest report`; what it prints."""
    parser = argparse.ArgumentParser()
    command = report_command({})
    command.add(parser)
    options = parser.parse_args([str(place)])
    result = await command.run(options, "python -m loadtest report", lambda _line: None)
    command.write(result, options.out)
    assert command.passed(result)
    return command.table(result)


def test_everything_is_written(folder: Path) -> None:
    assert files(folder) == FILES
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "table.md").read_text() == report.table(SMALL)


def test_the_result_has_summaries_and_samples_and_no_records(folder: Path) -> None:
    written = msgspec.json.decode((folder / "result.json").read_bytes(), type=report.Written)
    assert written.summaries == summaries(SMALL.trials, SMALL.objective)
    assert [trial.samples for trial in written.trials] == [trial.samples for trial in SMALL.trials]
    assert not any(trial.records for trial in written.trials)
    # It is a Report for those who know nothing of the summaries.
    assert msgspec.json.decode((folder / "result.json").read_bytes(), type=Report).findings == FINDINGS


async def test_a_report_is_made_again_as_it_was(folder: Path, copy: Path) -> None:
    printed = await again(copy)
    assert files(copy) == FILES
    assert printed == (folder / "table.md").read_text() == (copy / "table.md").read_text()
    assert (copy / "report.html").read_text() == (folder / "report.html").read_text()
    for name in ("result.json", "utterances.jsonl"):
        assert (copy / name).read_bytes() == (folder / name).read_bytes()


async def test_without_records_the_numbers_of_the_result_are_shown(folder: Path, copy: Path) -> None:
    (copy / "utterances.jsonl").unlink()
    printed = await again(copy)
    assert printed.startswith((folder / "table.md").read_text())
    assert "utterances.jsonl is missing" in printed
    page = (copy / "report.html").read_text()
    assert "utterances.jsonl is missing" in page
    assert page.count("<svg") == (folder / "report.html").read_text().count("<svg")


async def test_records_that_are_cut_off_are_told_and_not_used(folder: Path, copy: Path) -> None:
    records = copy / "utterances.jsonl"
    records.write_bytes(records.read_bytes()[:-5])
    printed = await again(copy)
    assert printed.startswith((folder / "table.md").read_text())
    assert "The last line of utterances.jsonl is cut off" in printed


async def test_records_that_are_too_few_are_told_and_not_used(copy: Path) -> None:
    records = copy / "utterances.jsonl"
    records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:-1]))
    assert "does not have all records" in await again(copy)


async def test_a_folder_without_a_result_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LoadtestError, match=r"holds no result\.json"):
        await again(tmp_path)
    (tmp_path / "result.json").write_text('{"kind": "soak"}')
    with pytest.raises(LoadtestError, match="no result of a load test"):
        await again(tmp_path)


async def test_what_a_command_shows_besides_is_made_again_from_its_details(copy: Path) -> None:
    def extras(of: Report) -> Extras:
        return Extras([MORE], [TABLE], f"<p>{of.kind} once more</p>")

    command = report_command({"sweep": extras})
    options = argparse.Namespace(out=copy)
    result = await command.run(options, "", lambda _line: None)
    command.write(result, copy)
    page = (copy / "report.html").read_text()
    assert "<p>sweep once more</p>" in page
    assert ">More</h3>" in page
    assert "| a \\| b | 1 |" in command.table(result)
    assert "| a \\| b | 1 |" in (copy / "table.md").read_text()


def test_without_matplotlib_all_but_the_pictures_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not plots.available()
    (tmp_path / "plot.png").write_text("of an earlier run")
    own = Figure("Drawn by hand", "A line.", svg='<svg viewBox="0 0 1 1"></svg>')
    report.write(SMALL, tmp_path, [MORE, own])
    assert files(tmp_path) == FILES - {"plot.png"}
    page = (tmp_path / "report.html").read_text()
    assert "matplotlib is not installed" in page
    assert "matplotlib is not installed" in (tmp_path / "table.md").read_text()
    assert "<svg" not in page
    assert "data:image/svg+xml;base64," in page


def test_a_report_without_trials_is_written_too(tmp_path: Path) -> None:
    report.write(made_up("recommend", [], findings=[], details={"curve": [1, 2, "<3>"]}), tmp_path)
    assert files(tmp_path) == FILES - {"plot.png"}
    assert "&lt;3&gt;" in (tmp_path / "report.html").read_text()


def test_a_chart_of_a_command_without_a_value_is_not_shown(tmp_path: Path) -> None:
    empty = msgspec.structs.replace(MORE, series=[Series("a", [1, 2], [None, None])])
    report.write(made_up("run", []), tmp_path, [empty, msgspec.structs.replace(MORE, series=[])])
    assert files(tmp_path) == FILES - {"plot.png"}


def test_bars_decide_whether_a_load_test_passed() -> None:
    assert not report.passed(SMALL)
    assert report.passed(made_up("run", [], findings=[Finding("a", "1", "≥ 1", True), Finding("b", "2")]))


# ---------------------------------------------------------------- the table


def test_the_table_has_a_row_for_each_trial_and_says_what_it_was_measured_on() -> None:
    text = report.table(made_up("peers", comparison(levels=(5,))))
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
    machine: Machine = msgspec.structs.replace(MACHINE, gpus=[])
    text = report.table(made_up("run", [open_trial(10, 1, 1, gpu=False)], machine=machine, findings=[]))
    assert "GPU busy" not in text
    assert "at readers" not in text
    assert "engine CPU s per 1,000 tokens" in text
    # A zero is known.
    assert "| failed |" in text.replace("| failed | unfinished |", "| failed |")


def test_failures_are_told_with_their_reasons() -> None:
    refused = [Record(f"l{n}", "en", 0.0, 0.0, None, None, failed="overloaded") for n in range(3)]
    trial = msgspec.structs.replace(open_trial(10, 1, 1), records=refused)
    text = report.table(made_up("run", [trial], objective=Objective(), findings=[]))
    assert "3: 3 × overloaded" in text
    assert "0.0%" in text


def test_a_driver_that_was_the_limit_is_told_beside_the_numbers() -> None:
    limited = msgspec.structs.replace(
        SMALL.trials[0], settings={"driver_was_the_limit": "A client process was late by 40 ms."}
    )
    text = report.table(made_up("sweep", [limited, SMALL.trials[1]]))
    assert "| gateway at 10/s * |" in text
    assert "| gateway at 120/s |" in text
    assert "* A client process was late by 40 ms." in text


@pytest.mark.slow
def test_a_hundred_thousand_records_are_no_problem(tmp_path: Path) -> None:
    records = [
        Record(f"line-{n}", "en", n / 1e4, n / 1e4, n / 1e4 + 0.05, n / 1e4 + 0.5, 20, 80) for n in range(100_000)
    ]
    trial = msgspec.structs.replace(open_trial(10, 1, 1), records=records, elapsed_s=10.5, samples=[])
    report.write(made_up("run", [trial]), tmp_path)
    kept = records_file.read(tmp_path / "utterances.jsonl")
    assert len(kept.records[trial.name, 1]) == 100_000
    written, said = report.read(tmp_path)
    assert said == ""
    assert written.summaries[0].requests_per_s.median == pytest.approx(9_523.81)
    assert (tmp_path / "report.html").stat().st_size < 1_000_000

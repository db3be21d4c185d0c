"""A report as files: what is in them, and how they are made again."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from msgspec import Struct

from loadtest.report import folder as files
from loadtest.report.commands import report_command
from loadtest.report.content import Chart, Series, Shown, Table
from loadtest.report.markdown import markdown
from loadtest.results import LoadtestError
from loadtest.tests.commands import made_again

CHART = Chart(title="More", caption="It is.", x_label="x", y_label="y", series=[Series("a", [1, 2], [1, 2])])
EMPTY = Chart(title="Nothing", x_label="x", series=[Series("a", [1, 2], [None, None])])
TABLE = Table("Beside the others", ["what", "how much"], [["a | b", "1\n2"]], "As it was.")


class Result(Struct, frozen=True):
    value: int
    kind: Literal["weights"] = "weights"


SHOWN = Shown(["First.", TABLE], "All of it", [EMPTY, CHART])


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_a_table_stays_a_table_whatever_is_in_its_cells() -> None:
    assert markdown(["First.", TABLE]) == (
        "First.\n\n## Beside the others\n\n| what | how much |\n| --- | --- |\n| a \\| b | 1 2 |\n\nAs it was.\n"
    )


def test_a_report_is_a_result_a_table_and_a_plot(tmp_path: Path) -> None:
    made = tmp_path / "made" / "here"
    files.write(made, Result(1), SHOWN)
    assert names(made) == {"result.json.gz", "table.md", "plot.png"}
    assert (made / "plot.png").read_bytes().startswith(b"\x89PNG")
    table = (made / "table.md").read_text()
    assert table.startswith(markdown(SHOWN.parts))
    assert table.endswith("- More: It is.\n")
    assert "Nothing" not in table
    assert files.kind_of(made) == "weights"
    assert files.read(made, Result) == Result(1)


def test_the_same_result_is_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        files.write(tmp_path / name, Result(1), Shown([], ""))
    one, two = ((tmp_path / name / "result.json.gz").read_bytes() for name in ("one", "two"))
    assert one == two
    # No time, and no name of a file.
    assert one[3:8] == bytes(5)


def test_a_report_without_a_chart_has_no_plot_of_an_earlier_one(tmp_path: Path) -> None:
    files.write(tmp_path, Result(1), SHOWN)
    files.write(tmp_path, Result(1), Shown(["First."], "", [EMPTY]))
    assert names(tmp_path) == {"result.json.gz", "table.md"}


def test_without_matplotlib_all_but_the_plot_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    files.write(tmp_path, Result(1), SHOWN)
    assert names(tmp_path) == {"result.json.gz", "table.md"}
    assert "matplotlib is not installed" in (tmp_path / "table.md").read_text()


async def test_the_table_and_the_plot_are_made_again(tmp_path: Path) -> None:
    files.write(tmp_path, Result(1), SHOWN)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    for name in ("table.md", "plot.png"):
        (tmp_path / name).unlink()
    command = report_command({"weights": lambda folder: msgspec.structs.replace(SHOWN, title="All of it")})
    assert await made_again(command, tmp_path) == before["table.md"].decode()
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


async def test_a_folder_without_a_result_is_an_error(tmp_path: Path) -> None:
    command = report_command({"weights": lambda _folder: SHOWN})
    result = tmp_path / "result.json.gz"
    with pytest.raises(LoadtestError, match=r"holds no result\.json\.gz"):
        await made_again(command, tmp_path)
    for broken in (b"{}", gzip.compress(b"{}"), gzip.compress(b'{"kind": 1}'), gzip.compress(b"{}")[:-4]):
        result.write_bytes(broken)
        with pytest.raises(LoadtestError, match="not a result"):
            await made_again(command, tmp_path)
    result.write_bytes(gzip.compress(b'{"kind": "lengths"}'))
    with pytest.raises(LoadtestError, match="'lengths', which is not a load test"):
        await made_again(command, tmp_path)

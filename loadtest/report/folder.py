"""A report as a folder of files: what was measured, and the table and the plot made from it.

Knows: the names of the files. Must not know: what was measured, how a table or a picture looks.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from loadtest.report import plots
from loadtest.report.content import Chart, Shown
from loadtest.report.markdown import markdown
from loadtest.results import LoadtestError

RESULT = "result.json.gz"
_TABLE, _PLOT = "table.md", "plot.png"

_NOT_DRAWN = (
    "matplotlib is not installed where this was written, so there is no plot; `python -m loadtest report` "
    "draws it elsewhere."
)

_Result = TypeVar("_Result", bound=Struct)


class _Kind(Struct):
    kind: str


def write(folder: Path, result: Struct, shown: Shown) -> str:
    """All files, into `folder`, which is made when it is missing. Returns the table."""
    folder.mkdir(parents=True, exist_ok=True)
    # Without a time in it, the same result is the same file.
    (folder / RESULT).write_bytes(gzip.compress(msgspec.json.encode(result), mtime=0))
    return show(folder, shown)


def show(folder: Path, shown: Shown) -> str:
    """`table.md` and `plot.png`; the result stays as it is. Returns the table."""
    parts = list(shown.parts)
    charts = [chart for chart in shown.charts if _says_something(chart)]
    if charts and plots.available():
        parts += _captions(charts)
        plots.picture(charts, shown.title, folder / _PLOT)
    else:
        parts += [_NOT_DRAWN] if charts else []
        # One of an earlier run.
        (folder / _PLOT).unlink(missing_ok=True)
    table = markdown(parts)
    (folder / _TABLE).write_text(table)
    return table


def kind_of(folder: Path) -> str:
    """Which load test wrote the result in a folder. Raises `LoadtestError` where there is none."""
    return read(folder, _Kind).kind


def read(folder: Path, type_: type[_Result]) -> _Result:
    """The result in a folder. Raises `LoadtestError` where there is none of this type."""
    try:
        return msgspec.json.decode(gzip.decompress((folder / RESULT).read_bytes()), type=type_)
    except FileNotFoundError:
        raise LoadtestError(f"{folder} holds no {RESULT}.") from None
    except (msgspec.DecodeError, OSError, EOFError) as error:
        raise LoadtestError(f"{folder / RESULT} is not a result of this load test: {error}") from None


def _says_something(chart: Chart) -> bool:
    return any(value is not None for series in chart.series for value in series.y)


def _captions(charts: Sequence[Chart]) -> list[str]:
    told = [f"- {chart.title}: {chart.caption}" for chart in charts if chart.caption]
    return [f"In [{_PLOT}]({_PLOT}):", "\n".join(told)] if told else []

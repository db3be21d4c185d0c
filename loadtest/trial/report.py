"""A report as a folder of files, and back again.

Knows: which files there are. Must not know: how anything in them looks or was measured.

`result.json` holds everything but the records, with the summaries of the trials; `utterances.jsonl` the records;
`table.md`, `plot.png` and `report.html` are made from these two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from loadtest.json_lines import as_json
from loadtest.report_folder import write_report
from loadtest.results import LoadtestError
from loadtest.trial import plots, records_file
from loadtest.trial.charts import charts
from loadtest.trial.content import Chart, Figure, Shown, Table
from loadtest.trial.html import page
from loadtest.trial.summary import Summary, summaries
from loadtest.trial.table import markdown
from loadtest.trial.values import Report

__all__ = ["Written", "passed", "read", "render", "table", "write"]

_RESULT, _UTTERANCES, _PAGE = "result.json", "utterances.jsonl", "report.html"


class Written(Report, frozen=True, kw_only=True):
    """`result.json`: a report, whose trials have no records there, and one summary for each name of a trial."""

    summaries: list[Summary]


def write(
    report: Report,
    folder: Path,
    extra_figures: Sequence[Shown] = (),
    *,
    extra_tables: Sequence[Table] = (),
    extra_html: str = "",
) -> None:
    """All files, into `folder`, which is made when it is missing.

    extra_…: what a command shows besides, from `details`. extra_html: a fragment in which everything that is not
    its own is escaped already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records_file.write(folder / _UTTERANCES, report.trials)
    written = _written(report)
    (folder / _RESULT).write_text(as_json(written))
    render(written, folder, extra_figures, extra_tables=extra_tables, extra_html=extra_html)


def table(report: Report, extra_tables: Sequence[Table] = ()) -> str:
    """`table.md`, as a command prints it."""
    return markdown(report, _summaries(report), extra_tables)


def passed(report: Report) -> bool:
    """Whether no bar was missed."""
    return all(finding.passed is not False for finding in report.findings)


def _summaries(report: Report) -> list[Summary]:
    return report.summaries if isinstance(report, Written) else summaries(report.trials, report.objective)


def _written(report: Report) -> Written:
    own = {name: getattr(report, name) for name in Report.__struct_fields__}
    own["trials"] = [msgspec.structs.replace(trial, records=[]) for trial in report.trials]
    return Written(**own, summaries=_summaries(report))


def render(
    written: Written,
    folder: Path,
    extra_figures: Sequence[Shown] = (),
    *,
    extra_tables: Sequence[Table] = (),
    extra_html: str = "",
    said: str = "",
) -> None:
    """`table.md`, `plot.png` and `report.html`; what they are made from stays. said: a sentence on the report."""
    shown: list[Shown] = []
    drawn = charts(written, written.summaries)
    if plots.available():
        shown = [each for each in (*extra_figures, *drawn) if isinstance(each, Figure) or _says_something(each)]
    else:
        shown = [each for each in extra_figures if isinstance(each, Figure)]
        said = " ".join(filter(None, [said, _NOT_DRAWN]))
    write_report(
        folder,
        result=None,
        table=markdown(written, written.summaries, extra_tables, said),
        plot=_plot(written, [each for each in shown if isinstance(each, Chart)]),
        more={
            _PAGE: page(written, written.summaries, shown, tables=extra_tables, extra_html=extra_html, said=said)
        },
    )


def _says_something(chart: Chart) -> bool:
    return any(value is not None for series in chart.series for value in series.y)


_NOT_DRAWN = (
    "matplotlib is not installed where this was written, so it has no figures; `report` makes them elsewhere."
)
_IN_OVERVIEW = 4


def _plot(written: Written, drawn: Sequence[Chart]) -> Callable[[Path], None] | None:
    """The few pictures that stand for all: what the command drew itself first."""
    chosen = [each for each in drawn if each.overview][:_IN_OVERVIEW] or list(drawn[:_IN_OVERVIEW])
    if not chosen:
        return None
    machine = written.machine
    on = machine.gpus[0] if machine.gpus else f"{machine.cpu}, {machine.cores} cores"
    return partial(plots.overview, chosen, f"{written.kind}: {written.model} on {on}")


def read(folder: Path) -> tuple[Written, str]:
    """The report that a folder holds, and a sentence on what is missing there, or nothing.

    Summaries are made again where all records are there. Raises `LoadtestError` for a folder without a result.
    """
    try:
        written = msgspec.json.decode((folder / _RESULT).read_bytes(), type=Written)
    except FileNotFoundError:
        raise LoadtestError(f"{folder} holds no {_RESULT}.") from None
    except msgspec.DecodeError as error:
        raise LoadtestError(f"{folder / _RESULT} is no result of a load test: {error}") from None
    path = folder / _UTTERANCES
    if not path.exists():
        return written, f"{_UTTERANCES} is missing: the numbers are those that {_RESULT} holds."
    kept = records_file.read(path)
    if kept.cut_off:
        return written, f"The last line of {_UTTERANCES} is cut off: the numbers are those that {_RESULT} holds."
    trials = [
        msgspec.structs.replace(trial, records=kept.records.get((trial.name, trial.repetition), []))
        for trial in written.trials
    ]
    again = summaries(trials, written.objective)
    if [each.records for each in again] != [each.records for each in written.summaries]:
        return written, f"{_UTTERANCES} does not have all records: the numbers are those that {_RESULT} holds."
    return msgspec.structs.replace(written, summaries=again), ""

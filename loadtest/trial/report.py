"""The report of trials: which tables and charts it has, what of it is written to which file, and how it is read.

Knows: what a report of trials consists of. Must not know: how anything in it was measured or is drawn.

`result.json.gz` holds everything but the records, with the summaries of the trials; `utterances.jsonl` holds the
records; `table.md` and `plot.png` are made from these two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from loadtest.report import folder as files
from loadtest.report.content import Chart, Shown, Table
from loadtest.report.markdown import markdown
from loadtest.trial import records_file
from loadtest.trial.charts import charts
from loadtest.trial.summary import Summary, summaries
from loadtest.trial.table import parts
from loadtest.trial.values import Report

__all__ = ["Extras", "Written", "again", "passed", "table", "write"]

_UTTERANCES = "utterances.jsonl"
# Of the charts that there are, so many are in the picture: those of the command itself come first.
_MOST_CHARTS = 4


class Extras(Struct, frozen=True):
    """What a command shows besides, from the `details` of its report."""

    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()


class Written(Report, frozen=True, kw_only=True):
    """`result.json.gz`: a report whose trials have no records there, and one summary for each name of a trial."""

    summaries: list[Summary]


def write(
    report: Report, folder: Path, extra_charts: Sequence[Chart] = (), *, extra_tables: Sequence[Table] = ()
) -> None:
    """All files, into `folder`, which is made when it is missing. extra_…: what a command shows besides."""
    folder.mkdir(parents=True, exist_ok=True)
    records_file.write(folder / _UTTERANCES, report.trials)
    written = _written(report)
    files.write(folder, written, _shown(written, Extras(extra_charts, extra_tables)))


def table(report: Report, extra_tables: Sequence[Table] = ()) -> str:
    """`table.md`, as a command prints it."""
    return markdown(parts(report, summaries(report.trials, report.objective), extra_tables))


def passed(report: Report) -> bool:
    """Whether no bar was missed."""
    return all(finding.passed is not False for finding in report.findings)


def again(extras: Callable[[Report], Extras]) -> Callable[[Path], Shown]:
    """What reads a report from its folder and says what is shown of it. extras: of the command that wrote it."""

    def shown(folder: Path) -> Shown:
        written, missing = _read(folder)
        return _shown(written, extras(written), missing)

    return shown


def _written(report: Report) -> Written:
    own = {name: getattr(report, name) for name in Report.__struct_fields__}
    own["trials"] = [msgspec.structs.replace(trial, records=[]) for trial in report.trials]
    return Written(**own, summaries=summaries(report.trials, report.objective))


def _shown(written: Written, extras: Extras, missing: str = "") -> Shown:
    machine = written.machine
    on = machine.gpus[0] if machine.gpus else f"{machine.cpu}, {machine.cores} cores"
    told = [*parts(written, written.summaries, extras.tables), *([missing] if missing else [])]
    drawn = [*extras.charts, *charts(written, written.summaries)]
    return Shown(told, f"{written.kind}: {written.model} on {on}", drawn[:_MOST_CHARTS])


def _read(folder: Path) -> tuple[Written, str]:
    """The report that a folder holds, and a sentence on what is missing there, or nothing.

    Summaries are made again where all records are there. Raises `LoadtestError` for a folder without a result.
    """
    written = files.read(folder, Written)
    path = folder / _UTTERANCES
    if not path.exists():
        return written, f"Without {_UTTERANCES}: the numbers are those that {files.RESULT} holds."
    kept = records_file.read(path)
    if kept.cut_off:
        return (
            written,
            f"{_UTTERANCES} is cut off: the numbers are those that {files.RESULT} holds.",
        )
    trials = [
        msgspec.structs.replace(trial, records=kept.records.get((trial.name, trial.repetition), []))
        for trial in written.trials
    ]
    again = summaries(trials, written.objective)
    if [each.records for each in again] != [each.records for each in written.summaries]:
        return written, f"{_UTTERANCES} lacks records: the numbers are those that {files.RESULT} holds."
    return msgspec.structs.replace(written, summaries=again), ""

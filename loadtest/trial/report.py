"""The report of trials: which tables and charts it has, what of it is written to which file, and how it is read.

Knows: what a report of trials consists of. Must not know: how anything in it was measured or is drawn.

`result.json.gz` holds everything but the records, with the summaries of the trials; `table.md` and `plot.png` are
made from it. `utterances.jsonl` holds the records, one a line, with the name and the repetition of their trial.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from loadtest.machine import describe
from loadtest.report import folder as files
from loadtest.report.commands import Command, Say
from loadtest.report.content import Chart, Shown, Table
from loadtest.trial.charts import charts
from loadtest.trial.summary import Summary, summaries
from loadtest.trial.table import parts
from loadtest.trial.values import Report, Results, Trial

_UTTERANCES = "utterances.jsonl"
# Of the charts that there are, so many are in the picture: those of the command itself come first.
_MOST_CHARTS = 4


class Extras(Struct, frozen=True):
    """What a command shows besides."""

    charts: Sequence[Chart] = ()
    # Behind the findings.
    parts: Sequence[str | Table] = ()


class Written(Report, frozen=True, kw_only=True):
    """`result.json.gz`: a report whose trials have no records there, and one summary for each name of a trial."""

    summaries: list[Summary]


_MakeExtras = Callable[[Written], Extras]
"""A command's own, from the result."""


def _nothing(_report: Written) -> Extras:
    return Extras()


# ---------------------------------------------------------------- a command


def trial_command(
    name: str,
    help_: str,
    description: str,
    add: Callable[[argparse.ArgumentParser], None],
    run: Callable[[argparse.Namespace, Say], Coroutine[None, None, Results]],
    extras: _MakeExtras = _nothing,
) -> Command[Report]:
    """add, run: as in `Command`. extras: what the command shows besides."""

    async def report(options: argparse.Namespace, command: str, say: Say) -> Report:
        began, machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), describe()
        results = await run(options, say)
        own = {each: getattr(results, each) for each in Results.__struct_fields__}
        return Report(kind=name, command=command, began=began, machine=machine, **own)

    return Command(
        name=name,
        help=help_,
        description=description,
        add=add,
        run=report,
        write=lambda made, folder: write(made, folder, extras),
        passed=passed,
        again=again(extras),
    )


def write(report: Report, folder: Path, extras: _MakeExtras = _nothing) -> str:
    """All files, into `folder`, which is made when it is missing. Returns the table."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_records(folder / _UTTERANCES, report.trials)
    written = _written(report)
    return files.write(folder, written, _shown(written, extras))


def passed(report: Results) -> bool:
    """Whether no bar was missed."""
    return all(finding.passed is not False for finding in report.findings)


def again(extras: _MakeExtras = _nothing) -> Callable[[Path], Shown]:
    """What reads a report from its folder and says what is shown of it. extras: of the command that wrote it."""
    return lambda folder: _shown(files.read(folder, Written), extras)


def _written(report: Report) -> Written:
    own = {name: getattr(report, name) for name in Report.__struct_fields__}
    own["trials"] = [msgspec.structs.replace(trial, records=[]) for trial in report.trials]
    return Written(**own, summaries=summaries(report.trials, report.objective))


def _shown(written: Written, extras: _MakeExtras) -> Shown:
    machine = written.machine
    on = machine.gpus[0] if machine.gpus else f"{machine.cpu}, {machine.cores} cores"
    more = extras(written)
    drawn = [*more.charts, *charts(written, written.summaries)][:_MOST_CHARTS]
    title = f"{written.kind}: {written.model} on {on}"
    return Shown(list(parts(written, written.summaries, more.parts)), title, drawn)


# ---------------------------------------------------------------- the file of the records


class _Of(Struct, frozen=True):
    trial: str
    repetition: int


def _write_records(path: Path, trials: Iterable[Trial]) -> None:
    """All records of all trials."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        for trial in trials:
            of = encode(_Of(trial.name, trial.repetition))[:-1] + b","
            for record in trial.records:
                file.write(of + encode(record)[1:] + b"\n")

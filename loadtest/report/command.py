"""`python -m loadtest report`: a report made again from its folder.

Knows: the names of the options. Must not know: what was measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from loadtest.commands import Command, Say
from loadtest.trial import report
from loadtest.trial.content import Shown, Table
from loadtest.trial.table import markdown
from loadtest.trial.values import Report

__all__ = ["Extras", "report_command"]


class Extras(Struct, frozen=True):
    """What a command shows besides, as `report.write` takes it."""

    figures: Sequence[Shown] = ()
    tables: Sequence[Table] = ()
    html: str = ""


class _Again(Struct, frozen=True):
    """said: what is missing in the folder, or nothing."""

    written: report.Written
    said: str


def report_command(extras: Mapping[str, Callable[[Report], Extras]]) -> Command[_Again]:
    """extras: kind of a report → what its command makes of the report's `details`."""

    def extra(again: _Again) -> Extras:
        made = extras.get(again.written.kind)
        return Extras() if made is None else made(again.written)

    def write(again: _Again, folder: Path) -> None:
        own = extra(again)
        report.render(
            again.written, folder, own.figures, extra_tables=own.tables, extra_html=own.html, said=again.said
        )

    def table(again: _Again) -> str:
        return markdown(again.written, again.written.summaries, extra(again).tables, again.said)

    return Command(
        name="report",
        help="the table, the picture and the page of an earlier load test, made again",
        description="Makes table.md, plot.png and report.html again, from the result.json and the "
        "utterances.jsonl of a folder; without the latter from the summaries in the former. Both stay as they "
        "are.",
        add=_add,
        run=_run,
        write=write,
        table=table,
        passed=lambda _again: True,
    )


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="FOLDER", help="where an earlier load test was written to")


async def _run(options: argparse.Namespace, _command: str, _say: Say) -> _Again:
    return _Again(*report.read(options.out))

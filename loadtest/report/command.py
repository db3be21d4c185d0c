"""`python -m loadtest report`: the table and the picture of an earlier load test, made again.

Knows: which kind of result a folder holds. Must not know: what was measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from loadtest.commands import Command, Say
from loadtest.report.content import Shown
from loadtest.report.folder import RESULT, kind_of, show
from loadtest.report.markdown import markdown
from loadtest.results import LoadtestError

__all__ = ["report_command"]


def report_command(kinds: Mapping[str, Callable[[Path], Shown]]) -> Command[Shown]:
    """kinds: kind of a result → what reads it from a folder, and says what is shown of it."""

    async def run(options: argparse.Namespace, _command: str, _say: Say) -> Shown:
        kind = kind_of(options.out)
        if kind not in kinds:
            raise LoadtestError(f"{options.out / RESULT} is of {kind!r}, which is not a load test.")
        return kinds[kind](options.out)

    def write(shown: Shown, folder: Path) -> None:
        show(folder, shown)

    return Command(
        name="report",
        help="the table and the plot of an earlier load test, made again",
        description=f"Makes table.md and plot.png again, from the {RESULT} and, where there is one, the "
        "utterances.jsonl of a folder. Both stay as they are.",
        add=_add,
        run=run,
        write=write,
        table=lambda shown: markdown(shown.parts),
        passed=lambda _shown: True,
    )


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="FOLDER", help="where an earlier load test was written to")

"""What a subcommand of `python -m loadtest` is, the numbers its options take, and `report`, which every kind has.

Knows: argparse, folders of results. Must not know: which subcommands there are, or how anything is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from loadtest.report.content import Shown
from loadtest.report.folder import RESULT, kind_of, show
from loadtest.results import LoadtestError

_Result = TypeVar("_Result")
_Number = TypeVar("_Number", int, float)

Say = Callable[[str], object]
"""Takes one short line on what is going on."""


@dataclass(frozen=True)
class Command(Generic[_Result]):
    """A load test."""

    name: str
    help: str
    description: str
    # Adds its options.
    add: Callable[[argparse.ArgumentParser], None]
    # Measures. It gets the options, the command as it can be repeated, and whom to tell what is going on. Raises
    # `LoadtestError`.
    run: Callable[[argparse.Namespace, str, Say], Coroutine[None, None, _Result]]
    # Writes its files into a folder. Returns what is printed.
    write: Callable[[_Result, Path], str]
    # Whether the exit status is 0.
    passed: Callable[[_Result], bool]
    # What is shown of the result in a folder.
    again: Callable[[Path], Shown]


def add_out(parser: argparse.ArgumentParser) -> None:
    """The option that every load test has."""
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="where the files of the report go"
    )


def between(low: int, high: int) -> Callable[[str], int]:
    """A whole number within bounds."""
    return _within(int, low, high)


def from_(low: float, high: float) -> Callable[[str], float]:
    """A number within bounds."""
    return _within(float, low, high)


def _within(kind: Callable[[str], _Number], low: _Number, high: _Number) -> Callable[[str], _Number]:
    def number(text: str) -> _Number:
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"has to be between {low:g} and {high:g}")
        return value

    return number


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them, each once."""
    number = between(1, 16_384)
    return tuple(dict.fromkeys(number(part) for part in text.split(",")))


def report_command(kinds: Mapping[str, Callable[[Path], Shown]]) -> Command[Shown]:
    """Makes the table and the picture of an earlier load test again.

    kinds: kind of a result → what reads it from a folder, and says what is shown of it.
    """

    async def run(options: argparse.Namespace, _command: str, _say: Say) -> Shown:
        kind = kind_of(options.out)
        if kind not in kinds:
            raise LoadtestError(f"{options.out / RESULT} is of {kind!r}, which is not a load test.")
        return kinds[kind](options.out)

    return Command(
        name="report",
        help="the table and the plot of an earlier load test, made again",
        description=f"Makes table.md and plot.png again, from the {RESULT} and, where there is one, the "
        "utterances.jsonl of a folder. Both stay as they are.",
        add=_add_folder,
        run=run,
        write=lambda shown, folder: show(folder, shown),
        passed=lambda _shown: True,
        again=lambda folder: kinds[kind_of(folder)](folder),
    )


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="FOLDER", help="where an earlier load test was written to")

"""What a subcommand of `python -m loadtest` is, and the numbers its options take.

Knows: argparse. Must not know: which subcommands there are, or how anything is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

__all__ = ["Command", "Say", "add_out", "between", "flags", "from_", "numbers"]

_Result = TypeVar("_Result")

Say = Callable[[str], object]
"""Takes one short line on what is going on."""


@dataclass(frozen=True)
class Command(Generic[_Result]):
    """A load test. add: its options. run: measures; it gets the options, the command as it can be repeated, and
    whom to tell what is going on, and raises `LoadtestError`. write: its files, into a folder. table: what is
    printed. passed: whether the exit status is 0."""

    name: str
    help: str
    description: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, str, Say], Coroutine[None, None, _Result]]
    write: Callable[[_Result, Path], None]
    table: Callable[[_Result], str]
    passed: Callable[[_Result], bool]


def add_out(parser: argparse.ArgumentParser) -> None:
    """The option that every load test has."""
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="where the files of the report go"
    )


def flags(names: Iterable[str]) -> str:
    """Options as they are given on the command line, by their names in the namespace."""
    return ", ".join("--" + name.replace("_", "-") for name in names)


def between(low: int, high: int) -> Callable[[str], int]:
    """A whole number within bounds."""

    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"has to be between {low} and {high}")
        return value

    return number


def from_(low: float, high: float) -> Callable[[str], float]:
    """A number within bounds."""

    def number(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"has to be between {low:g} and {high:g}")
        return value

    return number


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them, each once."""
    number = between(1, 1024)
    return tuple(dict.fromkeys(number(part) for part in text.split(",")))

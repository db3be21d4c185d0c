"""What a subcommand of `python -m loadtest` is, and the numbers its options take.

Knows: argparse. Must not know: which subcommands there are, or how anything is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from loadtest.trial.values import Results

_Number = TypeVar("_Number", int, float)

Say = Callable[[str], object]
"""Takes one short line on what is going on."""


@dataclass(frozen=True)
class Command:
    """A load test."""

    name: str
    help: str
    description: str
    # Adds its options.
    add: Callable[[argparse.ArgumentParser], None]
    # Measures; it gets the options, and whom to tell what is going on. Raises `LoadtestError`.
    run: Callable[[argparse.Namespace, Say], Coroutine[None, None, Results]]


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

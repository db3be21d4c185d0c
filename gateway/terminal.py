"""Lines that change in place on a terminal, for translations that grow while they are read.

Knows: display width, a few ANSI sequences. Must not know: what the lines say, sockets.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from typing import TextIO

__all__ = ["LiveLines", "can_redraw", "cells", "printable", "tail"]

_CLEAR_LINE = "\x1b[2K"
_CLEAR_BELOW = "\x1b[J"


def can_redraw(out: TextIO, lines: int) -> bool:
    """Whether so many lines can be redrawn in place: a terminal that understands ANSI and is tall enough."""
    if not out.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return lines < _size(out).lines


def cells(text: str) -> int:
    """How many columns a text takes: two for a wide character, none for a combining one."""
    return sum(_cells(character) for character in text)


def tail(text: str, columns: int) -> str:
    """The end of a text that fits into so many columns, marked with `…` where its beginning is left out."""
    if cells(text) <= columns:
        return text
    kept, width = len(text), 1
    while kept and width + _cells(text[kept - 1]) <= columns:
        kept -= 1
        width += _cells(text[kept])
    return "…" + text[kept:]


def printable(text: str) -> str:
    """A text on one line: what would move the cursor or switch a terminal's modes becomes a space."""
    return "".join(" " if unicodedata.category(character) == "Cc" else character for character in text)


class LiveLines:
    """A block of labelled lines at the bottom of the screen, redrawn until it is finished.

    While a block lives, each line shows the end of its text, because a line that wraps cannot be found again.
    """

    def __init__(self, out: TextIO, labels: Sequence[str]) -> None:
        self._out = out
        width = max(map(cells, labels), default=0)
        self._labels = [label + " " * (width - cells(label) + 2) for label in labels]
        self._indent = width + 2
        self._drawn = False

    def draw(self, texts: Sequence[str]) -> None:
        """Show the texts as they are now, one per label."""
        # One column stays free: some terminals wrap as soon as the last one is filled.
        room = max(1, _size(self._out).columns - self._indent - 1)
        lines = [
            _CLEAR_LINE + label + tail(printable(text), room)
            for label, text in zip(self._labels, texts, strict=True)
        ]
        self._write("\n".join(lines))
        self._drawn = True

    def finish(self, texts: Sequence[str]) -> None:
        """Show the texts in full and leave the cursor below them."""
        lines = [label + printable(text) for label, text in zip(self._labels, texts, strict=True)]
        self._write(_CLEAR_BELOW + "\n".join(lines) + "\n")
        self._drawn = False

    def leave(self) -> None:
        """Go below what is shown, for whatever is said next; it stays as it is."""
        if self._drawn:
            self._out.write("\n")
            self._out.flush()
            self._drawn = False

    def _write(self, block: str) -> None:
        up = len(self._labels) - 1
        home = ("\r" + (f"\x1b[{up}A" if up else "")) if self._drawn else ""
        self._out.write(home + block)
        self._out.flush()


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _size(out: TextIO) -> os.terminal_size:
    try:
        size = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        return os.terminal_size((80, 24))
    # A terminal that does not know its size says 0.
    return os.terminal_size((size.columns or 80, size.lines or 24))

"""Redraws lines in place on a terminal, for translations that grow while they are read.

Knows: display width, a few ANSI sequences, and which characters must not reach a terminal.
Must not know: what the lines say, sockets.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple, TextIO

_CLEAR_LINE = "\x1b[2K"
_CLEAR_BELOW = "\x1b[J"
_DIM = "\x1b[2m"
_PLAIN = "\x1b[0m"

# Without red, which looks like an error, and black, which may be invisible.
_COLOURS = ("\x1b[36m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[34m")

# Most unfinished rows on the screen; more cannot be read at once.
_MOST_ROWS = 6

# Characters that change the direction of the text after them.
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

# What JSON allows in a text, and a terminal should not get: control characters that JSON does not escape, breaks
# of lines, changes of direction.
_UNPRINTABLE = re.compile(f"[\x7f-\x9f\u2028\u2029{''.join(_DIRECTIONS)}]")


def can_redraw(out: TextIO, lines: int) -> bool:
    """Whether `lines` lines can be redrawn in place: needs a terminal with ANSI sequences and enough height."""
    if not out.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return lines < _size(out).lines


def styled(out: TextIO) -> bool:
    """Whether to use colours: needs a terminal with ANSI sequences, and no `NO_COLOR` in the environment."""
    return can_redraw(out, 1) and not os.environ.get("NO_COLOR")


def cells(text: str) -> int:
    """The display width of a text in columns: two for a wide character, none for a combining one."""
    return sum(_cells(character) for character in text)


def tail(text: str, columns: int) -> str:
    """The end of a text that fits into `columns`, with `…` in front if its beginning is left out."""
    if cells(text) <= columns:
        return text
    kept, width = len(text), 1
    while kept and width + _cells(text[kept - 1]) <= columns:
        kept -= 1
        width += _cells(text[kept])
    return "…" + text[kept:]


def head(text: str, columns: int) -> str:
    """The beginning of a text that fits into `columns`, followed by `…` if its end is left out."""
    if cells(text) <= columns:
        return text
    kept, width = 0, 1
    while width + _cells(text[kept]) <= columns:
        width += _cells(text[kept])
        kept += 1
    return text[:kept] + "…"


def printable(text: str) -> str:
    """The text on one line, without control characters."""
    return "".join(map(_printable, text))


def escaped(json: str) -> str:
    """JSON with the same meaning, in which characters that must not reach a terminal are escape sequences."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


class LiveLines:
    """A block of labelled lines at the bottom of the screen, redrawn until it is finished.

    Until it is finished, each line shows only the end of its text: a line that wraps could not be redrawn.
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
        """Move the cursor below the block, which stays as it is."""
        if self._drawn:
            self._out.write("\n")
            self._out.flush()
            self._drawn = False

    def _write(self, block: str) -> None:
        up = len(self._labels) - 1
        home = ("\r" + (f"\x1b[{up}A" if up else "")) if self._drawn else ""
        self._out.write(home + block)
        self._out.flush()


class Row(NamedTuple):
    """A line to show. Its texts must be `printable`."""

    label: str
    text: str
    # Shown after `text`; may still change.
    tentative: str = ""
    dim: bool = False
    # Any number. Equal numbers have the same colour.
    colour: int | None = None


class LiveArea:
    """Finished rows that scroll up, and below them a few unfinished ones that are redrawn in place.

    An unfinished row shows the end of its text on one line of the screen; a finished one is shown in full.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._styled = styled(out)
        self._drawn: list[int] = []  # width of each unfinished row on the screen, in columns

    @property
    def room(self) -> int:
        """How many unfinished rows fit on the screen."""
        return max(1, min(_MOST_ROWS, _size(self._out).lines - 2))

    def show(self, finished: Sequence[Row], unfinished: Sequence[Row]) -> None:
        """Print the finished rows, and redraw the unfinished ones below them."""
        columns = _size(self._out).columns
        erased = self._home(columns) + _CLEAR_BELOW if self._drawn else ""
        # One column stays free: some terminals wrap as soon as the last one is filled.
        shown = [_fit(row, columns - 1) for row in unfinished]
        above = "".join(self._style(row) + "\n" for row in finished)
        self._out.write(erased + above + "\n".join(map(self._style, shown)))
        self._out.flush()
        self._drawn = [cells(row.label + row.text + row.tentative) for row in shown]

    def leave(self) -> None:
        """Erase the unfinished rows, and the `^C` of the key that ended the command."""
        self._out.write(self._home(_size(self._out).columns) + _CLEAR_BELOW)
        self._out.flush()
        self._drawn = []

    def _home(self, columns: int) -> str:
        """The ANSI sequence that moves the cursor to the start of the unfinished rows."""
        # If the terminal has become narrower, it has wrapped the rows.
        up = max(0, sum(max(1, -(-width // columns)) for width in self._drawn) - 1)
        return "\r" + (f"\x1b[{up}A" if up else "")

    def _style(self, row: Row) -> str:
        label, text, tentative = row.label, row.text, row.tentative
        if not self._styled:
            return label + text + tentative
        if row.dim:
            return f"{_DIM}{label}{text}{tentative}{_PLAIN}"
        if label and row.colour is not None:
            label = f"{_COLOURS[row.colour % len(_COLOURS)]}{label}{_PLAIN}"
        if tentative:
            tentative = f"{_DIM}{tentative}{_PLAIN}"
        return label + text + tentative


def _fit(row: Row, columns: int) -> Row:
    """The row cut to one line: the label takes at most half of it, the end of the text the rest."""
    label = head(row.label, max(1, columns // 2))
    shown = tail(row.text + row.tentative, max(1, columns - cells(label)))
    tentative = min(len(row.tentative), len(shown))
    cut = len(shown) - tentative
    return row._replace(label=label, text=shown[:cut], tentative=shown[cut:])


def _printable(character: str) -> str:
    match unicodedata.category(character):
        case "Cc" | "Zl" | "Zp":
            return " "
        case "Cs":  # half of a surrogate pair, which cannot be encoded
            return "\ufffd"
        case "Cf" if character in _DIRECTIONS:
            return ""
        case _:
            return character


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _size(out: TextIO) -> os.terminal_size:
    try:
        size = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        return os.terminal_size((80, 24))
    # A terminal that does not know its size reports 0.
    return os.terminal_size((size.columns or 80, size.lines or 24))

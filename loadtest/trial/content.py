"""What a report shows: tables and charts as values, and tables as Markdown.

Must not know: what they are about, how a chart is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

_Row = TypeVar("_Row")

NONE = "–"
"""In a cell of which nothing is known."""


class Table(Struct, frozen=True):
    """Rows under a head."""

    # The heading; empty for none.
    title: str
    head: Sequence[str]
    # The first cell of a row names it.
    rows: Sequence[Sequence[str]]
    # How to read it.
    caption: str = ""


def tabulated(
    title: str, items: Iterable[_Row], columns: Iterable[tuple[str, Callable[[_Row], str]]], caption: str = ""
) -> Table:
    """A row for each item. columns: their heads, and what is in their cells."""
    heads, cells = zip(*columns, strict=True)
    return Table(title, list(heads), [[cell(each) for cell in cells] for each in items], caption)


class Series(Struct, frozen=True):
    """One line of a chart."""

    name: str
    x: Sequence[float]
    # None leaves a gap.
    y: Sequence[float | None]
    # Whether each point is marked.
    markers: bool = True
    # Whether the points are connected.
    line: bool = True


class Chart(Struct, frozen=True, kw_only=True):
    """Lines over two axes."""

    title: str
    # The labels of the axes, with units.
    x_label: str
    y_label: str = ""
    series: Sequence[Series]
    # Words and the place on the x axis at which an upright line has them.
    marks: Sequence[tuple[str, float]] = ()
    # Places on the x axis and what is written there; empty: the numbers themselves.
    x_ticks: Sequence[tuple[float, str]] = ()
    log_y: bool = False


def markdown(parts: Iterable[str | Table]) -> str:
    """A whole document, with an empty line between its parts."""
    return "\n\n".join(text for part in parts for text in _texts(part)) + "\n"


def number(value: float | None) -> str:
    """Three digits that count, more of large numbers."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def formatted(value: float | None, form: str) -> str:
    """As in `format`, where it is known."""
    return NONE if value is None else f"{value:{form}}"


def _texts(part: str | Table) -> Iterator[str]:
    if isinstance(part, str):
        yield part
        return
    if part.title:
        yield f"## {_plain(part.title)}"
    lines = [part.head, ["---"] * len(part.head), *part.rows]
    yield "\n".join("| " + " | ".join(map(_plain, cells)) + " |" for cells in lines)
    if part.caption:
        yield part.caption


def _plain(cell: str) -> str:
    """In one cell, whatever it says."""
    return " ".join(cell.replace("|", "\\|").split())

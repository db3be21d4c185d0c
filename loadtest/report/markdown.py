"""Tables and paragraphs as Markdown. Must not know what they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loadtest.report.content import Table

NONE = "–"
"""In a cell of which nothing is known."""


def markdown(parts: Iterable[str | Table]) -> str:
    """A whole document, with an empty line between its parts."""
    return "\n\n".join(text for part in parts for text in _texts(part)) + "\n"


def number(value: float | None) -> str:
    """Three digits that count, more of large numbers."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


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

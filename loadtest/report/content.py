"""What a report shows, as values: tables, charts, figures.

Knows: what people read from them. Must not know: HTML, Markdown, how anything is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

__all__ = ["MOST_SERIES", "Chart", "Figure", "Mark", "Series", "Shown", "Table"]

MOST_SERIES = 12
"""More in one chart cannot be told apart."""


class Table(Struct, frozen=True):
    """Rows under a head; the first cell of a row names it. caption: how to read it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


class Series(Struct, frozen=True):
    """One line of a chart; a null leaves a gap. low, high: a whisker at each point, or empty.

    colour: which of the palette; null takes the next. style: 0 solid, 1 dashed, 2 dotted, for lines that belong
    together. markers: whether each point is marked. panel: charts in which any series has one get a row for each.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    colour: int | None = None
    style: int = 0
    markers: bool = True
    panel: str = ""


class Mark(Struct, frozen=True):
    """A straight line with words on it. axis: `y` for a height, `x` for a place on that axis, `both` for x = y."""

    label: str
    at: float = 0.0
    axis: str = "y"


class Chart(Struct, frozen=True, kw_only=True):
    """Lines over two axes with units in their labels; at most MOST_SERIES, or as many panels. One without any
    value is not shown. log_y: where the values are far enough apart for it.

    x_ticks: places on the x axis and what is written there; empty leaves that to the numbers themselves. bars:
    each series is one bar instead, as long as the first of its `y`. overview: fit for the one picture that stands
    for the whole report.
    """

    title: str
    caption: str
    x_label: str
    y_label: str = ""
    series: Sequence[Series]
    marks: Sequence[Mark] = ()
    x_ticks: Sequence[tuple[float, str]] = ()
    log_x: bool = False
    log_y: bool = False
    bars: bool = False
    overview: bool = False


class Figure(Struct, frozen=True):
    """A picture that a command drew itself, as SVG or PNG; it has to be readable on light and on dark."""

    title: str
    caption: str
    svg: str = ""
    png: bytes = b""


Shown = Chart | Figure

"""Charts drawn with matplotlib: as SVG whose colours and fonts are those of the page around it, and as a PNG.

Knows: matplotlib, which may be missing (`available`). Must not know: what the charts are about.
"""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadtest.trial.content import MOST_SERIES, Chart, Mark, Series
from loadtest.trial.inline_svg import inline

__all__ = ["LETTERS", "PALETTE", "available", "keyed", "overview", "svg"]

LETTERS = "ABCDEFGHIJKL"

# Told apart by people who see few colours, beside markers, dashes and words at the lines' ends.
PALETTE = (
    *("#0072b2", "#d55e00", "#00875f", "#aa4499", "#a87400", "#2b95c3"),
    *("#882255", "#6b7580", "#2e8b80", "#4b3fb0", "#7d7d1e", "#222222"),
)
_MARKERS = "os^DvPX*<>hp"
_DASHES = ("solid", (0, (4, 2)), (0, (1, 1.5)))
_INK, _FAINT = "#1b2430", "#8a949e"
# Colours that stand for those of the page until the SVG is done.
_INK_OF_PAGE, _FAINT_OF_PAGE = "#fe00f0", "#fe00f1"
_OF_PAGE = tuple(f"#fe00{number:02x}" for number in range(MOST_SERIES))
_VARIABLES = {
    _INK_OF_PAGE: "var(--ink)",
    _FAINT_OF_PAGE: "var(--faint)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(_OF_PAGE)},
}

# Inches at 72 points: about the width of a phone in CSS pixels, so that words stay readable there.
_WIDTH, _HEIGHT, _FONT = 4.7, 3.4, 10.0
_LONGEST_LABEL = 18
# What a picture of this width can show of one line.
_MOST_POINTS = 600
_WORTH_A_LOGARITHM = 4
# So many places on a logarithmic axis are each written there.
_FEW = 8


class _Ink:
    """In which colours something is drawn."""

    def __init__(self, ink: str, faint: str, palette: Sequence[str]) -> None:
        self.ink = ink
        self.faint = faint
        self.palette = palette

    def of(self, series: Series, number: int) -> str:
        return self.palette[(number if series.colour is None else series.colour) % len(self.palette)]


_FOR_PAGE = _Ink(_INK_OF_PAGE, _FAINT_OF_PAGE, _OF_PAGE)
_FOR_PNG = _Ink(_INK, _FAINT, PALETTE)


def available() -> bool:
    """Whether anything can be drawn here."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        return False
    return True


def keyed(chart: Chart) -> bool:
    """Whether its series carry letters, because their names are too long to stand beside the lines."""
    if chart.bars or _panels(chart) or len(chart.series) == 1:
        return False
    return any(len(series.name) > _LONGEST_LABEL for series in chart.series)


def svg(chart: Chart, prefix: str) -> str:
    """An `svg` element to stand in a page; its colours are `var(--ink)`, `var(--faint)`, `var(--series-0)` ….

    prefix: of its ids, which have to be the page's only ones.
    """
    pyplot = _pyplot()
    with pyplot.rc_context(
        _settings(_FOR_PAGE) | {"svg.fonttype": "none", "svg.hashsalt": "", "path.snap": False}
    ):
        figure = _figure(chart, _FOR_PAGE)
        file = io.StringIO()
        _save(figure, file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    return inline(file.getvalue(), prefix, _VARIABLES)


def overview(charts: Sequence[Chart], title: str, file: Path) -> None:
    """Up to four charts in one picture."""
    pyplot = _pyplot()
    columns = min(len(charts), 2)
    rows = -(-len(charts) // 2)
    with pyplot.rc_context(_settings(_FOR_PNG)):
        height = max(_height(chart) for chart in charts)
        figure = pyplot.figure(figsize=(6.2 * columns, height * 1.15 * rows + 0.4), layout="constrained")
        figure.suptitle(title, fontsize=12)
        parts = figure.subfigures(rows, columns, squeeze=False)
        for part, chart in zip(parts.flat, charts, strict=False):
            part.suptitle(chart.title, fontsize=10.5)
            _draw(part, chart, _FOR_PNG, letters=False)
        _save(figure, file, dpi=130)
        pyplot.close(figure)


def _save(figure: Any, file: Any, **options: Any) -> None:
    with warnings.catch_warnings():
        # A name may be in any script; only the PNG shows boxes for what this font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(file, **options)


# ---------------------------------------------------------------- drawing


def _pyplot() -> Any:
    # Imported here: a second that others need not wait, and a package that need not be there.
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _settings(ink: _Ink) -> dict[str, Any]:
    return {
        "font.size": _FONT,
        "axes.edgecolor": ink.faint,
        "axes.labelcolor": ink.ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": ink.faint,
        "grid.alpha": 0.35,
        "grid.linewidth": 0.6,
        "text.color": ink.ink,
        "xtick.color": ink.faint,
        "ytick.color": ink.faint,
        "xtick.labelcolor": ink.ink,
        "ytick.labelcolor": ink.ink,
        "axes.unicode_minus": False,
        # A dollar sign in a name is a dollar sign.
        "text.parse_math": False,
    }


def _panels(chart: Chart) -> list[str]:
    return list(dict.fromkeys(series.panel for series in chart.series)) if chart.series[0].panel else []


def _height(chart: Chart) -> float:
    if panels := _panels(chart):
        return 0.9 + 1.05 * max(len(panels), 2)
    return 0.9 + 0.34 * max(len(chart.series), 2) if chart.bars else _HEIGHT


def _figure(chart: Chart, ink: _Ink) -> Any:
    figure = _pyplot().figure(figsize=(_WIDTH, _height(chart)), layout="constrained")
    _draw(figure, chart, ink, letters=keyed(chart))
    return figure


def _draw(figure: Any, chart: Chart, ink: _Ink, *, letters: bool) -> None:
    if panels := _panels(chart):
        _draw_panels(figure, chart, panels, ink)
    elif chart.bars:
        _draw_bars(figure.subplots(), chart, ink)
    else:
        axes = figure.subplots()
        _draw_lines(axes, chart, chart.series, ink)
        if len(chart.series) > 1:
            _label(axes, chart.series, letters, ink)


def _draw_panels(figure: Any, chart: Chart, panels: Sequence[str], ink: _Ink) -> None:
    every = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, panel in zip(every, panels, strict=True):
        own = [series for series in chart.series if series.panel == panel]
        _draw_lines(axes, chart, own, ink)
        axes.set_title(_short(panel, 60), loc="left", fontsize=_FONT - 0.5)
        axes.set(xlabel="", ylabel="")
    highest = max((value for series in chart.series for value in series.y if value is not None), default=0.0)
    every[0].set_ylim(0, highest * 1.08 or 1)
    for axes, panel in zip(every, panels, strict=True):
        own = [series for series in chart.series if series.panel == panel]
        if len(own) > 1:
            _label(axes, own, False, ink)
    every[-1].set_xlabel(chart.x_label)
    figure.supylabel(chart.y_label, fontsize=_FONT)


def _draw_lines(axes: Any, chart: Chart, series: Sequence[Series], ink: _Ink) -> None:
    for number, each in enumerate(series):
        x, y = _thinned(each.x, [float("nan") if value is None else value for value in each.y])
        colour = ink.of(each, number)
        marker = _MARKERS[(number if each.colour is None else each.colour) % len(_MARKERS)]
        axes.plot(
            x,
            y,
            color=colour,
            linestyle=_DASHES[each.style % len(_DASHES)],
            linewidth=1.6 if each.markers else 1.2,
            marker=marker if each.markers else None,
            markersize=4.5,
        )
        if each.low:
            below = [value - low for value, low in zip(y, each.low, strict=True)]
            above = [high - value for value, high in zip(y, each.high, strict=True)]
            axes.errorbar(x, y, [below, above], fmt="none", ecolor=colour, elinewidth=1, capsize=2.5)
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
    _scale(axes, chart, series)
    for mark in chart.marks:
        _draw_mark(axes, mark, ink)


def _thinned(x: Sequence[float], y: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Of many points the lowest and the highest of each stretch, so that no gap and no peak is lost."""
    if len(x) <= _MOST_POINTS:
        return x, y
    stretch = -(-len(x) * 2 // _MOST_POINTS)
    kept: list[int] = []
    for begin in range(0, len(x), stretch):
        own = range(begin, min(begin + stretch, len(x)))
        kept += sorted({min(own, key=y.__getitem__), max(own, key=y.__getitem__)})
    return [x[place] for place in kept], [y[place] for place in kept]


def _scale(axes: Any, chart: Chart, series: Sequence[Series]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    plain = FuncFormatter(lambda value, _place: f"{value:,.10g}")
    heights = [mark.at for mark in chart.marks if mark.axis == "y"]
    values = [*heights, *(value for each in series for value in each.y if value is not None)]
    positive = [value for value in values if value > 0]
    # Closer together than that, a logarithm only makes differences out of nothing.
    log_y = chart.log_y and bool(positive) and max(positive) > _WORTH_A_LOGARITHM * min(positive)
    for log, axis, name in ((chart.log_x, axes.xaxis, "x"), (log_y, axes.yaxis, "y")):
        if not log:
            continue
        getattr(axes, f"set_{name}scale")("log")
        low, high = axis.get_view_interval()
        few = high > low * 3_000
        axis.set_major_locator(LogLocator(subs=(1.0,) if few else (1.0, 2.0, 5.0)))
        axis.set_minor_formatter(NullFormatter())
        axis.set_minor_locator(LogLocator(subs=(2.0, 5.0) if few else (3.0, 4.0, 6.0, 7.0, 8.0, 9.0)))
    places = sorted({x for each in series for x in each.x})
    if chart.x_ticks:
        axes.set_xticks([place for place, _ in chart.x_ticks], [words for _, words in chart.x_ticks])
    elif chart.log_x and len(places) <= _FEW:
        axes.set_xticks(places, [f"{place:,.10g}" for place in places])
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    if not log_y:
        top = max([axes.get_ylim()[1], *(1.08 * height for height in heights)])
        axes.set_ylim(0, top if top > 0 else 1)
    if not chart.log_x:
        axes.set_xlim(left=0)


def _draw_mark(axes: Any, mark: Mark, ink: _Ink) -> None:
    style = {"color": ink.ink, "linewidth": 0.9, "alpha": 0.75, "zorder": 1}
    if mark.axis == "both":
        right = min(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.plot([0, right], [0, right], **style)
    elif mark.axis == "x":
        axes.axvline(mark.at, linestyle=_DASHES[1], **style)
        if mark.label:
            axes.annotate(
                mark.label,
                (mark.at, 1),
                (-3, -2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="right",
                va="top",
                rotation=90,
                fontsize=_FONT - 1.5,
            )
    else:
        axes.axhline(mark.at, linestyle=_DASHES[1], **style)
        axes.annotate(
            mark.label,
            (0, mark.at),
            (3, 2),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=_FONT - 1.5,
        )


def _draw_bars(axes: Any, chart: Chart, ink: _Ink) -> None:
    for number, each in enumerate(chart.series):
        length = each.y[0] or 0.0
        axes.barh(number, length, 0.62, color=ink.of(each, number))
        end = length
        if each.low:
            whisker = [[max(length - each.low[0], 0.0)], [max(each.high[0] - length, 0.0)]]
            axes.errorbar(length, number, xerr=whisker, fmt="none", ecolor=ink.ink, elinewidth=1, capsize=2.5)
            end = max(end, each.high[0])
        said = "none" if each.y[0] is None else f"{length:,.0f}" if length >= 100 else f"{length:.3g}"
        axes.annotate(said, (end, number), (4, 0), textcoords="offset points", va="center", fontsize=_FONT - 1)
    axes.set_yticks(range(len(chart.series)), [_short(each.name, 30) for each in chart.series])
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.margins(x=0.14)
    axes.set_xlim(left=0)
    axes.set_xlabel(chart.x_label)


def _label(axes: Any, series: Sequence[Series], letters: bool, ink: _Ink) -> None:
    """Words beside the axes, at the height at which each line ends or as near as there is room."""
    # What was drawn may have moved the limits, which is found out only when somebody asks.
    axes.get_xlim(), axes.get_ylim()
    ends: list[tuple[float, int]] = []
    for number, each in enumerate(series):
        known = [(x, y) for x, y in zip(each.x, each.y, strict=True) if y is not None]
        if known:
            height = axes.transAxes.inverted().transform(axes.transData.transform(known[-1]))[1]
            ends.append((min(max(float(height), 0.0), 1.0), number))
    # Points to a part of the axes: what one line of words takes.
    room = 1.35 * _FONT / (axes.get_window_extent().height / axes.figure.dpi * 72 * 0.85)
    for height, number in _apart(sorted(ends), room):
        each = series[number]
        colour = ink.of(each, number)
        axes.plot(
            [1.02, 1.06],
            [height, height],
            color=colour,
            linestyle=_DASHES[each.style % len(_DASHES)],
            transform=axes.transAxes,
            clip_on=False,
            linewidth=1.6,
        )
        if each.markers:
            axes.plot(
                [1.04],
                [height],
                color=colour,
                marker=_MARKERS[(number if each.colour is None else each.colour) % len(_MARKERS)],
                markersize=4.5,
                transform=axes.transAxes,
                clip_on=False,
            )
        words = LETTERS[number % len(LETTERS)] if letters else _short(each.name, 30)
        axes.text(1.08, height, words, transform=axes.transAxes, va="center", fontsize=_FONT - 0.5)


def _apart(ends: Sequence[tuple[float, int]], room: float) -> list[tuple[float, int]]:
    """The same, from the lowest up, pushed up where two are nearer than `room`, then down from the top."""
    heights = [height for height, _ in ends]
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + room)
    top = max(1.0, room * (len(heights) - 1))
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], top)
        top = heights[place] - room
    return [(height, number) for height, (_, number) in zip(heights, ends, strict=True)]


def _short(name: str, longest: int) -> str:
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[:half]}…{name[-half:]}"

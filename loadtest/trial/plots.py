"""Charts drawn with matplotlib, together in one picture.

Knows: matplotlib, which may be missing (`available`). Must not know: what the charts are about.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadtest.trial.content import Chart, Mark, Series

# Told apart by people who see few colours, beside markers, dashes and words at the lines' ends.
_PALETTE = (
    *("#0072b2", "#d55e00", "#00875f", "#aa4499", "#a87400", "#2b95c3"),
    *("#882255", "#6b7580", "#2e8b80", "#4b3fb0", "#7d7d1e", "#222222"),
)
_MARKERS = "os^DvPX*<>hp"
_DASHES = ("solid", (0, (4, 2)), (0, (1, 1.5)))
_INK, _FAINT = "#1b2430", "#8a949e"
_HEIGHT, _FONT = 3.4, 10.0
_WORTH_A_LOGARITHM = 4
# Up to this many places on a logarithmic axis are written there.
_FEW = 8
_MARK_WORDS: dict[str, Any] = {"textcoords": "offset points", "fontsize": _FONT - 1.5}


def available() -> bool:
    """Whether anything can be drawn here."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        return False
    return True


def picture(charts: Sequence[Chart], title: str, file: Path) -> None:
    """All of them in one PNG, two beside each other."""
    drawn = figure(charts, title)
    with warnings.catch_warnings():
        # A name may be in any script; boxes stand for what this font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        drawn.savefig(file, dpi=110)
    _pyplot().close(drawn)


def figure(charts: Sequence[Chart], title: str) -> Any:
    """The same as a figure of matplotlib, with a part for each chart."""
    columns = min(len(charts), 2)
    rows = -(-len(charts) // 2)
    panels = [len(_panels(chart)) for chart in charts]
    height = max(
        0.9 + 1.05 * max(many, 2) if many else max(_HEIGHT, 0.9 + 0.22 * len(chart.series))
        for many, chart in zip(panels, charts, strict=True)
    )
    pyplot = _pyplot()
    with pyplot.rc_context(_SETTINGS):
        drawn = pyplot.figure(figsize=(6.2 * columns, height * 1.15 * rows + 0.4), layout="constrained")
        drawn.suptitle(title, fontsize=12)
        parts = drawn.subfigures(rows, columns, squeeze=False)
        for part, chart in zip(parts.flat, charts, strict=False):
            part.suptitle(chart.title, fontsize=10.5)
            if chart.series[0].panel:
                _draw_panels(part, chart, _panels(chart))
            else:
                _draw_lines(part.subplots(), chart, chart.series)
    return drawn


def _pyplot() -> Any:
    # Imported here: a second that others need not wait, and a package that need not be there.
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot


_SETTINGS = {
    "font.size": _FONT,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": _FAINT,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "text.color": _INK,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "axes.unicode_minus": False,
    # A dollar sign in a name is a dollar sign.
    "text.parse_math": False,
}


def _panels(chart: Chart) -> list[str]:
    return list(dict.fromkeys(series.panel for series in chart.series)) if chart.series[0].panel else []


def _draw_panels(figure: Any, chart: Chart, panels: Sequence[str]) -> None:
    every = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    highest = max((value for series in chart.series for value in series.y if value is not None), default=0.0)
    for axes, panel in zip(every, panels, strict=True):
        own = [series for series in chart.series if series.panel == panel]
        _draw_lines(axes, chart, own)
        axes.set_title(_short(panel, 60), loc="left", fontsize=_FONT - 0.5)
        axes.set(xlabel="", ylabel="")
    every[0].set_ylim(0, highest * 1.08 or 1)
    every[-1].set_xlabel(chart.x_label)
    figure.supylabel(chart.y_label, fontsize=_FONT)


def _draw_lines(axes: Any, chart: Chart, series: Sequence[Series]) -> None:
    for number, each in enumerate(series):
        x, y = each.x, [float("nan") if value is None else value for value in each.y]
        place = number if each.colour is None else each.colour
        colour = _PALETTE[place % len(_PALETTE)]
        axes.plot(
            x,
            y,
            label=_short(each.name, 30),
            color=colour,
            linestyle=_DASHES[each.style % len(_DASHES)] if each.line else "none",
            linewidth=1.6 if each.markers else 1.2,
            marker=_MARKERS[place % len(_MARKERS)] if each.markers else None,
            markersize=4.5,
        )
        if each.low:
            below = [value - low for value, low in zip(y, each.low, strict=True)]
            above = [high - value for value, high in zip(y, each.high, strict=True)]
            axes.errorbar(x, y, [below, above], fmt="none", ecolor=colour, elinewidth=1, capsize=2.5)
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
    _scale(axes, chart, series)
    for mark in chart.marks:
        _draw_mark(axes, mark)
    if len(series) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


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
        axes.set_ylim(min([0.0, *(1.08 * value for value in values)]), top if top > 0 else 1)
    if not chart.log_x:
        axes.set_xlim(left=0)


def _draw_mark(axes: Any, mark: Mark) -> None:
    style = {"color": _INK, "linewidth": 0.9, "alpha": 0.75, "zorder": 1}
    if mark.axis == "both":
        right = min(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.plot([0, right], [0, right], **style)
    elif mark.axis == "x":
        axes.axvline(mark.at, linestyle=_DASHES[1], **style)
        place = {"xycoords": ("data", "axes fraction"), "ha": "right", "va": "top", "rotation": 90}
        # A place beyond the axis is not shown, and no room is made for it.
        drawn = axes.annotate(mark.label, (mark.at, 1), (-3, -2), annotation_clip=True, **_MARK_WORDS, **place)
        drawn.set_in_layout(False)
    else:
        axes.axhline(mark.at, linestyle=_DASHES[1], **style)
        axes.annotate(mark.label, (0, mark.at), (3, 2), xycoords=("axes fraction", "data"), **_MARK_WORDS)


def _short(name: str, longest: int) -> str:
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[:half]}…{name[-half:]}"

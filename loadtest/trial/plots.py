"""Charts drawn with matplotlib, together in one picture.

Knows: matplotlib, which may be missing (`available`). Must not know: what the charts are about.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadtest.trial.content import Chart

_MARKERS = "os^DvPX*<>hp"


def available() -> bool:
    """Whether anything can be drawn here."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        return False
    return True


def picture(charts: Sequence[Chart], title: str, file: Path) -> None:
    """All of them in one PNG, two beside each other."""
    # Imported here: a second that others need not wait, and a package that need not be there.
    from matplotlib.figure import Figure

    columns, rows = min(len(charts), 2), -(-len(charts) // 2)
    figure = Figure(figsize=(6.2 * columns, 3.9 * rows + 0.4), layout="constrained")
    figure.suptitle(title)
    for place, chart in enumerate(charts, start=1):
        _draw(figure.add_subplot(rows, columns, place), chart)
    with warnings.catch_warnings():
        # A name may be in any script; boxes stand for what this font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(file, dpi=110)


def _draw(axes: Any, chart: Chart) -> None:
    for number, each in enumerate(chart.series):
        heights = [float("nan") if value is None else value for value in each.y]
        marker = _MARKERS[number % len(_MARKERS)] if each.markers else None
        # A dollar sign in a name is a dollar sign.
        label = each.name.replace("$", r"\$")
        axes.plot(each.x, heights, label=label, marker=marker, linestyle="-" if each.line else "none")
    axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
    axes.grid(axis="y", alpha=0.35)
    if chart.log_y:
        axes.set_yscale("log")
        # Plain numbers, also between the powers of ten.
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    else:
        axes.set_ylim(bottom=0)
    for words, at in chart.marks:
        axes.axvline(at, color="black", linestyle="dashed", linewidth=0.9)
        axes.annotate(words, (at, 1), (-3, -2), **_MARK)
    if chart.x_ticks:
        axes.set_xticks(*zip(*chart.x_ticks, strict=True))
    if len(chart.series) > 1:
        axes.legend(fontsize=8)


_MARK: dict[str, Any] = {
    **{"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "rotation": 90},
    **{"ha": "right", "va": "top", "fontsize": 8},
}

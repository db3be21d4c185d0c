"""Charts as pictures: what is where in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadtest.trial import plots
from loadtest.trial.content import Chart, Mark, Series

CHART = Chart(
    title="A chart",
    x_label="offered",
    y_label="ms",
    series=[
        Series("$p50$", [1, 2, 3], [0.005, None, 0.5]),
        Series("名前", [1, 2, 3], [1.0, 1.0, 1.0], [0.5, 0.5, 1.0], [1.5, 1.5, 1.0], style=2),
    ],
    marks=[Mark("bar", 0.3), Mark("knee", 2, "x"), Mark("all", axis="both")],
    log_y=True,
)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plots._pyplot().close("all")


def chart(series: Sequence[Series], marks: Sequence[Mark] = (), *, log_y: bool = False) -> Chart:
    return msgspec.structs.replace(CHART, series=series, marks=marks, log_y=log_y)


def axes_of(drawn: Chart) -> Any:
    """The axes of a chart alone in its picture, with everything in its place."""
    figure = plots.figure([drawn], "")
    figure.canvas.draw()
    return figure.axes[0]


def words_in(axes: Any) -> dict[str, tuple[float, float]]:
    """Words → where they are, in parts of the axes."""
    found = {}
    for text in axes.texts:
        box = text.get_window_extent()
        x, y = axes.transAxes.inverted().transform((box.x0, (box.y0 + box.y1) / 2))
        found[text.get_text()] = (float(x), float(y))
    return found


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_and_marks_stand_beside_the_lines_as_they_are() -> None:
    axes = axes_of(CHART)
    assert set(words_in(axes)) == {"bar", "knee"}
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["$p50$", "名前"]


def test_the_same_charts_are_the_same_picture(tmp_path: Path) -> None:
    for name in ("one", "two"):
        plots.picture([CHART, CHART], "Two", tmp_path / f"{name}.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_a_logarithm_is_for_values_that_are_far_apart() -> None:
    near = axes_of(chart([Series("a", [1, 2], [31.6, 31.9])], log_y=True))
    far = axes_of(chart([Series("a", [1, 2], [5.0, 2000.0])], log_y=True))
    assert (near.get_yscale(), near.get_ylim()[0]) == ("linear", 0)
    assert far.get_yscale() == "log"


def test_what_is_below_zero_is_in_the_picture() -> None:
    low, high = axes_of(chart([Series("a", [1, 2], [-2.0, 4.0])])).get_ylim()
    assert low < -2 < 4 < high


@pytest.mark.parametrize("log_y", [False, True])
def test_a_mark_far_from_the_values_is_in_the_picture(log_y: bool) -> None:
    words = words_in(axes_of(chart([Series("a", [1, 2], [20.0, 21.0])], [Mark("bar", 300)], log_y=log_y)))
    assert 0 < words["bar"][1] < 1.1


def test_points_that_are_not_connected_have_markers_only() -> None:
    (line,) = axes_of(chart([Series("a", [1, 2], [1.0, 2.0], line=False)])).lines
    assert line.get_linestyle() == "None"
    assert line.get_marker() == "o"


def test_each_panel_has_axes_of_its_own() -> None:
    lines = [Series("a", [1, 2], [1, 2], panel=panel) for panel in ("first", "second")]
    titles = [axes.get_title(loc="left") for axes in plots.figure([chart(lines)], "").axes]
    assert titles == ["first", "second"]

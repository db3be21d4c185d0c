"""`report.html`: complete in itself, balanced, escaped, and readable in a real browser."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.async_api import Browser

from loadtest.machine import Machine
from loadtest.tests.made_up_trials import MACHINE, comparison, journey, made_up, open_trial, sweep
from loadtest.trial import report
from loadtest.trial.content import Figure, Table
from loadtest.trial.html import page
from loadtest.trial.markup import Markup, element, joined
from loadtest.trial.summary import summaries
from loadtest.trial.values import Finding, Report

_VOID = {"meta", "img", "br", "hr"}


class _Parsed(HTMLParser):
    """Checks that every tag is closed where it has to be, and gathers what there is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def written(made: Report, folder: Path, **extra: Any) -> str:
    report.write(made, folder, **extra)
    return (folder / "report.html").read_text()


@pytest.fixture(
    scope="module",
    params=[
        "sweep",
        pytest.param("peers", marks=pytest.mark.slow),
        pytest.param("journey", marks=pytest.mark.slow),
    ],
)
def text(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    trials = {"sweep": sweep, "peers": comparison, "journey": journey}[request.param]()
    return written(made_up(request.param, trials), tmp_path_factory.mktemp(request.param))


def test_it_is_balanced_and_needs_nothing_else(text: str) -> None:
    parsed = _Parsed(text)
    for tag, attributes in parsed.tags:
        assert tag not in {"script", "link", "iframe", "object", "base"}
        for name in ("src", "href", "srcset", "action", "data"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/")), (tag, value)
        assert not any(name.startswith("on") for name in attributes)
    assert "http" not in text
    assert "@import" not in text
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)\)", text))


def test_what_is_referred_to_is_there_and_there_once(text: str) -> None:
    parsed = _Parsed(text)
    ids = [attributes["id"] for _, attributes in parsed.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    referred = {value[1:] for _, each in parsed.tags if (value := each.get("href")) and value.startswith("#")}
    assert referred <= set(ids)
    assert {"findings", "summary", "figures", "configuration", "workload", "machine", "reproduce"} <= referred


def test_headings_step_down_one_at_a_time(text: str) -> None:
    levels = [int(tag[1]) for tag, _ in _Parsed(text).tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_figure_says_what_it_shows_and_from_which_command(text: str) -> None:
    figures = re.findall(r"<figure>.*?</figure>", text, flags=re.DOTALL)
    assert len(figures) >= 6
    for figure in figures:
        assert figure.count("<h3 ") == figure.count("<figcaption>") == 1
        assert "<code>python -m loadtest " in figure
        assert "vllm 0.26.0" in figure
        assert 'href="#configuration"' in figure


def test_verdicts_are_words_too(text: str) -> None:
    words = _Parsed(text).words
    assert "✓ passed" in words
    assert "✗ FAILED" in words
    assert "1 of 2 bars passed." in words


HOSTILE = "</style></title><script>alert('&amp;')</script><img src=\"x\" onerror='y'>]]>--><!--"


def test_hostile_names_are_text(tmp_path: Path) -> None:
    trial = open_trial(10, 1, 1)
    changed = {
        "name": HOSTILE,
        "system": HOSTILE,
        "workload": HOSTILE,
        "settings": {HOSTILE: {HOSTILE: [HOSTILE]}, "b": HOSTILE},
        "records": [
            msgspec.structs.replace(each, failed=HOSTILE) if each.line == "l1" else each for each in trial.records
        ],
    }
    other = msgspec.structs.replace(trial, **(changed | {"name": f"{HOSTILE} again", "system": "another"}))
    machine: Machine = msgspec.structs.replace(
        MACHINE, cpu=HOSTILE, gpus=[HOSTILE], system=HOSTILE, packages={HOSTILE: HOSTILE}, revision=HOSTILE
    )
    made = made_up(
        HOSTILE,
        [msgspec.structs.replace(trial, **changed), other],
        command=HOSTILE,
        began=HOSTILE,
        model=HOSTILE,
        machine=machine,
        settings={HOSTILE: HOSTILE},
        findings=[Finding(HOSTILE, HOSTILE, HOSTILE, True, HOSTILE)],
    )
    tables = [Table(HOSTILE, [HOSTILE, HOSTILE], [[HOSTILE, HOSTILE]], HOSTILE)]
    figures = [Figure(HOSTILE, HOSTILE, svg=f"<svg><text>{HOSTILE}</text></svg>")]
    text = written(made, tmp_path, extra_figures=figures, extra_tables=tables)
    parsed = _Parsed(text)
    assert not [tag for tag, _ in parsed.tags if tag == "script"]
    assert not [each for _, each in parsed.tags if "onerror" in each]
    assert len(re.findall("<img", text)) == 1
    assert HOSTILE in parsed.words
    assert "<script" not in text
    assert "<!--" not in text


def test_details_that_nobody_renders_are_there_as_json() -> None:
    made = made_up("run", [], details={"curve": [1.5, 2]})
    text = page(made, summaries([], made.objective), [])
    assert "<summary>As JSON</summary>" in text
    own = page(made, [], [], extra_html=element("p", "a < b"))
    assert "<p>a &lt; b</p>" in own
    assert "As JSON" not in own


def test_a_figure_of_a_command_is_a_picture_in_the_page() -> None:
    text = page(made_up("run", []), [], [Figure("A picture", "Of something.", png=b"\x89PNG")])
    assert f'src="data:image/png;base64,{base64.b64encode(bytes([0x89]) + b"PNG").decode()}"' in text
    assert 'alt="A picture"' in text


def test_text_is_escaped_unless_it_is_markup() -> None:
    assert joined("a<b", Markup("<br>"), "&") == "a&lt;b<br>&amp;"
    assert element("a", "x", element("b", "y"), href='"#"', class_="k", hidden=True, id=False) == (
        '<a href="&quot;#&quot;" class="k" hidden>x<b>y</b></a>'
    )
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every kind of figure."""
    folder = tmp_path_factory.mktemp("page")
    written(made_up("journey", journey()), folder)
    return folder / "report.html"


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_browser_shows_it_without_sideways_scrolling(
    browser: Browser, file: Path, artifacts: Path, width: int, scheme: Any
) -> None:
    context = await browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    shown = await context.new_page()
    asked: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    await shown.goto(file.as_uri())
    assert len(asked) == 1
    assert await shown.evaluate("document.documentElement.scrollWidth") <= width
    for number in range(await shown.locator("figure svg").count()):
        box = await shown.locator("figure svg").nth(number).bounding_box()
        assert box is not None
        assert box["width"] > 250
    # Words and lines stand out from what is behind them.
    paper, ink = await shown.evaluate(_COLOURS)
    assert abs(_lightness(paper) - _lightness(ink)) > 150
    # Nothing within a drawing sticks out of it.
    assert await shown.evaluate(_OUTSIDE) == []
    await shown.screenshot(path=artifacts / f"loadtest-report-{width}-{scheme}.png", full_page=True)
    await context.close()


_COLOURS = """() => [
    getComputedStyle(document.body).backgroundColor,
    getComputedStyle(document.querySelector("figure svg text")).fill,
]"""
_OUTSIDE = """() => [...document.querySelectorAll("figure svg text")].filter((text) => {
    const [own, all] = [text.getBoundingClientRect(), text.closest("figure").getBoundingClientRect()];
    return own.left < all.left - 1 || own.right > all.right + 1;
}).map((text) => text.textContent)"""


def _lightness(colour: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3

"""Colours and faces of the page are in `tokens.css`; its other style sheets use them by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "web_demo"
TOKENS = PAGE / "page" / "tokens.css"
SHEETS = [
    *(sheet for sheet in sorted(PAGE.rglob("*.css")) if "built" not in sheet.parts),
    *sorted((ROOT / "gateway/server/administration/page").glob("*.css")),
]
# White and black belong to pictures. Captions lie over other pages' pictures, whatever the theme is.
PLAIN = {"#fff", "#000"}
OVER_PICTURES = PAGE / "page" / "captions"

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DEFINED = re.compile(r"(--[a-z][a-z0-9-]*)\s*:")
_SET_BY_SCRIPT = re.compile(r"""setProperty\(["'](--[a-z-]+)["']""")
_USED = re.compile(r"var\((--[a-z][a-z0-9-]*)\s*\)")


def styles(sheet: Path) -> str:
    return _COMMENT.sub("", sheet.read_text())


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_every_custom_property_is_defined(sheet: Path) -> None:
    """One that is missing is no error to a browser: the colour is silently another."""
    scripts = (script.read_text() for script in PAGE.rglob("*.js") if "built" not in script.parts)
    known = {name for script in scripts for name in _SET_BY_SCRIPT.findall(script)}
    known |= set(_DEFINED.findall(styles(TOKENS))) | set(_DEFINED.findall(styles(sheet)))
    assert set(_USED.findall(styles(sheet))) <= known


@pytest.mark.parametrize(
    "sheet",
    [sheet for sheet in SHEETS if sheet != TOKENS and sheet.parent != OVER_PICTURES],
    ids=lambda sheet: sheet.name,
)
def test_colours_are_tokens(sheet: Path) -> None:
    assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", styles(sheet))) <= PLAIN


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_lines_below_words_are_in_webkit_too(sheet: Path) -> None:
    """It drops a `text-decoration` that says more than which line."""
    assert set(re.findall(r"text-decoration:\s*([^;}]+)", styles(sheet))) <= {"none", "underline"}


def test_each_face_has_its_licence() -> None:
    fonts = TOKENS.parent / "fonts"
    for face in fonts.glob("*.woff2"):
        licence = (fonts / f"LICENSE-{face.name.partition('-')[0]}.txt").read_text()
        assert "SIL OPEN FONT LICENSE Version 1.1" in licence

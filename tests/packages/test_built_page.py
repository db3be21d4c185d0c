"""The built page, which is committed, is what its sources give."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath

from scripts.page import BUILT, build


def contents(folder: Path) -> dict[str, str]:
    return {file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*.*")}


def test_built_page_is_what_its_sources_give(tmp_path: Path) -> None:
    build(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(BUILT), "Run `make page`."


def test_document_names_all_that_the_meeting_needs() -> None:
    files = contents(BUILT)
    named = set(re.findall(r'"\./built/([^"]+)"', files["index.html"]))
    assert "app.js" in named
    # Whatever else they import at once would wait until they have come.
    imported = {
        normpath(join(dirname(each), name))
        for each in named
        for name in re.findall(r'(?:from|import)"(\.[^"]+)"', files[each])
    }
    assert len(imported) > 1
    assert imported <= named
    # One language and the other view come when they are wanted.
    assert not any(path.startswith(("captions/", "words/")) for path in named)
    assert {"captions/captions.css", "words/de.js"} <= set(files)
    assert '<link rel="stylesheet' not in files["index.html"]

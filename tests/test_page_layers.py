"""The layer rule of the page's scripts: `page` imports `client`, never the other way round; no circles.

The test reads the folders; imports of types count as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from posixpath import dirname, join, normpath

import pytest

ROOT = Path(__file__).parent.parent / "web_demo"

# Top folder → the top folders that it may import from. "" is web_demo itself, with what has a public address.
MAY_IMPORT = {"client": {"client"}, "page": {"page", "client"}, "offline": {"offline"}, "": {"client"}}
MOST_LINES = 400
MOST_MODULES = 15

# `import "…"`, `import … from "…"`, `export … from "…"`, `import("…")`, and the same in JSDoc.
_IMPORT = re.compile(r"""\b(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""")

# Icons are no text.
FILES = {
    file.relative_to(ROOT).as_posix(): file.read_text()
    for file in ROOT.rglob("*")
    if file.is_file() and file.suffix != ".png"
}
SCRIPTS = sorted(path for path in FILES if path.endswith(".js"))


def imports(script: str) -> set[str]:
    """Paths below web_demo, whether there is such a file or not."""
    return {normpath(join(dirname(script), name)) for name in _IMPORT.findall(FILES[script])}


def top(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def circle(imported: Mapping[str, Iterable[str]]) -> str:
    """One circle in a graph, such as `a → b → a`; empty where there is none."""
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return " → ".join(reversed(error.args[1]))
    return ""


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_imports_only_what_its_folder_may(script: str) -> None:
    assert top(script) in MAY_IMPORT, f"{script} is in a folder that the layer rule does not know"
    for imported in imports(script):
        assert imported in FILES, f"{script} imports {imported}, which does not exist"
        assert top(imported) in MAY_IMPORT[top(script)], f"{script} imports {imported}"


def test_files_import_each_other_in_no_circle() -> None:
    assert len(SCRIPTS) > 40
    assert circle({script: imports(script) for script in SCRIPTS}) == ""


def test_folders_import_each_other_in_no_circle() -> None:
    folders: dict[str, set[str]] = {dirname(script): set() for script in SCRIPTS}
    for script in SCRIPTS:
        folders[dirname(script)] |= {dirname(imported) for imported in imports(script)} - {dirname(script)}
    assert circle(folders) == ""


@pytest.mark.parametrize("path", sorted(path for path in FILES if path.endswith((".js", ".css", ".html"))))
def test_no_file_is_too_long(path: str) -> None:
    assert len(FILES[path].splitlines()) <= MOST_LINES


@pytest.mark.parametrize("folder", sorted({dirname(script) for script in SCRIPTS}))
def test_no_folder_has_too_many_modules(folder: str) -> None:
    assert len([script for script in SCRIPTS if dirname(script) == folder]) <= MOST_MODULES

"""The layer rule of the page's scripts: `page` imports `client`, never the other way round; no circles.

The test reads the folders; imports of types count as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from posixpath import dirname, join, normpath

ROOT = Path(__file__).parent.parent / "web_demo"

# Top folder → the top folders that it may import from. "" is web_demo itself, with what has a public address.
MAY_IMPORT = {"client": {"client"}, "page": {"page", "client"}, "offline": {"offline"}, "": {"client"}}
MOST_MODULES = 15

# `import "…"`, `import … from "…"`, `export … from "…"`, `import("…")`, and the same in JSDoc.
_IMPORT = re.compile(r"""\b(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""")

# Icons and faces are no text, and what is built imports otherwise.
FILES = {
    file.relative_to(ROOT).as_posix(): file.read_text()
    for file in ROOT.rglob("*")
    if file.is_file() and file.suffix not in (".png", ".woff2") and "built" not in file.parts
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


def test_a_script_imports_only_what_its_folder_may() -> None:
    unknown = [script for script in SCRIPTS if top(script) not in MAY_IMPORT]
    assert unknown == [], "in folders that the layer rule does not know"
    imported = [(script, target) for script in SCRIPTS for target in sorted(imports(script))]
    assert [(script, target) for script, target in imported if target not in FILES] == []
    assert [(script, target) for script, target in imported if top(target) not in MAY_IMPORT[top(script)]] == []


def test_files_import_each_other_in_no_circle() -> None:
    assert len(SCRIPTS) > 40
    assert circle({script: imports(script) for script in SCRIPTS}) == ""


def test_folders_import_each_other_in_no_circle() -> None:
    folders: dict[str, set[str]] = {dirname(script): set() for script in SCRIPTS}
    for script in SCRIPTS:
        folders[dirname(script)] |= {dirname(imported) for imported in imports(script)} - {dirname(script)}
    assert circle(folders) == ""


def test_no_folder_has_too_many_modules() -> None:
    sizes = Counter(dirname(script) for script in SCRIPTS)
    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}

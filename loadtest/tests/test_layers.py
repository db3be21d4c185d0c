"""The import rule of the load tests, read from their files: no circle, neither of files nor of folders."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.test_layers import circle

ROOT = Path(__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
    if "tests" not in path.parts
}


def imported(path: Path) -> Iterator[str]:
    """The modules of the load tests that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                # `from package import name`: the name may be a module.
                whole = f"{node.module}.{alias.name}"
                yield from {whole, node.module} & MODULES.keys() - {node.module if whole in MODULES else ""}
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & MODULES.keys()


def folder(module: str) -> str:
    """The folder that a module is in, also one inside another; or the module itself, where it is in none."""
    path = MODULES[module]
    inside = path.parent if path.parent != ROOT else path.with_suffix("")
    return ".".join(inside.relative_to(ROOT.parent).parts)


@cache
def arrows() -> dict[str, set[str]]:
    """Module → the others that it imports."""
    return {module: set(imported(path)) - {module} for module, path in MODULES.items()}


def test_no_circle_of_files() -> None:
    assert circle(arrows()) == []


def test_no_circle_of_folders() -> None:
    folders: dict[str, set[str]] = {}
    for module, targets in arrows().items():
        folders.setdefault(folder(module), set()).update({folder(each) for each in targets} - {folder(module)})
    assert len(folders) > 10
    assert circle(folders) == []

"""`tests/` mirrors `gateway/`: a module with logic has its test file at its path, and a file its module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
GATEWAY = TESTS.parent / "gateway"

# Kinds of test files that belong to no module: a page of the documentation, or a room as a whole with real parts.
CROSSING = ("_docs", "_e2e")
ROOMS = {path.name for path in GATEWAY.iterdir() if path.is_dir()}

MODULES = {
    path.relative_to(GATEWAY).with_suffix("").as_posix(): path
    for path in sorted(GATEWAY.rglob("*.py"))
    if not path.name.startswith("__") and "_web_demo" not in path.parts
}
FILES = {
    path.relative_to(TESTS).as_posix(): path
    for path in sorted(TESTS.rglob("test_*.py"))
    if path.relative_to(TESTS).parts[0] in ROOMS
}


def has_logic(tree: ast.Module) -> bool:
    """Whether it is more than values and ports: methods of classes that only hold values do not count."""
    acting = [node for node in tree.body if isinstance(node, ast.ClassDef) and not holds_values(node)]
    bodies = [tree.body, *(node.body for node in acting)]
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for body in bodies for node in body)


def holds_values(node: ast.ClassDef) -> bool:
    kinds = {name.id for base in node.bases for name in ast.walk(base) if isinstance(name, ast.Name)}
    decorators = {name.id for each in node.decorator_list for name in ast.walk(each) if isinstance(name, ast.Name)}
    return bool(kinds & {"Struct", "Protocol", "Enum", "IntEnum"}) or "dataclass" in decorators


def file_of(module: str) -> Path:
    path = TESTS / module
    return path.with_name(f"test_{path.name}.py")


def module_of(file: str) -> str:
    path = Path(file)
    return (path.parent / path.stem.removeprefix("test_")).as_posix()


def test_each_module_with_logic_has_its_test_file() -> None:
    untested = [module for module in MODULES if not file_of(module).exists()]
    assert [module for module in untested if has_logic(ast.parse(MODULES[module].read_text()))] == []


def test_each_test_file_belongs_to_a_module() -> None:
    names = {file: module_of(file) for file in FILES}
    assert [file for file, name in names.items() if name not in MODULES and not name.endswith(CROSSING)] == []


def test_both_were_found() -> None:
    assert {"app", "meeting/feed", "engines/host/proxy"} <= set(MODULES)
    assert {"meeting/test_feed.py", "engines/host/test_proxy.py"} <= set(FILES)


@pytest.mark.parametrize(
    ("source", "logic"),
    [
        ("A = 1", False),
        ("class A(Struct, frozen=True):\n    def f(self): return 1", False),
        ("class A(Protocol):\n    def f(self): ...", False),
        ("@dataclass(eq=False)\nclass A:\n    def f(self): return 1", False),
        ("class A(Enum):\n    X = 1", False),
        ("def f(): return 1", True),
        ("async def f(): return 1", True),
        ("class A:\n    def f(self): return 1", True),
        ("class A(Struct):\n    x: int\n\ndef f(): return 1", True),
        ("class A:\n    x = 1\n\nclass B:\n    def f(self): return 1", True),
    ],
)
def test_what_counts_as_logic(source: str, logic: bool) -> None:
    assert has_logic(ast.parse(source)) is logic

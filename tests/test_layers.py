"""The import rule of `gateway/`, read from its folders: a room knows only rooms below it, without circles."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "gateway"

# Room → the rooms that it may import. The files directly in `gateway/` are rooms of their own.
RULE: dict[str, set[str]] = {
    "domain": set(),
    "protocol": {"domain"},
    "stores": {"domain"},
    "engines": {"domain"},
    "identity": {"domain"},
    "meeting": {"domain", "protocol"},
    "translation": {"domain", "protocol", "meeting"},
    "sessions": {"domain", "protocol", "meeting", "translation"},
    "server": {"domain", "protocol", "meeting", "translation", "sessions"},
    "webhooks": {"domain"},
    "client": {"domain", "protocol"},
    "conformance": {"domain", "protocol"},
    "cli": {"domain", "protocol", "client", "conformance", "identity", "serving", "workers", "config", "doctor"},
    "state_folder": {"domain"},
    # Assembly: the one place that names every adapter.
    "store": {"domain", "stores", "config"},
    "engine": {"domain", "engines", "config"},
    "keys": {"domain", "identity", "server", "config"},
    "doctor": {
        "domain",
        "engines",
        "engine",
        "stores",
        "keys",
        "server",
        "webhooks",
        "workers",
        "state_folder",
        "config",
    },
    "app": {
        "store",
        "engine",
        "keys",
        "domain",
        "protocol",
        "stores",
        "engines",
        "meeting",
        "translation",
        "sessions",
        "server",
        "webhooks",
        "config",
    },
    "administration": {"domain", "server", "app", "keys", "config"},
    "serving": {"domain", "server", "app", "administration", "engine", "state_folder", "config"},
    # Several processes of what `serving` runs in one.
    "workers": {
        "domain",
        "engines",
        "engine",
        "server",
        "store",
        "app",
        "administration",
        "serving",
        "state_folder",
        "config",
        "webhooks",
    },
    "config": {"domain", "protocol", "engines"},
    "__main__": {"cli"},
    # Anybody but the pure rooms may count and log.
    "metrics": set(),
    "exposition": set(),
    "runtime": set(),
    "tracing": {"domain"},
}
FOR_EVERYBODY = {"metrics", "exposition", "runtime", "tracing"}
# Rooms that know neither tasks nor clocks nor I/O.
PURE = {"domain", "protocol"}
# Modules of other rooms that promise the same.
PURE_MODULES = {
    "engines.prompting.completions",
    "engines.prompting.families",
    "engines.prompting.safety",
    "engines.prompting.templates",
    "meeting.history",
    "meeting.transcript",
    "server.http.translate_request",
    "server.translate.plan",
    "sessions.grants",
    "sessions.known_utterances",
    "sessions.machine",
    "sessions.rules",
    "sessions.spent",
    "translation.commit_policy",
}
IMPURE = {"asyncio", "datetime", "logging", "os", "pathlib", "random", "secrets", "socket", "threading", "time"}

# Package → the rooms or modules that may import it.
HEAVY = {
    "vllm": {"engines.vllm"},
    "torch": set(),
    "transformers": {"engines.remote"},
    "tokenizers": {"engines.remote"},
    "aiohttp": {"engines.remote", "webhooks.sender"},
    "huggingface_hub": {"engines.vllm.hub"},
    "redis": {"stores.redis"},
    "hiredis": {"stores.redis"},
    "uvicorn": {
        "server.uvicorn_server",
        "server.guard.http",
        "server.guard.tls",
        "server.guard.websocket",
        "serving",
    },
    "starlette": {"server", "app", "administration", "workers.administration", "workers.serving"},
    "segno": {"server.http.qr"},
    "py3langid": {"server.translate.detection"},
    "numpy": set(),
    "jwt": {"identity"},
    "websockets": {"client", "conformance", "server.guard.websocket"},
    "prometheus_client": {"metrics"},
    "opentelemetry": {"tracing.otlp"},
}
# Imported where it is needed, so that everything else starts without it.
NOT_AT_THE_TOP = {
    "vllm",
    "transformers",
    "tokenizers",
    "aiohttp",
    "huggingface_hub",
    "redis",
    "hiredis",
    "py3langid",
    "opentelemetry",
}

MOST_LINES = 400
MOST_MODULES = 14

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
    if "_web_demo" not in path.parts and path != ROOT / "__init__.py"
}


def imports(path: Path) -> list[tuple[str, bool]]:
    """(module, whether at the top level of the file) for every import; type-checking blocks count as well."""
    tree = ast.parse(path.read_text())
    top = set(map(id, tree.body))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from package import name`: the name may be a module.
            found += [(f"{node.module}.{alias.name}", id(node) in top) for alias in node.names]
    return found


def imported(path: Path) -> set[str]:
    """The modules of `gateway` that a file imports."""
    found = set()
    for name, _ in imports(path):
        within = name.removeprefix("gateway.")
        if within != name:
            parts = within.split(".")
            ends = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
            found |= {next((end for end in ends if end in MODULES), "")} - {""}
    return found


ARROWS = {module: imported(path) - {module} for module, path in MODULES.items()}


def room(module: str) -> str:
    return module.split(".")[0]


def folder(module: str) -> str:
    """`engines.vllm.load` → `engines.vllm`; a module beside folders stands for itself."""
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0] or module


def circle(arrows: Mapping[str, Iterable[str]]) -> list[str]:
    """One circle, if there is any."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_the_rooms_below_it(module: str) -> None:
    here = room(module)
    assert here in RULE, f"{here} is not a room of the house: say in RULE what it may know"
    allowed = RULE[here] | {here} | (set() if here in PURE else FOR_EVERYBODY)
    assert {room(target) for target in ARROWS[module]} <= allowed


def test_no_file_is_in_a_circle_of_imports() -> None:
    assert circle(ARROWS) == []


def test_no_folder_is_in_a_circle_of_imports() -> None:
    arrows: dict[str, set[str]] = {}
    for module, targets in ARROWS.items():
        here = arrows.setdefault(folder(module), set())
        here |= {folder(target) for target in targets} - {folder(module)}
    assert circle(arrows) == []


@pytest.mark.parametrize("module", MODULES)
def test_heavy_packages_stay_in_their_adapter(module: str) -> None:
    for name, at_top in imports(MODULES[module]):
        package = name.split(".")[0]
        if package in HEAVY:
            assert any(f"{module}.".startswith(f"{place}.") for place in HEAVY[package]), f"imports {package}"
            assert not (at_top and package in NOT_AT_THE_TOP), f"imports {package} before it is needed"


@pytest.mark.parametrize("module", [name for name in MODULES if room(name) in PURE or name in PURE_MODULES])
def test_pure_modules_know_no_io(module: str) -> None:
    packages = {name.split(".")[0] for name, _ in imports(MODULES[module])}
    assert packages & IMPURE == set()
    assert {room(target) for target in ARROWS[module]} & FOR_EVERYBODY == set()


def test_the_pure_modules_are_there() -> None:
    assert set(MODULES) >= PURE_MODULES


@pytest.mark.parametrize("module", [name for name, path in MODULES.items() if path.read_text().strip()])
def test_every_module_says_what_it_knows(module: str) -> None:
    assert ast.get_docstring(ast.parse(MODULES[module].read_text()))


@pytest.mark.parametrize("module", MODULES)
def test_a_file_is_not_too_long(module: str) -> None:
    assert len(MODULES[module].read_text().splitlines()) <= MOST_LINES


def test_a_folder_has_not_too_many_modules() -> None:
    sizes: dict[str, int] = {}
    for path in MODULES.values():
        where = str(path.parent.relative_to(ROOT))
        sizes[where] = sizes.get(where, 0) + (path.name != "__init__.py")
    assert {where: size for where, size in sizes.items() if size > MOST_MODULES} == {}

"""The import rule of `gateway/`, read from its folders: a room knows only rooms below it, without circles."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1] / "gateway"

# Room → the rooms that it may import. The files directly in `gateway/` are rooms of their own.
RULE: dict[str, set[str]] = {
    "domain": set(),
    "protocol": {"domain"},
    # What a text is before a model sees it.
    "text": {"domain"},
    "stores": {"domain"},
    "engines": {"domain", "text"},
    "bundled": {"domain"},
    "identity": {"domain"},
    "meeting": {"domain", "protocol", "text"},
    "translation": {"domain", "protocol", "text", "meeting"},
    "sessions": {"domain", "protocol", "text", "meeting", "translation"},
    "server": {"domain", "protocol", "text", "meeting", "translation", "sessions"},
    "webhooks": {"domain"},
    "client": {"domain", "protocol"},
    "conformance": {"domain", "protocol"},
    "cli": {"domain", "protocol", "client", "conformance", "identity", "serving", "workers", "config", "doctor"},
    "state_folder": {"domain"},
    # Assembly: the one place that names every adapter.
    "store": {"domain", "stores", "config"},
    "engine": {"domain", "engines", "bundled", "config"},
    "keys": {"domain", "identity", "server", "config"},
    "doctor": {
        "domain",
        "bundled",
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
        "keys",
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
    "ownership": {"domain"},
    "tracing": {"domain"},
}
FOR_EVERYBODY = {"metrics", "exposition", "runtime", "ownership", "tracing"}
# Rooms that know neither tasks nor clocks nor I/O.
PURE = {"domain", "protocol", "text"}
# Modules of other rooms that promise the same.
PURE_MODULES = {
    "client.recognisers.browser",
    "client.recognisers.lines",
    "client.recognisers.recogniser",
    "client.recognisers.states",
    "client.recognisers.texts",
    "client.recognisers.utterances",
    *(
        f"client.recognisers.{each}"
        for each in ("browser", "lines", "recogniser", "states", "texts", "utterances")
    ),
    "engines.prompting.completions",
    "engines.prompting.detokenising",
    "engines.prompting.families",
    "engines.prompting.safety",
    "engines.prompting.templates",
    "engines.prompting.translator",
    "meeting.history",
    "meeting.subtitles",
    "meeting.transcript",
    "server.http.translate_request",
    "server.translate.plan",
    "sessions.grants",
    "sessions.machine",
    "sessions.rules",
    "translation.commit_policy",
}
IMPURE = {"asyncio", "datetime", "logging", "os", "pathlib", "random", "secrets", "socket", "threading", "time"}

# Package → the rooms or modules that may import it.
HEAVY = {
    "vllm": {"engines.vllm"},
    "torch": set(),
    "transformers": {"engines.prompting.model", "engines.remote"},
    "tokenizers": {"engines.prompting.model"},
    "aiohttp": {"engines.remote", "identity.jwks", "webhooks.sender"},
    "huggingface_hub": {"engines.vllm.plan"},
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
    "langcodes": {"domain.languages"},
    "numpy": {"bundled"},
    "jwt": {"identity"},
    "websockets": {"client", "conformance", "server.guard.websocket"},
    "prometheus_client": {"metrics"},
    "psutil": {"engines.host.processes", "engines.vllm.hardware"},
    "pynvml": {"engines.vllm.hardware"},
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
    "langcodes",
    "opentelemetry",
}

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
    if "_web_demo" not in path.parts and path != ROOT / "__init__.py"
}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


@cache
def imports(module: str) -> list[tuple[str, bool]]:
    """(module, whether at the top level of the file) for every import; type-checking blocks count as well."""
    top = set(map(id, tree(module).body))
    found = []
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from package import name`: the name may be a module.
            found += [(f"{node.module}.{alias.name}", id(node) in top) for alias in node.names]
    return found


@cache
def imported(module: str) -> frozenset[str]:
    """The other modules of `gateway` that a module imports."""
    found = set()
    for name, _ in imports(module):
        within = name.removeprefix("gateway.")
        if within != name:
            parts = within.split(".")
            ends = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
            found |= {next((end for end in ends if end in MODULES), "")} - {""}
    return frozenset(found - {module})


def room(module: str) -> str:
    return module.split(".")[0]


def folder(module: str) -> str:
    """`engines.vllm.plan` → `engines.vllm`; a module beside folders stands for itself."""
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0] or module


def circle(arrows: Mapping[str, Iterable[str]]) -> list[str]:
    """One circle, if there is any."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


# One test for all modules, which names each that breaks a rule: a test for each would take longer to collect.


def test_a_room_imports_only_the_rooms_below_it() -> None:
    assert {room(module) for module in MODULES} - RULE.keys() == set(), "say in RULE what these rooms may know"
    wrong = {}
    for module in MODULES:
        here = room(module)
        allowed = RULE[here] | {here} | (set() if here in PURE else FOR_EVERYBODY)
        wrong[module] = {target for target in imported(module) if room(target) not in allowed}
    assert {module: targets for module, targets in wrong.items() if targets} == {}


def test_no_file_is_in_a_circle_of_imports() -> None:
    assert circle({module: imported(module) for module in MODULES}) == []


def test_no_folder_is_in_a_circle_of_imports() -> None:
    arrows: dict[str, set[str]] = {}
    for module in MODULES:
        here = arrows.setdefault(folder(module), set())
        here |= {folder(target) for target in imported(module)} - {folder(module)}
    assert circle(arrows) == []


def test_heavy_packages_stay_in_their_adapter() -> None:
    elsewhere, too_early = [], []
    for module in MODULES:
        for name, at_top in imports(module):
            package = name.split(".")[0]
            if package in HEAVY:
                if not any(f"{module}.".startswith(f"{place}.") for place in HEAVY[package]):
                    elsewhere.append((module, package))
                if at_top and package in NOT_AT_THE_TOP:
                    too_early.append((module, package))
    assert elsewhere == []
    assert too_early == [], "imported before they are needed"


def test_pure_modules_know_no_io() -> None:
    impure = {}
    for module in MODULES:
        if room(module) in PURE or module in PURE_MODULES:
            packages = {name.split(".")[0] for name, _ in imports(module)}
            impure[module] = (packages & IMPURE) | ({room(target) for target in imported(module)} & FOR_EVERYBODY)
    assert {module: names for module, names in impure.items() if names} == {}


def test_the_pure_modules_are_there() -> None:
    assert set(MODULES) >= PURE_MODULES


def test_every_module_says_what_it_knows() -> None:
    silent = [module for module in MODULES if not ast.get_docstring(tree(module))]
    assert [module for module in silent if MODULES[module].read_text().strip()] == []

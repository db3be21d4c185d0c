"""The layer rule: a module imports only from layers to its left, and heavy packages in their adapter alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "gateway"

# Left to right; within one layer modules may import each other only where ALLOWED says so.
LAYERS: list[set[str]] = [
    {"errors", "languages", "events", "kept"},
    {"messages", "http_messages", "codec", "payload", "rate_limit", "schemas"}
    | {"session", "session_rules", "resume", "recent", "transcripts", "stability"}
    | {"prompts", "prompt_templates", "prompt_safety"},
    {"ports"},
    {
        "generations",
        "supervisor",
        "scheduler",
        "showing",
        "publisher",
        "interpreter",
        "event_loop_lag",
        "meetings",
        "members",
    }
    | {"live_utterances", "feed", "attendance", "outbox"},
    {"connection", "http_api", "http_responses", "http_transcripts", "http_qr", "sse"}
    | {"web", "server", "client"}
    | {"engines", "event_logs", "handover"},
    {"config"},
    {"app"},
    {"terminal", "cli_flags", "cli_transcript", "cli_meeting", "cli_speak", "cli_read"}
    | {"cli_translate", "cli_chat", "cli"},
]
ADAPTERS = LAYERS[4]
LEAVES = {"metrics", "runtime"}
# The only imports between adapters: parts of one adapter that are two nouns.
WITHIN_ADAPTERS = {
    ("http_api", "sse"),
    ("http_api", "http_responses"),
    ("http_api", "http_transcripts"),
    ("http_api", "http_qr"),
    ("http_transcripts", "http_responses"),
}
# Package → the modules that may import it. Anything not listed is for everybody.
HEAVY = {
    "vllm": {"engines.vllm", "engines.vllm_arguments"},
    "torch": set(),
    "transformers": set(),
    "redis": set(),
    "uvicorn": {"server", "app"},
    "starlette": {"connection", "http_api", "http_responses", "http_transcripts", "http_qr", "sse", "web", "app"},
    "segno": {"http_qr"},
    "websockets": {"client.connection", "client.sender", "client.session"},
    "prometheus_client": {"metrics"},
}
# Layers that know neither tasks nor clocks nor I/O.
PURE = LAYERS[0] | LAYERS[1]
IMPURE = {
    "asyncio",
    "time",
    "datetime",
    "socket",
    "os",
    "pathlib",
    "threading",
    "random",
    "secrets",
    "logging",
}

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in ROOT.rglob("*.py")
    if path.name not in {"__init__.py", "__main__.py"} and "_web_demo" not in path.parts
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
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "gateway" else []
            found += [(name, id(node) in top) for name in names or [node.module]]
    return found


def layer_of(module: str) -> int:
    noun = module.split(".")[0]
    return next((n for n, layer in enumerate(LAYERS) if noun in layer), -1)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_only_from_layers_to_its_left(module: str) -> None:
    noun = module.split(".")[0]
    assert noun in LEAVES or layer_of(module) >= 0, f"{module} is in no layer: name it in LAYERS"
    for name, _ in imports(MODULES[module]):
        if not name.startswith("gateway."):
            continue
        target = name.removeprefix("gateway.")
        target_noun = target.split(".")[0]
        if target_noun.startswith("__") or target_noun in LEAVES:
            assert module not in PURE or target_noun.startswith("__"), f"{module} imports {target}"
            continue
        assert noun not in LEAVES, f"the leaf {module} imports {target}"
        assert layer_of(target) >= 0, f"{module} imports {target}, which is in no layer"
        if noun in ADAPTERS and target_noun in ADAPTERS and noun != target_noun:
            assert (noun, target_noun) in WITHIN_ADAPTERS, f"the adapter {module} imports the adapter {target}"
        assert layer_of(target) <= layer_of(module), f"{module} imports {target}, to its right"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_heavy_packages_stay_in_their_adapter(module: str) -> None:
    for name, at_top in imports(MODULES[module]):
        package = name.split(".")[0]
        if package in HEAVY:
            assert module in HEAVY[package], f"{module} imports {package}"
        if package in {"vllm", "redis"}:
            assert not at_top, f"{module} imports {package} before it is needed"


@pytest.mark.parametrize("module", sorted(PURE & set(MODULES)))
def test_pure_modules_know_no_io(module: str) -> None:
    packages = {name.split(".")[0] for name, _ in imports(MODULES[module])}
    assert not packages & IMPURE


def test_config_is_read_by_app_and_cli_alone() -> None:
    readers = {module for module, path in MODULES.items() if any(n == "gateway.config" for n, _ in imports(path))}
    assert readers <= {"app", "cli"}


def test_every_module_says_what_it_knows() -> None:
    for module, path in MODULES.items():
        assert ast.get_docstring(ast.parse(path.read_text())), f"{module} has no docstring"

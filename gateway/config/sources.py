"""Where settings come from: a TOML file, environment variables, command line flags.

Knows: how each of them spells a setting, and how they override one another. Must not know: which settings exist.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from gateway.domain.errors import StartupError

# Two underscores, because Kubernetes sets variables such as GATEWAY_PORT for a service named `gateway`.
_PREFIX = "GATEWAY__"

# Flags whose name is not the last part of their setting.
_FLAGS = {
    "engine.kind": "--engine",
    "engine.url": "--engine-url",
    "auth.keys_file": "--keys",
    "store.url": "--store",
    "keep_engine_s": "--keep-engine",
}


class Source(Struct, frozen=True):
    """One place that sets values. Settings are named by dotted paths, such as `engine.model`."""

    # Its values, a dictionary for each section.
    tree: dict[str, Any]
    # The file; None for variables and flags.
    file: Path | None
    # Dotted path → how this source writes the setting.
    spell: Callable[[str], str]

    def where(self, path: str) -> str:
        """The file, or the variable or flag that sets `path`."""
        return str(self.file) if self.file is not None else self.spell(path)

    def about(self, path: str) -> str:
        """The beginning of a sentence about the value of `path`."""
        return f"{self.file}: {path}" if self.file is not None else self.spell(path)

    def sets(self, path: str) -> bool:
        """Whether it has a value for `path`."""
        tree: object = self.tree
        for key in path.split("."):
            if not isinstance(tree, dict) or key not in tree:
                return False
            tree = tree[key]
        return True


def file_source(file: Path | None) -> Source:
    """A TOML file; an empty source if `file` is None. Raises `StartupError` if the file cannot be read."""
    return Source(_read(file) if file is not None else {}, file, repr)


def environment_source(environment: Mapping[str, str]) -> Source:
    """The variables that begin with `GATEWAY__`."""
    variables = {
        name.removeprefix(_PREFIX).lower().replace("__", "."): value
        for name, value in environment.items()
        if name.startswith(_PREFIX)
    }
    return Source(_nested(variables), None, _variable)


def flag_source(overrides: Mapping[str, object]) -> Source:
    """Command line flags, given as dotted paths of settings."""
    return Source(_nested(overrides), None, _flag)


def merged(sources: Sequence[Source]) -> dict[str, Any]:
    """The values of all sources; a later source overrides an earlier one."""
    tree: dict[str, Any] = {}
    for source in sources:
        _merge(tree, source.tree)
    return tree


def origin(path: str, sources: Sequence[Source]) -> Source | None:
    """The source whose value of `path` is in force; None if the default is."""
    return next((source for source in reversed(sources) if source.sets(path.partition("[")[0])), None)


def stated(path: str, value: object, sources: Sequence[Source]) -> str:
    """The value of `path` and its source, as the beginning of a sentence."""
    source = origin(path, sources)
    return f"{path} is {value}, {f'from {source.where(path)}' if source is not None else 'the default'}"


def _variable(path: str) -> str:
    return _PREFIX + path.upper().replace(".", "__")


def _flag(path: str) -> str:
    return _FLAGS.get(path, f"--{path.rpartition('.')[2].replace('_', '-')}")


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise StartupError(f"There is no configuration file {file}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise StartupError(f"The configuration file {file} cannot be read: {error}.") from None


def _nested(flat: Mapping[str, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    # The deepest first: a section that is set like a setting then replaces its own settings, and is refused.
    for path in sorted(flat, key=lambda path: -path.count(".")):
        section = tree
        *parents, leaf = path.split(".")
        for parent in parents:
            section = section.setdefault(parent, {})
        section[leaf] = flat[path]
    return tree


def _merge(tree: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            section = tree.get(key)
            tree[key] = section = section if isinstance(section, dict) else {}
            _merge(section, value)
        else:
            tree[key] = value

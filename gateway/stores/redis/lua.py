"""The scripts that run inside the store, each as one step.

Knows: their files, and how the server calls them. Must not know: their arguments.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from gateway.stores.redis.connection import Command

__all__ = ["load_all", "sha"]

_NAMES = (
    *("accept", "conclude", "claim", "owned", "take_over"),
    *("open", "leave", "read", "sweep", "close"),
)


@cache
def _source(name: str) -> str:
    folder = files(__package__) / "scripts"
    return (folder / "common.lua").read_text() + (folder / f"{name}.lua").read_text()


@cache
def sha(name: str) -> str:
    """What `EVALSHA` calls a script by."""
    return hashlib.sha1(_source(name).encode(), usedforsecurity=False).hexdigest()


def load_all() -> tuple[Command, ...]:
    """Commands that load every script."""
    return tuple(("SCRIPT", "LOAD", _source(name)) for name in _NAMES)

"""The scripts that run inside the store, each as one step.

Knows: their files, and how the server calls them. Must not know: their arguments.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from gateway.stores.redis.connection import Command

# All begin with `shared.lua`, and then the `common.lua` of their folder.
# They promise more: a full store refuses them before they have changed anything.
_NEW_WORK = ("accept", "claim", "session_store/begin", "glossaries/put")
# What was accepted is finished, what has expired goes, and gateways are there, also while the store is full.
_ALWAYS = (
    *("conclude", "find_promise", "find_utterance", "take_over", "open", "leave", "positions", "read", "recent"),
    *("fit_account", "sweep", "close"),
    *("meetings", "erase"),
    *("meter/tell", "webhooks/tend", "webhooks/settle"),
    *(
        "session_store/find",
        "session_store/take",
        "session_store/save",
        "session_store/release",
        "session_store/end",
        "session_store/own",
    ),
    *(
        "session_store/present",
        "session_store/versions",
        "session_store/use",
        "session_store/revoke",
        "session_store/revocations",
    ),
    "session_store/of_tenant",
    *("session_store/sweep", "session_store/close"),
)


@cache
def _source(name: str) -> str:
    first = "#!lua flags=allow-oom" if name in _ALWAYS else "#!lua"
    folder = name.rpartition("/")[0]
    texts = ("shared.lua", f"{folder}/common.lua".lstrip("/"), f"{name}.lua")
    scripts = files(__package__) / "scripts"
    return "\n".join((first, *(scripts.joinpath(*text.split("/")).read_text() for text in texts)))


@cache
def sha(name: str) -> str:
    """What `EVALSHA` calls a script by."""
    return hashlib.sha1(_source(name).encode(), usedforsecurity=False).hexdigest()


def load_all() -> tuple[Command, ...]:
    """Commands that load every script."""
    return tuple(("SCRIPT", "LOAD", _source(name)) for name in (*_NEW_WORK, *_ALWAYS))

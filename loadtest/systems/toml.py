"""Settings as a TOML file.

Knows: TOML. Must not know: which settings there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["as_toml"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def as_toml(tree: Mapping[str, Any]) -> str:
    """Text, numbers, booleans, lists and sections of these, as TOML; what is null is left out.

    Raises `TypeError` for anything else.
    """
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in tree.items() if value is not None)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            # Inline tables: sections under sections need no order of lines.
            inner = (f"{_key(str(name))} = {_value(each)}" for name, each in value.items() if each is not None)
            return "{ " + ", ".join(inner) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
    raise TypeError(f"{value!r} has no place in TOML")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    # JSON's escapes are among TOML's; but TOML wants the delete character escaped too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

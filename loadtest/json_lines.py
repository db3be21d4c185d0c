"""A result as JSON that can be read, and compared line by line. Must not know what was measured."""

from __future__ import annotations

import json

import msgspec
from msgspec import Struct

__all__ = ["as_json"]


def as_json(result: Struct) -> str:
    """The whole result: a line for each value, and for each entry of a list."""

    def dense(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    lines: list[str] = []
    for name, value in msgspec.to_builtins(result).items():
        if isinstance(value, list) and value:
            entries = ",\n".join(f"  {dense(entry)}" for entry in value)
            lines.append(f" {dense(name)}: [\n{entries}\n ]")
        else:
            lines.append(f" {dense(name)}: {dense(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"

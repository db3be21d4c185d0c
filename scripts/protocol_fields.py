"""Writes the tables of fields at the end of docs/protocol.md, from the structs that the gateway decodes with.

    python -m scripts.protocol_fields

A test checks that the page has what this would write.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

from gateway.domain.log import Timings
from gateway.protocol.asyncapi import components, doc
from gateway.protocol.messages import Participant, Resume, client_messages, server_messages

PAGE = Path(__file__).parents[1] / "docs" / "protocol.md"
BEGIN = "<!-- The tables below are generated: `make docs`. -->\n"
END = "<!-- The end of what is generated. -->\n"

Schema = dict[str, Any]


def rewritten(page: str) -> str:
    """The page with its generated part as it should be. Raises `ValueError` if it has no such part."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("The page does not mark where its tables begin and end.")
    return before + BEGIN + "\n" + tables() + END + after


def tables() -> str:
    """One table for each message that has fields, and for each object in one."""
    schemas = components([*client_messages(), *server_messages()])
    sections: list[tuple[str, list[tuple[str, type[Struct]]], bool]] = [
        ("From the client", [(str(cls.__struct_config__.tag), cls) for cls in client_messages()], True),
        ("From the gateway", [(str(cls.__struct_config__.tag), cls) for cls in server_messages()], False),
        ("Objects in messages", [(cls.__name__, cls) for cls in (Resume, Participant, Timings)], False),
    ]
    lines: list[str] = []
    for heading, structs, bounded in sections:
        lines += [f"### {heading}", ""]
        for name, cls in structs:
            lines += [f"#### `{name}`", "", *wrapped(summary(cls)), ""]
            lines += table(schemas[cls.__name__], bounded=bounded or cls is Resume)
    return "\n".join(lines) + "\n"


def summary(cls: type[Struct]) -> str:
    """The docstring as one paragraph."""
    return " ".join(doc(cls).split())


def wrapped(text: str) -> list[str]:
    """The text in lines as long as those of the page."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > 120:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def table(schema: Schema, *, bounded: bool) -> list[str]:
    """A row for each field; none for a message that is only its type.

    bounded: whether the gateway checks the values.
    """
    fields = {name: inner for name, inner in schema["properties"].items() if name != "type"}
    if not fields:
        return []
    heads = ["field", "type", *(["bounds", "default"] if bounded else []), "meaning"]
    rows = [heads, ["---"] * len(heads)]
    for name, field in fields.items():
        inner, nullable = without_null(field)
        optional = name not in schema["required"]
        kind = shown_type(inner) + (" or null" if nullable else "")
        if optional and not bounded and "default" not in field:
            kind += ", or absent"
        default = json.dumps(field.get("default")) if optional else "required"
        checked = [bounds(inner), default] if bounded else []
        rows.append([f"`{name}`", kind, *checked, meaning(field, inner)])
    return ["| " + " | ".join(row) + " |" for row in rows] + [""]


def without_null(field: Schema) -> tuple[Schema, bool]:
    """The schema of the value, and whether null stands for none."""
    branches = field.get("anyOf", [field])
    inner = [branch for branch in branches if branch.get("type") != "null"]
    return inner[0], len(inner) < len(branches)


def shown_type(schema: Schema) -> str:
    """A type in words, such as `list of strings`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "object" if name == "Limits" else f"[{name}](#{name.lower()})"
    if "allOf" in schema:
        return shown_type(schema["allOf"][0])
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    match schema["type"]:
        case "array":
            return f"list of {plural(shown_type(schema['items']))}"
        case "object":
            return f"object of {plural(shown_type(schema['additionalProperties']))}"
        case kind:
            return str(kind)


def plural(kind: str) -> str:
    """`string` → `strings`, `object of strings` → `objects of strings`; a link stays."""
    if kind.startswith("["):
        return kind
    first, space, rest = kind.partition(" ")
    return f"{first}s{space}{rest}"


def bounds(schema: Schema) -> str:
    """What the gateway checks of a value, besides its type."""
    if limit := schema.get("x-limit"):
        return f"`{limit}`"
    if "minimum" in schema:
        exponent = schema["maximum"].bit_length()
        return f"{schema['minimum']} to 2^{exponent} - 1"
    return ""


def meaning(field: Schema, inner: Schema) -> str:
    """What the field says. Raises `ValueError` if nobody wrote it down."""
    text = field.get("description") or inner.get("description")
    if not text:
        raise ValueError(f"A field has no description: {field}")
    return str(text).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))

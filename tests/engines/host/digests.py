"""What messages look like, in short: another digest is another protocol."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec


def digest(*kinds: Any) -> str:
    """Digest of their fields and types, in order; not of what is said about them."""
    schemas = msgspec.json.schema_components(kinds)
    return hashlib.sha256(msgspec.json.encode(_without_words(schemas), order="sorted")).hexdigest()[:16]


def _without_words(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _without_words(each) for name, each in schema.items() if name != "description"}
    return [_without_words(each) for each in schema] if isinstance(schema, list | tuple) else schema

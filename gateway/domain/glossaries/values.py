"""Glossaries that tenants keep at the gateway, as values, and how much they may keep.

Knows: terms of pairs of languages. Must not know: where they are kept, any API.
"""

from __future__ import annotations

from msgspec import Struct

# Of one tenant, over all gateways: glossaries, and bytes of all of them as they are kept.
MOST_GLOSSARIES = 100
MOST_BYTES = 4 * 1_048_576


class Dictionary(Struct, frozen=True):
    """The terms of one pair of languages."""

    # Normalised tags.
    source: str
    target: str
    # Source term → target term, in the order in which they were given.
    terms: dict[str, str]


class Glossary(Struct, frozen=True, kw_only=True):
    """Dictionaries under one name."""

    id: str
    # Counts its changes, from 1.
    version: int = 1
    name: str
    # Seconds since 1970.
    created_s: float
    # At most one of each pair.
    dictionaries: tuple[Dictionary, ...]


class KeptGlossary(Struct, frozen=True):
    """What one process hands over to the next."""

    tenant: str
    glossary: Glossary

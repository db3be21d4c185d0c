"""Glossaries that tenants keep at the gateway, how much they may keep, and the port behind which they are kept.

Knows: terms of pairs of languages, the port's contract. Must not know: any store, any API.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

# Most glossaries of one tenant over all gateways, and most bytes of all of them as they are kept.
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


class Glossaries(Protocol):
    """What tenants keep to have their terms translated as they want, until they delete it.

    Each gateway has access of its own; those of one store share what is in it. Contract of every adapter:
    `tests/contract/test_glossaries_contract.py`. Everything raises `LogUnavailable` while the store cannot be
    reached, and can be repeated.
    """

    async def of_tenant(self, tenant: str) -> list[Glossary]:
        """All of a tenant's, the oldest first."""

    async def find(self, tenant: str, id: str) -> Glossary | None:
        """One of a tenant's."""

    async def put(self, tenant: str, glossary: Glossary) -> bool:
        """Keep a new one, with version 1, or a changed one, with the next version after the one that is kept.

        False if another version is kept now: nothing was done. Raises `LimitExceeded`.
        """

    async def delete(self, tenant: str, id: str) -> None:
        """Delete a glossary, if it is kept."""

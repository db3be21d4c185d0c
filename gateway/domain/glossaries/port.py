"""The port behind which glossaries are kept.

Knows: its contract. Must not know: any implementation.
"""

from __future__ import annotations

from typing import Protocol

from gateway.domain.glossaries.values import Glossary, KeptGlossary


class Glossaries(Protocol):
    """What tenants keep to have their terms translated as they want, until they delete it.

    Each gateway has access of its own; those of one store share what is in it. Contract of every adapter:
    `tests/contract/test_glossaries_contract.py`. Everything but `kept` raises `LogUnavailable` while the store
    cannot be reached, and can be repeated.
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
        """Keep it no more, if it is kept."""

    async def kept(self) -> tuple[KeptGlossary, ...]:
        """Those that would be lost with this process, for the next one."""

"""Glossaries in this process's memory. They end with the process unless handed over.

Knows: every tenant's glossaries. Must not know: files. Nothing here awaits, so every operation is atomic.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gateway.domain.errors import LimitExceeded
from gateway.domain.glossaries import MOST_BYTES, MOST_GLOSSARIES, Glossary, KeptGlossary


class MemoryGlossaries:
    """What the gateways of one process share. earlier: what another process kept."""

    def __init__(self, earlier: Iterable[KeptGlossary] = ()) -> None:
        # Tenant → id → glossary.
        self.of_tenants: dict[str, dict[str, Glossary]] = {}
        for each in earlier:
            self.of_tenants.setdefault(each.tenant, {})[each.glossary.id] = each.glossary

    async def of_tenant(self, tenant: str) -> list[Glossary]:
        return list(self.of_tenants.get(tenant, {}).values())

    async def find(self, tenant: str, id: str) -> Glossary | None:
        return self.of_tenants.get(tenant, {}).get(id)

    async def put(self, tenant: str, glossary: Glossary) -> bool:
        held = self.of_tenants.get(tenant, {})
        before = held.get(glossary.id)
        if before == glossary:
            return True
        if glossary.version != (1 if before is None else before.version + 1):
            return False
        if before is None and len(held) >= MOST_GLOSSARIES:
            raise LimitExceeded(f"There are {MOST_GLOSSARIES} glossaries already; delete one.")
        others = sum(_bytes(each) for each in held.values() if each is not before)
        if others + _bytes(glossary) > MOST_BYTES:
            raise LimitExceeded(f"All glossaries together may have {MOST_BYTES} bytes.")
        self.of_tenants.setdefault(tenant, held)[glossary.id] = glossary
        return True

    async def delete(self, tenant: str, id: str) -> None:
        held = self.of_tenants.get(tenant, {})
        held.pop(id, None)
        if not held:
            self.of_tenants.pop(tenant, None)

    def kept_glossaries(self) -> tuple[KeptGlossary, ...]:
        """For the next process."""
        of_tenants = self.of_tenants.items()
        return tuple(KeptGlossary(tenant, each) for tenant, held in of_tenants for each in held.values())


def _bytes(glossary: Glossary) -> int:
    return len(msgspec.msgpack.encode(glossary))

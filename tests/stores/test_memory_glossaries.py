"""Glossaries in memory, from one process to the next. What holds for every store is in `tests/contract/`."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gateway.domain.errors import LimitExceeded
from gateway.domain.glossaries import MOST_BYTES, Dictionary, Glossary
from gateway.stores.memory_glossaries import MemoryGlossaries

GLOSSARY = Glossary(id="g", name="n", created_s=1.0, dictionaries=(Dictionary("en", "de", {"a": "b"}),))


async def test_the_next_process_has_what_this_one_kept() -> None:
    before = MemoryGlossaries()
    assert await before.put("acme", GLOSSARY)
    after = MemoryGlossaries(before.kept_glossaries())
    assert await after.of_tenant("acme") == [GLOSSARY]
    await after.delete("acme", "g")
    assert after.kept_glossaries() == ()


async def test_of_a_tenant_without_glossaries_nothing_stays() -> None:
    glossaries = MemoryGlossaries()
    assert not await glossaries.put("acme", replace(GLOSSARY, version=2))
    with pytest.raises(LimitExceeded):
        await glossaries.put("acme", replace(GLOSSARY, name="n" * MOST_BYTES))
    assert glossaries.of_tenants == {}

"""Glossaries in memory, from one process to the next. What holds for every store is in `tests/contract/`."""

from __future__ import annotations

from gateway.domain.glossaries.values import Dictionary, Glossary
from gateway.stores.glossaries.memory import MemoryGlossaries, MemoryGlossariesStore


async def test_the_next_process_has_what_this_one_kept() -> None:
    glossary = Glossary(id="g", name="n", created_s=1.0, dictionaries=(Dictionary("en", "de", {"a": "b"}),))
    before = MemoryGlossaries()
    assert await before.put("acme", glossary)
    after = MemoryGlossaries(MemoryGlossariesStore(await before.kept()))
    assert await after.of_tenant("acme") == [glossary]
    await after.delete("acme", "g")
    assert await after.kept() == ()

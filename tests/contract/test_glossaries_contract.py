"""The duties of every adapter of the Glossaries port: what one gateway keeps, all of a store have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from gateway.domain.errors import LimitExceeded
from gateway.domain.glossaries import MOST_BYTES, MOST_GLOSSARIES, Dictionary, Glossaries, Glossary
from tests.contract.stores import STORES


class Two(NamedTuple):
    here: Glossaries
    there: Glossaries


@pytest.fixture(params=list(STORES))
async def two(request: pytest.FixtureRequest) -> AsyncIterator[Two]:
    async with STORES[request.param]() as store:
        yield Two(await store.glossaries(), await store.glossaries())


def glossary(id: str = "g", **fields: Any) -> Glossary:
    terms = Dictionary("en", "de", {"launch": "Start", "team": "Team"})
    return Glossary(**{"id": id, "name": "Words", "created_s": 1.5, "dictionaries": (terms,), **fields})


async def test_glossaries_are_shared_by_gateways_not_tenants(two: Two) -> None:
    first, second = glossary("b"), glossary("a", created_s=2.5)
    assert await two.here.put("acme", first)
    assert await two.there.put("acme", second)
    assert await two.there.find("acme", "b") == first
    assert await two.here.of_tenant("acme") == [first, second]
    assert await two.here.find("other", "b") is None
    assert await two.here.of_tenant("other") == []
    await two.here.delete("other", "b")
    await two.here.delete("acme", "b")
    assert await two.there.of_tenant("acme") == [second]
    await two.here.delete("acme", "b")


async def test_first_change_to_a_version_wins(two: Two) -> None:
    assert await two.here.put("acme", glossary())
    mine, theirs = (glossary(version=2, name=name) for name in ("mine", "theirs"))
    assert await two.here.put("acme", mine)
    assert not await two.there.put("acme", theirs)
    assert not await two.there.put("acme", glossary())
    assert await two.there.find("acme", "g") == mine
    await two.here.delete("acme", "g")
    # What was deleted does not come back by a change that is late.
    assert not await two.there.put("acme", replace(mine, version=3))


async def test_so_many_and_no_more(two: Two) -> None:
    for number in range(MOST_GLOSSARIES):
        assert await two.here.put("acme", glossary(str(number)))
    with pytest.raises(LimitExceeded, match="100 glossaries"):
        await two.there.put("acme", glossary("more"))
    assert await two.there.put("acme", glossary("0", version=2))
    assert await two.there.put("other", glossary("more"))


async def test_so_many_bytes_and_no_more(two: Two) -> None:
    half = Dictionary("en", "de", {"a": "ü" * (MOST_BYTES // 4)})
    assert await two.here.put("acme", glossary("one", dictionaries=(half,)))
    with pytest.raises(LimitExceeded, match=str(MOST_BYTES)):
        await two.there.put("acme", glossary("two", dictionaries=(half,)))
    assert await two.there.put("acme", glossary("one", version=2, dictionaries=(half,)))
    with pytest.raises(LimitExceeded):
        await two.there.put("acme", glossary("one", version=3, dictionaries=(half, half)))
    assert await two.there.put("acme", glossary("small"))

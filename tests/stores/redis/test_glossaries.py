"""Glossaries in a real Redis, sealed. What holds for every store is in `tests/contract/`."""

from __future__ import annotations

import secrets

import pytest

from gateway.domain.errors import LogUnavailable
from gateway.domain.glossaries import Dictionary, Glossary
from gateway.stores.redis.glossaries import RedisGlossaries
from gateway.stores.redis.store import RedisStore
from gateway.stores.sealing import Seal
from tests.redis_server import shared_server
from tests.usual import usual

GLOSSARY = Glossary(id="g", name="n", created_s=1.0, dictionaries=(Dictionary("en", "de", {"secret": "b"}),))


async def test_glossaries_are_sealed_with_the_key() -> None:
    server, prefix = shared_server(), f"{secrets.token_hex(4)}:"
    keys = [secrets.token_bytes(32) for _ in range(2)]
    stores = [usual(RedisStore, server.url, prefix=prefix, seal=Seal([key])) for key in keys]
    for store in stores:
        await store.start()
    mine, other = map(RedisGlossaries, stores)
    try:
        assert await mine.put("acme", GLOSSARY)
        assert await mine.find("acme", "g") == GLOSSARY
        assert b"secret" not in await stores[0].commands.run("HGET", f"{prefix}glossaries:acme", "g")
        with pytest.raises(LogUnavailable, match="key"):
            await other.find("acme", "g")
        for tenant, id in (("other", "g"), ("acme", "h")):
            value = await stores[0].commands.run("HGET", f"{prefix}glossaries:acme", "g")
            await stores[0].commands.run("HSET", f"{prefix}glossaries:{tenant}", id, value)
            with pytest.raises(LogUnavailable, match="another"):
                await mine.find(tenant, id)
            with pytest.raises(LogUnavailable, match="another"):
                await mine.of_tenant(tenant)
    finally:
        for store in stores:
            await store.close()

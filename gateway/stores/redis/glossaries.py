"""Glossaries in Redis, for all gateways, until they are deleted.

Knows: the script's arguments, what is sealed. Must not know: how the script works.
"""

from __future__ import annotations

import msgspec

from gateway.domain.errors import LimitExceeded, LogUnavailable
from gateway.domain.glossaries import MOST_BYTES, MOST_GLOSSARIES, Glossary
from gateway.stores.redis.store import RedisStore
from gateway.stores.sealing import Place, SealError

_decoder = msgspec.msgpack.Decoder(Glossary)

# `Place.kind` of glossaries.
_KIND = "glossary"
# Answers of the script.
_OTHER_VERSION, _TOO_MANY, _TOO_MUCH = 0, -1, -2


class RedisGlossaries:
    """One gateway's access to a store that gateways share, once it has started."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store

    async def of_tenant(self, tenant: str) -> list[Glossary]:
        held = await self.store.commands.run("HGETALL", self._key(tenant))
        found = [self._opened(tenant, id.decode(), each) for id, each in zip(held[::2], held[1::2], strict=True)]
        return sorted(found, key=lambda each: (each.created_s, each.id))

    async def find(self, tenant: str, id: str) -> Glossary | None:
        held = await self.store.commands.run("HGET", self._key(tenant), id)
        return None if held is None else self._opened(tenant, id, held)

    async def put(self, tenant: str, glossary: Glossary) -> bool:
        value = self.store.seal.close(msgspec.msgpack.encode(glossary), Place(_KIND, tenant, glossary.id))
        answer = await self.store.run_script(
            *("glossaries/put", self._key(tenant), glossary.id, glossary.version, value),
            *(MOST_GLOSSARIES, MOST_BYTES),
        )
        if answer == _TOO_MANY:
            raise LimitExceeded(f"There are {MOST_GLOSSARIES} glossaries already; delete one.")
        if answer == _TOO_MUCH:
            raise LimitExceeded(f"All glossaries together may have {MOST_BYTES} bytes.")
        return bool(answer != _OTHER_VERSION)

    async def delete(self, tenant: str, id: str) -> None:
        await self.store.commands.run("HDEL", self._key(tenant), id)

    def _key(self, tenant: str) -> str:
        return f"{self.store.prefix}glossaries:{tenant}"

    def _opened(self, tenant: str, id: str, value: bytes) -> Glossary:
        try:
            return _decoder.decode(self.store.seal.open(value.partition(b" ")[2], Place(_KIND, tenant, id)))
        except SealError as error:
            raise LogUnavailable(f"A glossary in the store cannot be read: {error}.") from None
        except (ValueError, msgspec.MsgspecError):
            raise LogUnavailable("A glossary in the store cannot be read: did a newer gateway write it?") from None

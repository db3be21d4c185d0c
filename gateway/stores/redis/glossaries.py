"""Glossaries in Redis, for all gateways, until they are deleted.

Knows: the script's arguments, what is sealed. Must not know: how the script works.
"""

from __future__ import annotations

import logging

import msgspec

from gateway.domain.errors import LimitExceeded, LogUnavailable
from gateway.domain.glossaries import MOST_BYTES, MOST_GLOSSARIES, Glossary
from gateway.stores.redis.store import RedisStore
from gateway.stores.sealing import Place, SealError

_log = logging.getLogger(__name__)

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
        found = [self._opened(tenant, id, value) for id, value in await self._held(tenant)]
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

    async def bind_all(self) -> None:
        """Seal those again that an earlier version has bound to no place. Raises `LogUnavailable`."""
        if not self.store.seal.opens_unbound:
            return
        cursor, pattern = b"0", f"{_literal(self._key(''))}*"
        while True:
            cursor, keys = await self.store.commands.run("SCAN", cursor, "MATCH", pattern, "COUNT", 500)
            for key in keys:
                tenant = key.decode().removeprefix(self._key(""))
                for id, value in await self._held(tenant):
                    if self.store.seal.is_unbound(value.partition(b" ")[2]):
                        await self._bind(tenant, id, value)
            if cursor == b"0":
                return

    async def _bind(self, tenant: str, id: str, value: bytes) -> None:
        try:
            glossary = self._opened(tenant, id, value)
        except LogUnavailable as error:
            _log.error("a glossary of an earlier version is left as it is: %s", error.message)
            return
        sealed = self.store.seal.close(msgspec.msgpack.encode(glossary), Place(_KIND, tenant, id))
        await self.store.run_script(
            "glossaries/replace", self._key(tenant), id, value, b"%d " % glossary.version + sealed
        )

    async def _held(self, tenant: str) -> list[tuple[str, bytes]]:
        """Id and what is kept of each glossary."""
        held = await self.store.commands.run("HGETALL", self._key(tenant))
        return [(id.decode(), value) for id, value in zip(held[::2], held[1::2], strict=True)]

    def _key(self, tenant: str) -> str:
        return f"{self.store.prefix}glossaries:{tenant}"

    def _opened(self, tenant: str, id: str, value: bytes) -> Glossary:
        try:
            return _decoder.decode(self.store.seal.open(value.partition(b" ")[2], Place(_KIND, tenant, id)))
        except SealError as error:
            raise LogUnavailable(f"A glossary in the store cannot be read: {error}.") from None
        except (ValueError, msgspec.MsgspecError):
            raise LogUnavailable("A glossary in the store cannot be read: did a newer gateway write it?") from None


def _literal(text: str) -> str:
    """As a pattern that matches only this."""
    return "".join(f"\\{each}" if each in "\\*?[]^-" else each for each in text)

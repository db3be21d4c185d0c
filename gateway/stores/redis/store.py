"""One gateway's access to a Redis that gateways share: the connections of its log and of its live channel.

Knows: connections, keys' prefix, what the store calls this gateway. Must not know: what is kept there.
"""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any

from gateway.stores.redis import lua
from gateway.stores.redis.checks import check
from gateway.stores.redis.commands import Commands
from gateway.stores.redis.connection import Connection, address_of
from gateway.stores.redis.pushes import Pushes
from gateway.stores.sealing import Seal


class RedisStore:
    """Connections to one server, once it has started.

    url: `redis://`, `rediss://` or `unix://`. prefix: of all keys, so that several can use one server.
    patience_s: how long a call waits for the store at most.
    answer_s: how long a connection may be silent while an answer is due; then another one is used.
    seal: encrypts what people said; without it the store can read it.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str,
        patience_s: float = 5.0,
        answer_s: float = 3.0,
        seal: Seal | None = None,
    ) -> None:
        self.seal = seal or Seal()
        self._url = url
        # Without its password.
        self.address = address_of(url)
        # A connection that is not connected yet.
        self.new_connection = partial(Connection, url)
        self.prefix = prefix
        # What the store calls this gateway.
        self.id = secrets.token_hex(4)
        self.commands = Commands(
            *(self.new_connection, lua.load_all()), patience_s=patience_s, answer_s=answer_s, address=self.address
        )
        self.pushes = Pushes(self.new_connection, patience_s=patience_s)

    async def start(self) -> None:
        """Check the store and connect; `close` ends it. Raises `StartupError`."""
        await check(self._url)
        self.commands.start()
        self.pushes.start()

    async def close(self) -> None:
        """Never raises."""
        await self.pushes.close()
        await self.commands.close()

    async def run_script(self, name: str, *arguments: bytes | str | int, patience_s: float | None = None) -> Any:
        """A script's answer. Raises `LogUnavailable`."""
        return await self.commands.run("EVALSHA", lua.sha(name), 0, *arguments, patience_s=patience_s)

    def channel(self, meeting: str, name: str) -> bytes:
        """What is pushed of a meeting."""
        return f"{self.prefix}{{{meeting}}}:{name}".encode()

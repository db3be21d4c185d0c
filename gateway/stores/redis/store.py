"""One gateway's access to a Redis that gateways share: the connections of its log and of its live channel.

Knows: connections, scripts and how the server calls them, keys' prefix, what the store calls this gateway.
Must not know: what is kept there.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from gateway.domain.errors import LogUnavailable
from gateway.stores.redis.checks import check
from gateway.stores.redis.commands import Commands
from gateway.stores.redis.connection import Command, Connection, address_of
from gateway.stores.redis.pushes import Pushes
from gateway.stores.sealing import Seal

_SCRIPTS = Path(__file__).with_name("scripts")
# These promise more: a full store refuses them before they have changed anything. With all others, what was
# accepted is finished, what has expired goes, and gateways are there, also while the store is full.
_NEW_WORK = ("accept", "claim", "session_store/begin", "glossaries/put", "find_room")
# How long to wait for the answer whether there is room.
_ROOM_PATIENCE_S = 1.0
# What scripts begin with, all of them and those of a folder.
_SHARED, _OF_FOLDER = "shared", "common"


def script_names() -> list[str]:
    found = (path for path in _SCRIPTS.rglob("*.lua") if path.stem not in (_SHARED, _OF_FOLDER))
    return sorted(path.relative_to(_SCRIPTS).with_suffix("").as_posix() for path in found)


@cache
def _source(name: str) -> str:
    first = "#!lua" if name in _NEW_WORK else "#!lua flags=allow-oom"
    folder = name.rpartition("/")[0]
    texts = (_SHARED, f"{folder}/{_OF_FOLDER}".lstrip("/"), name)
    return "\n".join((first, *((_SCRIPTS / f"{text}.lua").read_text() for text in texts)))


@cache
def sha(name: str) -> str:
    """What `EVALSHA` calls a script by."""
    return hashlib.sha1(_source(name).encode(), usedforsecurity=False).hexdigest()


@cache
def load_all() -> tuple[Command, ...]:
    return tuple(("SCRIPT", "LOAD", _source(name)) for name in script_names())


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
            *(self.new_connection, load_all()), patience_s=patience_s, answer_s=answer_s, address=self.address
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
        return await self.commands.run("EVALSHA", sha(name), 0, *arguments, patience_s=patience_s)

    async def find_room(self) -> None:
        """Find out whether the store takes new work; `commands.is_full` says it. Never raises."""
        with suppress(LogUnavailable):
            await self.run_script("find_room", patience_s=_ROOM_PATIENCE_S)
            self.commands.is_full = False

    def channel(self, meeting: str, name: str) -> bytes:
        """What is pushed of a meeting."""
        return f"{self.prefix}{{{meeting}}}:{name}".encode()

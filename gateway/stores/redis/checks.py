"""What stores must be set to, and which of them share meetings, so that what they have answered is never lost.

Knows: the settings, and the sentence for each that is wrong. Must not know: scripts, what is kept there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from gateway.domain.errors import LogUnavailable, StartupError
from gateway.stores.redis.commands import Commands
from gateway.stores.redis.connection import Command, Connection, Lost, Refused, address_of, is_local

__all__ = ["check", "ids_of"]

_OLDEST = (7, 0)
# One of these keys exists while a store holds a meeting or a session, or a gateway is there.
_IN_USE = ("due", "tenants", "heard_of_one")
# Setting → its value, and what would happen otherwise.
_SETTINGS = {
    "appendonly": ("yes", "or what it holds is lost when it restarts"),
    "appendfsync": ("always", "or it may lose what it has confirmed"),
    "maxmemory-policy": ("noeviction", "or it drops logs when its memory is full"),
}


class _Started(Protocol):
    """A store that has started: see `store.RedisStore`."""

    commands: Commands
    prefix: str
    address: str


async def check(url: str, *, answer_s: float = 5.0) -> None:
    """Raises `StartupError`, which says what to change."""
    address = address_of(url)
    if not is_local(url) and not urlsplit(url).password:
        raise StartupError(
            f"The store {address} needs a password, as others may reach it: set `requirepass` there, and write "
            "the password into its address (redis://:password@host:6379)."
        )
    connection = Connection(url)
    try:
        async with asyncio.timeout(answer_s):
            await connection.connect()
            about = _about(await _ask(connection, ("INFO", "everything")))
            _check_kind(address, about)
            for setting, (value, otherwise) in _SETTINGS.items():
                reply = await _ask(connection, ("CONFIG", "GET", setting))
                if (found := reply[1].decode()) != value:
                    raise StartupError(
                        f"The store {address} must be set to `{setting} {value}`, {otherwise}; it has `{found}`."
                    )
    except Refused as error:
        raise StartupError(f"The store {address} refuses the gateway: {error}.") from None
    except (Lost, TimeoutError) as error:
        raise StartupError(f"The store {address} cannot be reached ({str(error) or 'no answer'}).") from None
    finally:
        await connection.close()


async def ids_of(stores: Sequence[_Started]) -> list[str]:
    """What each store that shares the meetings calls itself, for good. They have started.

    Raises `StartupError` where meetings are shared among other stores than these: they would be looked for in the
    wrong one.
    """
    try:
        ids = [await _id_of(store) for store in stores]
        if len(set(ids)) < len(ids):
            raise StartupError("The same store is named twice: name each once, or give each a server of its own.")
        together = ",".join(sorted(ids))
        known = [await store.commands.run("GET", f"{store.prefix}stores") for store in stores]
        before = [of.decode() if of is not None else id for of, id in zip(known, ids, strict=True)]
        for store, shared in zip(stores, before, strict=True):
            if shared != together and await store.commands.run(
                "EXISTS", *(f"{store.prefix}{key}" for key in _IN_USE)
            ):
                raise StartupError(
                    f"The store {store.address} holds meetings that it shares with other stores than these: name "
                    f"the same as before ({shared.count(',') + 1} in all), or let all gateways end and wait until "
                    "what it holds has expired (event_log.keep_s)."
                )
        for store in stores:
            await store.commands.run("SET", f"{store.prefix}stores", together)
    except LogUnavailable as error:
        raise StartupError(error.message) from None
    return ids


async def _id_of(store: _Started) -> str:
    key = f"{store.prefix}id"
    await store.commands.run("SET", key, secrets.token_hex(8), "NX")
    id: bytes = await store.commands.run("GET", key)
    return id.decode()


def _check_kind(address: str, about: dict[str, str]) -> None:
    version = tuple(map(int, about.get("redis_version", "0.0").split(".")[:2]))
    if "valkey_version" not in about and version < _OLDEST:
        raise StartupError(
            f"The store {address} is Redis {about.get('redis_version')}: install Redis 7.0 or newer, or Valkey."
        )
    if about.get("cluster_enabled") == "1":
        raise StartupError(
            f"The store {address} is a Redis Cluster: set `cluster-enabled no`, as one server is needed."
        )
    if about.get("role", "master") != "master":
        raise StartupError(f"The store {address} is a replica: give the address of its primary.")


async def _ask(connection: Connection, command: Command) -> Any:
    await connection.send([command])
    return await connection.receive()


def _about(info: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    return {name: value.strip() for name, _, value in lines}

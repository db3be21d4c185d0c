"""What stores must be set to so that what they have answered is not lost, and which of them share meetings.

Knows: the settings, and the sentence for each that is wrong. Must not know: scripts, what is kept there.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from gateway.domain.errors import LogUnavailable, StartupError
from gateway.stores.redis.commands import Commands
from gateway.stores.redis.connection import Command, Connection, Lost, Refused, address_of, is_local

# What is kept in a store, and how. Raised with each change that gateways of the version before would not bear:
# only those of one format are on a store at the same time.
FORMAT = 2

_OLDEST = (7, 0)
# Longest wait for what a store says of itself.
_ANSWER_S = 5.0
# One of these keys exists while a store holds a meeting, a session or a revocation, or a gateway is there.
_IN_USE = ("due", "tenants", "revocations", "heard_of_one")
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


async def check(url: str) -> None:
    """Raises `StartupError`, which says what to change."""
    address = address_of(url)
    if not is_local(url) and not urlsplit(url).password:
        raise StartupError(
            f"The store {address} needs a password, as others may reach it: set `requirepass` there, and write "
            "the password into its address (redis://:password@host:6379)."
        )
    connection = Connection(url)
    try:
        async with asyncio.timeout(_ANSWER_S):
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


async def clock_offset_s(url: str) -> float:
    """How far the store's clock is ahead of this machine's, in seconds. Raises `StartupError`."""
    connection = Connection(url)
    try:
        await connection.connect()
        seconds, microseconds = await _ask(connection, ("TIME",))
    except (Lost, Refused) as error:
        raise StartupError(f"The store {address_of(url)} does not tell its time ({error}).") from None
    finally:
        await connection.close()
    return int(seconds) + int(microseconds) / 1e6 - time.time()


async def ids_of(stores: Sequence[_Started]) -> list[str]:
    """What each of the stores that share meetings calls itself, for good. They have started.

    Raises `StartupError` where meetings are shared among other stores than these, as they would be looked for in
    the wrong one, and where what they hold is of another `FORMAT`.
    """
    try:
        for store in stores:
            await _check_format(store)
        return await _ids_of(stores)
    except LogUnavailable as error:
        raise StartupError(error.message) from None


async def _check_format(store: _Started) -> None:
    key = f"{store.prefix}format"
    found: bytes | None = await store.commands.run("GET", key)
    if found is None:
        with contextlib.suppress(LogUnavailable):  # a full store is no obstacle
            await store.commands.run("SET", key, str(FORMAT), "NX")
    elif found != str(FORMAT).encode():
        raise StartupError(
            f"What the store {store.address} holds is of format {found.decode(errors='replace')}, and this "
            f"gateway reads format {FORMAT}: start the version that wrote it, or give another store.prefix to "
            "begin with nothing."
        )


async def _ids_of(stores: Sequence[_Started]) -> list[str]:
    shares = [await _share_of(store) for store in stores]
    if shares == [None]:
        return [""]  # it shares with none, so nothing needs to be written
    ids = [None if share is None else share[0] for share in shares]
    known = [id for id in ids if id is not None]
    if len(set(known)) < len(known):
        raise StartupError("The same store is named twice in store.url.")
    sharing = {share[1] for share in shares if share is not None}
    together = sharing.pop() if len(sharing) == 1 else ()
    lost = [id for id in together if id not in known]
    # One that has lost its data can only be the one that is missing; the others hold meetings all the same.
    if len(together) == len(stores) and ids.count(None) == len(lost) <= 1:
        agreed = [lost[0] if id is None else id for id in ids]
    else:
        for store in stores:
            await _check_unused(store)
        agreed = [secrets.token_hex(8) for _ in stores]
    if agreed == ids:
        return agreed  # without writing: a full store is no obstacle
    await remember(stores, agreed)
    if [share and share[0] for share in [await _share_of(store) for store in stores]] != agreed:
        raise StartupError(
            "The same store is named twice in store.url, or another gateway was faster: start again."
        )
    return agreed


async def remember(stores: Sequence[_Started], ids: Sequence[str], patience_s: float | None = None) -> None:
    """Write down, where it is not, which stores share meetings. Raises `LogUnavailable`."""
    for store, id in zip(stores, ids, strict=True):
        share = f"{id} {','.join(sorted(ids))}"
        await store.commands.run("SET", f"{store.prefix}share", share, "NX", patience_s=patience_s)


async def _share_of(store: _Started) -> tuple[str, tuple[str, ...]] | None:
    """Its id, and those of all that share meetings with it. None if it does not know of any."""
    share: bytes | None = await store.commands.run("GET", f"{store.prefix}share")
    if share is None:
        return None
    id, _, ids = share.decode().partition(" ")
    return id, tuple(ids.split(","))


async def _check_unused(store: _Started) -> None:
    """Make it forget with whom it shared. Raises `StartupError` while it holds something."""
    if await store.commands.run("EXISTS", *(f"{store.prefix}{key}" for key in _IN_USE)):
        raise StartupError(
            f"The store {store.address} holds meetings that it does not share with these stores: name the same as "
            "before, or let all gateways end and wait until what it holds has expired (docs/scaling.md)."
        )
    await store.commands.run("DEL", f"{store.prefix}share")


def _check_kind(address: str, about: dict[str, str]) -> None:
    version = tuple(map(int, about.get("redis_version", "0.0").split(".")[:2]))
    if "valkey_version" not in about and version < _OLDEST:
        raise StartupError(
            f"The store {address} is Redis {about.get('redis_version')}: install Redis 7.0 or newer, or Valkey."
        )
    if about.get("cluster_enabled") == "1":
        raise StartupError(
            f"The store {address} is a Redis Cluster, which is not supported: set `cluster-enabled no`."
        )
    if about.get("role", "master") != "master":
        raise StartupError(f"The store {address} is a replica: give the address of its primary.")


async def _ask(connection: Connection, command: Command) -> Any:
    await connection.send([command])
    return await connection.receive()


def _about(info: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    return {name: value.strip() for name, _, value in lines}

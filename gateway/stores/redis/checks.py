"""What the store must be set to, so that what it has answered is never lost.

Knows: the settings, and the sentence for each that is wrong. Must not know: scripts, keys.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from gateway.domain.errors import StartupError
from gateway.stores.redis.connection import Command, Connection, Lost, Refused, address_of, is_local

__all__ = ["check"]

_OLDEST = (7, 0)
# Setting → its value, and what would happen otherwise.
_SETTINGS = {
    "appendonly": ("yes", "or what it holds is lost when it restarts"),
    "appendfsync": ("always", "or it may lose what it has confirmed"),
    "maxmemory-policy": ("noeviction", "or it drops logs when its memory is full"),
}


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

"""One connection to Redis: commands out, replies in. The only module that knows redis-py.

Knows: addresses, passwords, what an error of the server or the network means.
Must not know: scripts, meetings, when to connect again.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from gateway.domain.errors import StartupError

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

__all__ = ["Argument", "Command", "Connection", "Full", "Lost", "NotLoaded", "Refused", "address_of", "is_local"]

Argument = bytes | str | int
Command = tuple[Argument, ...]

# An answer that tells nothing about the command: the server is not ready for any, but will be.
_LATER = ("LOADING", "BUSY", "MASTERDOWN", "READONLY", "TRYAGAIN", "CLUSTERDOWN")
# The server is ready, but takes no more.
_FULL = ("OOM", "MISCONF", "NOREPLICAS")


class Lost(Exception):
    """The connection ended, or the server is not ready; what was sent may have been done."""


class NotLoaded(Exception):
    """The server does not have this script; it has done nothing."""


class Refused(Exception):
    """The server has refused a command, and has done nothing."""


def address_of(url: str) -> str:
    """Where the store is, without its password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def is_local(url: str) -> bool:
    """Whether this is a Unix socket, which files' permissions protect."""
    return urlsplit(url).scheme == "unix"


class Full(Refused):
    """The server takes nothing more: its memory or its disk is full."""


class Connection:
    """To one server. Not connected at first, and not again once it was lost.

    url: `redis://`, `rediss://` (TLS) or `unix://`, with user, password and database. Raises `StartupError`.
    connect_s: how long connecting may take.
    """

    def __init__(self, url: str, *, connect_s: float = 2.0) -> None:
        from redis.asyncio.connection import Connection as Plain
        from redis.asyncio.connection import parse_url

        try:
            options: dict[str, Any] = dict(parse_url(url))
        except ValueError as error:
            raise StartupError(f"The address of the store is not valid ({error}).") from None
        kind = options.pop("connection_class", Plain)
        self._connect_s = connect_s
        self._connection: AbstractConnection = kind(
            **options, protocol=2, driver_info=None, socket_timeout=None, socket_connect_timeout=connect_s
        )

    async def connect(self) -> None:
        """Raises `Lost`, or `Refused` if user or password are wrong."""
        from redis import exceptions

        try:
            async with asyncio.timeout(self._connect_s):
                await self._connection.connect()  # type: ignore[no-untyped-call]
        except (
            exceptions.AuthenticationError,
            exceptions.AuthorizationError,
            exceptions.ResponseError,
        ) as error:
            await self.close()
            raise Refused(str(error)) from None
        except (exceptions.RedisError, OSError, TimeoutError) as error:
            await self.close()
            raise Lost(str(error)) from None

    async def send(self, commands: Sequence[Command]) -> None:
        """Hand all of them to the network. Raises `Lost`."""
        import hiredis
        from redis import exceptions

        if not self._connection.is_connected:
            raise Lost("not connected")
        packed = b"".join([hiredis.pack_command(cast(Any, command)) for command in commands])
        try:
            await self._connection.send_packed_command(packed, check_health=False)
        except (exceptions.RedisError, OSError, TimeoutError) as error:
            raise Lost(str(error)) from None

    async def receive(self) -> Any:
        """The next reply, however long it takes. Raises `Lost`, `Refused` or `NotLoaded`."""
        from redis import exceptions

        if not self._connection.is_connected:
            raise Lost("not connected")
        try:
            return await self._connection.read_response(timeout=math.inf)
        except exceptions.NoScriptError as error:
            raise NotLoaded(str(error)) from None
        except exceptions.ResponseError as error:
            # redis-py takes the first word off where it has a class for it.
            later = isinstance(error, exceptions.ReadOnlyError | exceptions.MasterDownError)
            if later or str(error).startswith(_LATER):
                raise Lost(str(error)) from None
            if isinstance(error, exceptions.OutOfMemoryError) or str(error).startswith(_FULL):
                raise Full(str(error)) from None
            raise Refused(str(error)) from None
        except (exceptions.RedisError, OSError) as error:
            raise Lost(str(error)) from None

    async def close(self) -> None:
        """Never raises."""
        from redis import exceptions

        with contextlib.suppress(exceptions.RedisError, OSError):
            await self._connection.disconnect(nowait=True)

"""One connection to Redis: commands out, replies in. The only module that knows redis-py.

Knows: addresses, passwords, what an error of the server or the network means.
Must not know: scripts, meetings, when to connect again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from gateway.domain.errors import StartupError

if TYPE_CHECKING:
    import hiredis
    from redis.asyncio.connection import AbstractConnection

Argument = bytes | str | int
Command = tuple[Argument, ...]

# An answer that tells nothing about the command: the server is not ready for any, but will be.
_LATER = ("LOADING", "BUSY", "MASTERDOWN", "READONLY", "TRYAGAIN", "CLUSTERDOWN")
# The server is ready, but takes no more.
_FULL = ("OOM", "MISCONF", "NOREPLICAS")
_NOT_LOADED = "NOSCRIPT"

_READ_BYTES = 65_536

_INCOMPLETE = object()


class _Error(Exception):
    """A reply that is an error of the server."""


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
        self._parser: hiredis.Reader | None = None
        self._pack: Callable[[Command], bytes] | None = None
        # That have arrived.
        self._replies: deque[Any] = deque()

    async def connect(self) -> None:
        """Raises `Lost`, or `Refused` if user or password are wrong."""
        import hiredis
        from redis import exceptions

        try:
            async with asyncio.timeout(self._connect_s):
                await self._connection.connect()  # type: ignore[no-untyped-call]
            self._pack = cast(Callable[[Command], bytes], hiredis.pack_command)
            self._parser = hiredis.Reader(protocolError=Lost, replyError=_Error, notEnoughData=_INCOMPLETE)
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
        writer = self._connection._writer
        if writer is None or self._pack is None:
            raise Lost("not connected")
        try:
            # redis-py's own way checks each time what is known here.
            writer.write(b"".join([self._pack(command) for command in commands]))
            await writer.drain()
        except OSError as error:
            raise Lost(str(error)) from None

    async def receive(self) -> Any:
        """The next reply, however long it takes. Raises `Lost`, `Refused` or `NotLoaded`."""
        if not self._replies:
            await self._read()
        reply = self._replies.popleft()
        if isinstance(reply, _Error):
            raise _meaning_of(str(reply))
        return reply

    async def _read(self) -> None:
        """Wait for replies, and take all that are there."""
        # redis-py takes them one by one, which costs more than what is done with most of them.
        stream, parser = self._connection._reader, self._parser
        if stream is None or parser is None:
            raise Lost("not connected")
        while not self._replies:
            try:
                data = await stream.read(_READ_BYTES)
                parser.feed(data)
                while (reply := parser.gets()) is not _INCOMPLETE:
                    self._replies.append(reply)
            except OSError as error:
                raise Lost(str(error)) from None
            if not data:
                raise Lost("the store has ended the connection")

    async def close(self) -> None:
        """Never raises."""
        from redis import exceptions

        with contextlib.suppress(exceptions.RedisError, OSError):
            await self._connection.disconnect(nowait=True)


def _meaning_of(error: str) -> Lost | Refused | NotLoaded:
    if error.startswith(_NOT_LOADED):
        return NotLoaded(error)
    if error.startswith(_LATER):
        return Lost(error)
    return (Full if error.startswith(_FULL) else Refused)(error)

"""HTTP/1.1 as a load test needs it: POST over connections that are kept, one request at a time on each.

Knows: requests, responses, connections. Must not know: what is asked or answered. The parser is httptools'; bodies
come with a length or in chunks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

import httptools

from loadtest.results import LoadtestError

__all__ = ["BrokenResponse", "Connection", "Connections"]

_OPEN_S = 10.0

# Of one process; more in flight than this is no load that any system here answers.
_MOST = 8_192


class BrokenResponse(Exception):
    """The response did not come, or not whole. unheard: nothing of it came, as from a connection just closed."""

    def __init__(self, reason: str, *, unheard: bool) -> None:
        super().__init__(reason)
        self.unheard = unheard


class Connection(asyncio.Protocol):
    """One connection. status: of the response that is coming, or came last. usable: it takes another request."""

    def __init__(self) -> None:
        self.status = 0
        self.usable = True
        self._parser: Any = None
        self._transport: asyncio.Transport | None = None
        self._take: Callable[[bytes], None] = lambda _: None
        self._heard = False
        self._ended: asyncio.Future[None] | None = None

    async def post(self, request: bytes, take: Callable[[bytes], None]) -> None:
        """Send a whole request; `take` gets the body of the response piece by piece. Raises `BrokenResponse`."""
        usable, self.usable = self.usable, False
        if self._transport is None or not usable:
            raise BrokenResponse("the connection was closed", unheard=True)
        self._parser = httptools.HttpResponseParser(self)
        self._take, self._heard, self.status = take, False, 0
        self._ended = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        await self._ended
        self._ended = None

    def close(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------ called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of uvloop are streams without being derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._ended is None or self._ended.done():
            self.close()  # nobody asked
            return
        self._heard = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end(BrokenResponse(f"the response is no HTTP ({error})", unheard=False))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        self._transport = None
        self._end(BrokenResponse("the connection was lost", unheard=not self._heard))

    # ------------------------------------------------------------ called by the parser

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._take(body)

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self.usable = self._parser.should_keep_alive()
            self._end(None)

    def _end(self, error: BrokenResponse | None) -> None:
        if self._ended is None or self._ended.done():
            return
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)


class Connections:
    """Kept connections to one address; the one that was used last is used next."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise LoadtestError(
                f"A load test speaks http only, to an address such as http://127.0.0.1:8000: {url}"
            )
        self._host, self._port = parts.hostname, parts.port or 80
        self._path = parts.path.rstrip("/")
        self._name = parts.netloc
        self._idle: list[Connection] = []
        self._count = 0

    def request(self, path: str, body: bytes) -> bytes:
        """A POST of JSON, as it goes over the wire."""
        head = (
            f"POST {self._path}{path} HTTP/1.1\r\nhost: {self._name}\r\ncontent-type: application/json\r\n"
            f"accept: */*\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def open(self, count: int) -> None:
        """Have so many idle ones. Raises `LoadtestError` when nobody answers."""
        for connection in [each for each in self._idle if not each.usable]:
            self._drop(connection)
        try:
            while len(self._idle) < count:
                self._idle.append(await self._connect())
        except (OSError, TimeoutError) as error:
            raise LoadtestError(f"Nothing answers at {self._name} ({error}).") from None

    async def post(self, request: bytes, take: Callable[[bytes], None]) -> int:
        """Send a request over a free connection, a new one where there is none; the status of the response.

        Raises `BrokenResponse`.
        """
        while True:
            kept = bool(self._idle)
            connection = self._idle.pop() if kept else await self._new()
            try:
                await connection.post(request, take)
            except BrokenResponse as error:
                # A server may close what is idle just when it is used again.
                if not (kept and error.unheard):
                    raise
            else:
                return connection.status
            finally:
                if connection.usable:
                    self._idle.append(connection)
                else:
                    connection.close()
                    self._count -= 1

    def close(self) -> None:
        for connection in self._idle:
            connection.close()

    def _drop(self, connection: Connection) -> None:
        self._idle.remove(connection)
        self._count -= 1

    async def _new(self) -> Connection:
        if self._count >= _MOST:
            raise BrokenResponse(f"{_MOST} requests of a client are in flight", unheard=True)
        try:
            return await self._connect()
        except (OSError, TimeoutError) as error:
            raise BrokenResponse(f"no connection ({error})", unheard=True) from None

    async def _connect(self) -> Connection:
        self._count += 1
        try:
            async with asyncio.timeout(_OPEN_S):
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(Connection, self._host, self._port)
        except BaseException:
            self._count -= 1
            raise
        return connection

"""HTTP/1.1 as a load test needs it: POST over connections that are kept, one request at a time on each.

Knows: requests, responses, connections, and of what is asked the baselines' one request a translation. Must not
know: when lines are said. The parser is httptools'; bodies
come with a length or in chunks. A client for every case, such as httpx, takes several times the CPU for each piece
of a stream, and would be the limit before the server is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httptools
import msgspec
from msgspec import Struct

from loadtest.driving.client import Client, Share
from loadtest.driving.requests import Answer, Requests, connections_for
from loadtest.driving.tally import Tally
from loadtest.results import LoadtestError
from loadtest.trial.values import Closed, Http, Line, Open

_OPEN_S = 10.0
_READ_BYTES = 2**16

_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class BrokenResponse(Exception):
    """The response did not come, or not whole; its text says why."""


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
        self._idle: list[_Stream] = []

    def request(self, path: str, body: bytes) -> bytes:
        """A POST of JSON, as it goes over the wire."""
        head = (
            f"POST {self._path}{path} HTTP/1.1\r\nhost: {self._name}\r\ncontent-type: application/json\r\n"
            f"accept: */*\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def open(self, count: int) -> None:
        """Have so many idle ones. Raises `LoadtestError` when nothing answers."""
        # Those that the server has closed since are of no use any more.
        self._idle = [each for each in self._idle if not each[0].at_eof()]
        try:
            while len(self._idle) < count:
                self._idle.append(await self._connect())
        except (OSError, TimeoutError) as error:
            raise LoadtestError(f"Nothing answers at {self._name} ({error}).") from None

    async def post(self, request: bytes, take: Callable[[bytes], None]) -> int:
        """Send a whole request over a free connection, a new one where there is none; the status of the response.
        `take` gets its body piece by piece. Raises `BrokenResponse`."""
        while True:
            kept = bool(self._idle)
            stream = self._idle.pop() if kept else await self._new()
            response = _Response(take)
            try:
                await response.read(request, *stream)
            except BrokenResponse:
                # A server may close what is idle just when it is used again.
                if not kept or response.heard:
                    raise
            else:
                return response.status
            finally:
                if response.keeps:
                    self._idle.append(stream)
                else:
                    stream[1].close()

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()

    async def _new(self) -> _Stream:
        try:
            return await self._connect()
        except (OSError, TimeoutError) as error:
            raise BrokenResponse(f"no connection ({error})") from None

    async def _connect(self) -> _Stream:
        async with asyncio.timeout(_OPEN_S):
            return await asyncio.open_connection(self._host, self._port)


class _Response:
    """One response. status: once its head has come. heard: something of it came. keeps: it is whole, and the
    connection takes another request."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self.status = 0
        self.heard = False
        self.keeps = False
        self.on_body = take
        self._whole = False
        self._parser: Any = httptools.HttpResponseParser(self)

    async def read(self, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send the request; returns when the response is whole. Raises `BrokenResponse`."""
        try:
            writer.write(request)
            while not self._whole:
                data = await reader.read(_READ_BYTES)
                if not data:
                    raise BrokenResponse("the connection was lost")
                self.heard = True
                self._parser.feed_data(data)
        except OSError as error:
            raise BrokenResponse(f"the connection was lost ({error})") from None
        except httptools.HttpParserError as error:
            raise BrokenResponse(f"the response is not HTTP ({error})") from None

    # ------------------------------------------------------------ called by the parser

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_message_complete(self) -> None:
        # What comes before the response, such as 100, is passed over.
        if self.status >= 200:
            self._whole, self.keeps = True, self._parser.should_keep_alive()


# ---------------------------------------------------------------- a baseline


_SHOWN_CHARS = 200


class _Translation(Struct, frozen=True):
    text: str
    tokens: int


_decoder = msgspec.json.Decoder(_Translation)


def refusal(status: int, body: bytes | bytearray) -> str:
    """What is told of a response that is none of what was asked for."""
    return f"HTTP {status}: {body.decode(errors='replace').strip()[:_SHOWN_CHARS]}"


class _HttpClient(Requests):
    def __init__(self, url: str, load: Closed | Open) -> None:
        super().__init__(load)
        self.connections = Connections(url)

    async def open_for(self, lines: Sequence[Line]) -> None:
        await self.connections.open(connections_for(self._load))

    async def translate(self, line: Line, answer: Answer, tally: Tally) -> None:
        asked = msgspec.json.encode({"text": line.text, "source": line.source, "target": line.targets[0]})
        body = bytearray()
        answer.sent_s = time.monotonic()
        try:
            status = await self.connections.post(self.connections.request("/translate", asked), body.extend)
        except BrokenResponse as error:
            answer.failed = str(error)
            return
        tally.frames += 1
        tally.bytes += len(body)
        try:
            if status != 200:
                raise msgspec.ValidationError
            translated = _decoder.decode(body)
        except msgspec.DecodeError:
            answer.failed = refusal(status, body)
        else:
            # What counts is when a person could read it, whatever the system says of its first token.
            answer.end(translated.text, translated.tokens)


@asynccontextmanager
async def client(address: Http, load: Closed | Open, _share: Share) -> AsyncIterator[Client]:
    """A client of the baseline at `address`. Raises `LoadtestError` when there is none."""
    opened = _HttpClient(address.url, load)
    await opened.connections.open(1)
    try:
        yield opened
    finally:
        opened.connections.close()

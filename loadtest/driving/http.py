"""HTTP/1.1 as a load test needs it: POST over connections that are kept, one request at a time on each; and what
is asked so: the baselines, one request a translation, and OpenAI-compatible servers, completions streamed as
server-sent events.

Knows: requests, responses, connections; that API as vLLM serves it, and how it is given the same prompts as by the
gateway. Must not know: when lines are said. The parser is httptools'; bodies come with a length or in chunks. A
client for every case, such as httpx, takes several times the CPU for each piece of a stream, and would be the
limit before the server is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httptools
import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from gateway.domain.errors import GatewayError
from loadtest.driving.exchange import Client, Share
from loadtest.driving.requests import Answer, Requests, Tally, connections_for
from loadtest.results import LoadtestError
from loadtest.systems.prompting import Prompts, gateway_settings, prompts
from loadtest.trial.values import Closed, Http, Line, Open, OpenAiServer

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
        # Connections that the server has closed since are of no use.
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
            try:
                stream = self._idle.pop() if kept else await self._connect()
            except (OSError, TimeoutError) as error:
                raise BrokenResponse(f"no connection ({error})") from None
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


class _Posting(Requests):
    def __init__(self, url: str, load: Closed | Open) -> None:
        super().__init__(load)
        self.connections = Connections(url)

    async def open_for(self, lines: Sequence[Line]) -> None:
        await self.connections.open(connections_for(self._load))


@asynccontextmanager
async def _opened(client: _Posting) -> AsyncIterator[Client]:
    await client.connections.open(1)
    try:
        yield client
    finally:
        client.connections.close()


class _HttpClient(_Posting):
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


def client(address: Http, load: Closed | Open, _share: Share) -> AbstractAsyncContextManager[Client]:
    """A client of the baseline at `address`. Raises `LoadtestError` when there is none."""
    return _opened(_HttpClient(address.url, load))


_PATH = "/v1/completions"


class _Choice(Struct, frozen=True):
    text: str = ""


class _Usage(Struct, frozen=True):
    completion_tokens: int = 0


class _Trouble(Struct, frozen=True):
    message: str = ""


class _Chunk(Struct, frozen=True):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _Trouble | None = None


_chunks = msgspec.json.Decoder(_Chunk)


# ---------------------------------------------------------------- the client


class Completion:
    """What comes of one request: bytes of `text/event-stream`, which may end anywhere. Every event is one line."""

    def __init__(self, answer: Answer) -> None:
        self.body = bytearray()
        self.frames = 0
        self.bytes = 0
        self._rest = b""
        self._answer = answer
        self._text: list[str] = []
        self._tokens = 0
        self._whole = False

    def take(self, data: bytes) -> None:
        self.bytes += len(data)
        if not self.frames and len(self.body) < _SHOWN_CHARS:
            self.body += data  # the beginning of what may be a refusal
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._on_event(line[5:].strip())

    def _on_event(self, data: bytes) -> None:
        self.frames += 1
        if data == b"[DONE]":
            self._whole = True
            return
        try:
            chunk = _chunks.decode(data)
        except msgspec.DecodeError as error:
            self._answer.failed = f"an event is not a completion ({error})"
            return
        if chunk.error is not None:
            self._answer.failed = chunk.error.message[:_SHOWN_CHARS] or "the server reports an error"
        for choice in chunk.choices:
            self._text.append(choice.text)
            self._answer.show(choice.text)
        if chunk.usage is not None:
            self._tokens = chunk.usage.completion_tokens

    def end(self, status: int) -> None:
        """The response is whole."""
        if self._answer.failed is not None:
            return
        if status != 200:
            self._answer.failed = refusal(status, self.body)
        elif not self._whole:
            self._answer.failed = "the stream ended before its time"
        else:
            self._answer.end("".join(self._text).strip(), self._tokens)


class _SseClient(_Posting):
    def __init__(self, address: OpenAiServer, load: Closed | Open, how: Prompts) -> None:
        super().__init__(address.url, load)
        self._model = address.model
        self._prompts = how
        self._requests: dict[tuple[str, str], bytes | str] = {}

    async def open_for(self, lines: Sequence[Line]) -> None:
        requests = await asyncio.gather(*map(self._request, lines))
        self._requests = {(line.id, line.targets[0]): one for line, one in zip(lines, requests, strict=True)}
        await super().open_for(lines)

    async def _request(self, line: Line) -> bytes | str:
        """What goes over the wire, or why it cannot."""
        try:
            prompt = await self._prompts.encode(line)
        except GatewayError as error:
            return error.code
        asked = {
            "model": self._model,
            # Ids, since a server reads special tokens in a text as ordinary characters.
            "prompt": prompt.ids,
            "max_tokens": prompt.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            # Some of these are vLLM's own.
            **asdict(self._prompts.sampling),
            "stop_token_ids": self._prompts.encoder.stop_token_ids,
        }
        return self.connections.request(_PATH, msgspec.json.encode(asked))

    async def translate(self, line: Line, answer: Answer, tally: Tally) -> None:
        request = self._requests[line.id, line.targets[0]]
        if isinstance(request, str):
            answer.failed = request
            return
        stream = Completion(answer)
        answer.sent_s = time.monotonic()
        try:
            stream.end(await self.connections.post(request, stream.take))
        except BrokenResponse as error:
            answer.failed = str(error)
        tally.frames += stream.frames
        tally.bytes += stream.bytes


@asynccontextmanager
async def completions_client(address: OpenAiServer, load: Closed | Open, _share: Share) -> AsyncIterator[Client]:
    """A client of the server at `address`. Raises `LoadtestError` when there is none, or no prompts for it."""
    how = await asyncio.to_thread(prompts, gateway_settings(address.settings))
    async with _opened(_SseClient(address, load, how)) as opened:
        yield opened

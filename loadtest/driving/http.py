"""A baseline over HTTP: one request a translation, whose answer comes when it is done.

Knows: the baselines' requests and answers. Must not know: when lines are said, how a baseline works.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
from msgspec import Struct

from loadtest.driving.client import Client, Share
from loadtest.driving.http1 import BrokenResponse, Connections
from loadtest.driving.requests import Answer, Requests, connections_for
from loadtest.driving.tally import Tally
from loadtest.trial.values import Closed, Http, Line, Open

_SHOWN_CHARS = 200


class _Request(Struct, frozen=True):
    text: str
    source: str
    target: str


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
        asked = msgspec.json.encode(_Request(line.text, line.source, line.targets[0]))
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
            # What counts is when somebody could read it, whatever the system says of its first token.
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

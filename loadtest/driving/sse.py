"""An OpenAI-compatible server: completions, streamed as server-sent events over kept connections.

Knows: that API as vLLM serves it, and how it is given the same prompts as by the gateway. Must not know: when
lines are said.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
from msgspec import Struct

from gateway.domain.errors import GatewayError
from loadtest.driving.client import Client, Share
from loadtest.driving.http import BrokenResponse, Connections, refusal
from loadtest.driving.requests import Answer, Requests, connections_for
from loadtest.driving.tally import Tally
from loadtest.systems.prompting import Prompts, gateway_settings, prompts
from loadtest.trial.values import Closed, Line, Open, OpenAiServer

_PATH = "/v1/completions"
_SHOWN_CHARS = 200


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


_decoder = msgspec.json.Decoder(_Chunk)


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
            chunk = _decoder.decode(data)
        except msgspec.DecodeError as error:
            self._answer.failed = f"an event is no completion ({error})"
            return
        if chunk.error is not None:
            self._answer.failed = chunk.error.message[:_SHOWN_CHARS] or "the server reports an error"
        for choice in chunk.choices:
            self._text.append(choice.text)
            # There is something to read.
            if self._answer.first_s is None and choice.text.strip():
                self._answer.first_s = time.monotonic()
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


class _SseClient(Requests):
    def __init__(self, address: OpenAiServer, load: Closed | Open, how: Prompts) -> None:
        super().__init__(load)
        self.connections = Connections(address.url)
        self._model = address.model
        self._prompts = how
        self._requests: dict[tuple[str, str], bytes | str] = {}

    async def open_for(self, lines: Sequence[Line]) -> None:
        self._requests = {(line.id, line.targets[0]): self._request(line) for line in lines}
        await self.connections.open(connections_for(self._load))

    def _request(self, line: Line) -> bytes | str:
        """What goes over the wire, or why it cannot."""
        try:
            prompt = self._prompts.encode(line)
        except GatewayError as error:
            return error.code
        sampling = self._prompts.sampling
        asked = {
            "model": self._model,
            # Ids, since a server reads special tokens in a text as ordinary characters.
            "prompt": prompt.ids,
            "max_tokens": prompt.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "stream": True,
            "stream_options": {"include_usage": True},
            # These are vLLM's own.
            "top_k": sampling.top_k,
            "repetition_penalty": sampling.repetition_penalty,
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
async def client(address: OpenAiServer, load: Closed | Open, _share: Share) -> AsyncIterator[Client]:
    """A client of the server at `address`. Raises `LoadtestError` when there is none, or no prompts for it."""
    how = await asyncio.to_thread(prompts, gateway_settings(address.settings))
    opened = _SseClient(address, load, how)
    await opened.connections.open(1)
    try:
        yield opened
    finally:
        opened.connections.close()

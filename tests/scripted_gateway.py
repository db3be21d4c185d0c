"""A gateway that plays one side of a transcript on a real socket, for tests of clients."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from gateway.codec import CODECS, JSON
from gateway.messages import (
    ClientMessage,
    Error,
    Limits,
    ServerMessage,
    SessionStart,
    SessionStarted,
    Timings,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceFinal,
)

LANGUAGES = ["en", "ja", "de", "fr"]

_M = TypeVar("_M")


class Peer:
    """The gateway's end of one connection."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.codec = CODECS.get(connection.subprotocol or "", JSON)

    async def receive(self) -> ClientMessage:
        return self.codec.decode(await self.connection.recv(), max_bytes=65_536)

    async def expect(self, kind: type[_M]) -> _M:
        message = await self.receive()
        assert isinstance(message, kind), message
        return message

    async def say(self, *messages: ServerMessage) -> None:
        for message in messages:
            await self.connection.send(self.codec.encode(message))

    async def start(self) -> SessionStart:
        start = await self.expect(SessionStart)
        await self.say(STARTED)
        return start

    async def leave(self, code: int, *last_words: ServerMessage) -> None:
        await self.say(*last_words)
        await self.connection.close(code)


@asynccontextmanager
async def scripted_gateway(script: Callable[[Peer], Awaitable[None]]) -> AsyncGenerator[str, None]:
    """The address of a gateway that plays the script to every client. A failed script fails the test."""
    failures: list[BaseException] = []

    async def play(connection: ServerConnection) -> None:
        try:
            await script(Peer(connection))
        except ConnectionClosed:
            pass
        except BaseException as failure:
            failures.append(failure)
            raise

    subprotocols = [Subprotocol(name) for name in CODECS]
    async with serve(play, "127.0.0.1", 0, subprotocols=subprotocols, close_timeout=1) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    if failures:
        raise failures[0]


STARTED = SessionStarted(
    session="s1",
    meeting="m1",
    epoch="e1",
    offset=0,
    recovered=None,
    languages=LANGUAGES,
    options=["glossary", "context", "formality"],
    limits=Limits(),
)


def accepted(utterance: UtteranceFinal) -> UtteranceAccepted:
    return UtteranceAccepted(utterance.id, utterance.rev, 1)


def delta(utterance: UtteranceFinal, lang: str, committed: str, tentative: str = "") -> TranslationDelta:
    return TranslationDelta(utterance.id, lang, utterance.rev, committed, tentative)


def translated(utterance: UtteranceFinal, lang: str, text: str, *, truncated: bool = False) -> TranslationFinal:
    return TranslationFinal(
        utterance.id, "", lang, utterance.rev, text, 2, Timings(1.0, 20.4, 48.0), 9, truncated=truncated
    )


def failed(utterance: UtteranceFinal, lang: str, message: str) -> TranslationFailed:
    return TranslationFailed(utterance.id, "", lang, utterance.rev, "engine_failed", message, 3)


def refused(code: str, message: str, utterance: str | None = None, *, retry_after_ms: int | None = None) -> Error:
    return Error(code, message, retry_after_ms is not None, retry_after_ms, utterance)

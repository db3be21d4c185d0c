"""Meetings over real sockets: who takes part, and what they were sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from websockets.exceptions import ConnectionClosed

from gateway.protocol.codec import JSON, Codec
from gateway.protocol.messages import (
    Caption,
    Error,
    Ping,
    Pong,
    Resume,
    SessionStart,
    SessionStarted,
    TranslationFinal,
    UtteranceFinal,
)
from tests.gateways import Peer, Running

START = SessionStart(reads=["ja"], speaks="en")


async def close_of(peer: Peer) -> tuple[int, Error | None]:
    """The close code, and the error right before it."""
    last: Any = None
    try:
        while True:
            last = await peer.receive()
    except ConnectionClosed as closed:
        assert closed.rcvd is not None
        return closed.rcvd.code, last if isinstance(last, Error) else None


def say(utterance: str, text: str = "good morning", rev: int = 1) -> UtteranceFinal:
    return UtteranceFinal(id=utterance, rev=rev, text=text)


class Somebody:
    """A peer that has joined; everything it was sent since, and where it is in the log."""

    def __init__(self, peer: Peer, start: SessionStart, started: SessionStarted) -> None:
        self.peer = peer
        self.start = start
        self.started = started
        self.received: list[Any] = []
        self.offset = started.offset

    async def receive(self) -> Any:
        message = await self.peer.receive()
        self.received.append(message)
        self.offset = max(self.offset, getattr(message, "offset", None) or 0)
        return message

    async def until(self, kind: type[Any], count: int = 1) -> list[Any]:
        """Waits until `count` messages of a kind have come since the start; all of them."""
        while len(found := [m for m in self.received if isinstance(m, kind)]) < count:
            await self.receive()
        return found

    async def everything(self) -> list[Any]:
        """All that was sent up to now: a pong comes behind it."""
        await self.peer.send(Ping("now"))
        while await self.receive() != Pong("now"):
            pass
        return [m for m in self.received if m != Pong("now")]

    async def closed(self) -> int | None:
        """The code the gateway closes with."""
        try:
            while True:
                await self.receive()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd is not None else None

    def resume(self) -> Resume:
        return Resume(self.started.session, self.started.epoch, self.offset)

    def lose(self) -> None:
        self.peer.connection.transport.abort()


@contextlib.asynccontextmanager
async def joined(
    gateway: Running, codec: Codec = JSON, *, meeting: str | None = "m", **fields: Any
) -> AsyncIterator[Somebody]:
    start = SessionStart(**{"reads": [], "meeting": meeting, **fields})
    async with gateway.peer(codec) as peer:
        await peer.send(start)
        started = await peer.receive()
        assert isinstance(started, SessionStarted), started
        yield Somebody(peer, start, started)


async def logged(gateway: Running, meeting: str = "m") -> list[Any]:
    return [p.event for p in (await gateway.gateway.log.read(meeting, 0, 10_000)).publications]


async def away(gateway: Running, count: int = 1) -> None:
    """Until so many sessions are without a connection; the suite's timeout is the bound."""
    sessions = gateway.gateway.sessions.local
    while sum(not session.connected for session in sessions.all) < count:
        await asyncio.sleep(0.005)


def finals(messages: list[Any], lang: str | None = None) -> list[tuple[str, str, str]]:
    return [
        (m.participant, m.utterance, m.lang)
        for m in messages
        if isinstance(m, TranslationFinal) and lang in (None, m.lang)
    ]


# ---------------------------------------------------------------- captions of every language


def captions(messages: list[Any]) -> list[tuple[str, str, bool]]:
    return [(m.utterance, m.text, m.final) for m in messages if isinstance(m, Caption)]

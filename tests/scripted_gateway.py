"""A gateway that plays one side of a transcript on a real socket, for tests of clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from gateway.conformance import scripted
from gateway.conformance.scripted import Visitor
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    ClientMessage,
    Error,
    ServerMessage,
    SessionEnd,
    SessionStart,
    SessionStarted,
    Timings,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceFinal,
)

_M = TypeVar("_M")

LANGUAGES = ["en", "ja", "de", "fr"]


class Peer(Visitor):
    """The gateway's end of one connection, with what most tests do."""

    async def receive(self) -> ClientMessage:
        return self.codec.decode(await self.connection.recv(), max_bytes=65_536)

    async def expect(self, kind: type[_M]) -> _M:
        message = await self.receive()
        assert isinstance(message, kind), message
        return message

    async def start(self, started: SessionStarted | None = None) -> SessionStart:
        """Take the start; a resumed session is recovered unless told otherwise."""
        start = await self.expect(SessionStart)
        if started is None:
            started = STARTED if start.resume is None else resumed(start)
        await self.say(started)
        return start

    async def take(self) -> UtteranceFinal:
        """Receive a final and accept it."""
        utterance = await self.expect(UtteranceFinal)
        await self.say(accepted(utterance))
        return utterance

    async def end(self) -> None:
        """Take the end of the session, which the gateway then closes."""
        await self.expect(SessionEnd)
        await self.leave(1000)

    async def leave(self, code: int, *last_words: ServerMessage) -> None:
        await self.say(*last_words)
        await self.connection.close(code)


def scripted_gateway(
    script: Callable[[Peer], Awaitable[None]], *, statuses: tuple[int, ...] = ()
) -> AbstractAsyncContextManager[str]:
    """As `gateway.conformance.scripted` has it. A failed script fails the test."""
    return scripted.scripted_gateway(
        lambda visitor: script(Peer(visitor.connection, visitor.visit)), statuses=statuses
    )


async def silent(peer: Peer) -> None:
    """Start the session, and say nothing more."""
    await peer.start()
    await peer.connection.wait_closed()


async def lost_once(peer: Peer) -> None:
    """Lose the first connection; end the session that comes back."""
    await peer.start()
    if peer.visit == 1:
        peer.drop()
    await peer.leave(1000)


STARTED = SessionStarted(
    session="s1",
    participant="p1",
    meeting="m1",
    epoch="e1",
    offset=0,
    recovered=None,
    languages=LANGUAGES,
    participants=[],
    options=["glossary", "context", "formality"],
    limits=Limits(),
)


def resumed(start: SessionStart) -> SessionStarted:
    """The answer to a client whose session is still there."""
    assert start.resume is not None
    return replace(STARTED, offset=start.resume.offset, recovered=True)


# The answer to a client whose session is gone, with the log of its meeting.
ANOTHER = replace(STARTED, session="s2", participant="p2", epoch="e2", recovered=False)


def accepted(utterance: UtteranceFinal) -> UtteranceAccepted:
    return UtteranceAccepted(utterance.id, utterance.rev, 1)


def said(utterance: UtteranceFinal, offset: int) -> Caption:
    return Caption("p1", utterance.id, "", utterance.lang or "en", utterance.rev, utterance.text, True, offset)


def delta(utterance: UtteranceFinal, lang: str, committed: str, tentative: str = "") -> TranslationDelta:
    return TranslationDelta("p1", utterance.id, lang, utterance.rev, committed, tentative)


class Offsets:
    """Offsets of publications, growing over all sessions: nobody here looks at them but to tell duplicates."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        self.last += 1
        return self.last


_offsets = Offsets()


def translated(
    utterance: UtteranceFinal,
    lang: str,
    text: str,
    *,
    truncated: bool = False,
    unsure: bool | UnsetType = UNSET,
    offset: int | None = None,
) -> TranslationFinal:
    return TranslationFinal(
        "p1",
        utterance.id,
        "",
        lang,
        utterance.rev,
        text,
        _offsets.next() if offset is None else offset,
        Timings(1.0, 20.4, 48.0),
        9,
        truncated=truncated,
        unsure=unsure,
    )


def failed(
    utterance: UtteranceFinal, lang: str, message: str, code: str = "engine_failed", *, offset: int | None = None
) -> TranslationFailed:
    where = _offsets.next() if offset is None else offset
    return TranslationFailed("p1", utterance.id, "", lang, utterance.rev, code, message, where)


def refused(
    code: str,
    message: str,
    utterance: str | None = None,
    *,
    retry_after_ms: int | None = None,
    field: str | None = None,
) -> Error:
    return Error(code, message, retry_after_ms is not None, retry_after_ms, utterance, field)

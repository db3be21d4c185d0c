"""A meeting that a scripted gateway plays to a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator

from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Participant,
    SessionEnd,
    SessionStarted,
    Timings,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceFinal,
)
from tests.cli.commands import COMMAND, ROOT, Ran
from tests.scripted_gateway import Peer

ANA, BEN = "a0a0a0a0", "b0b0b0b0"

NAMES = {ANA: "Ana", BEN: "Ben"}

OFFSETS = iter(range(1, 1_000_000))


def started(
    *, offset: int = 0, recovered: bool | None = None, participants: list[Participant] | None = None
) -> SessionStarted:
    return SessionStarted(
        session="secret",
        participant="c0c0c0c0",
        meeting="standup",
        epoch="e1",
        offset=offset,
        recovered=recovered,
        languages=["en", "ja", "de", "fr"],
        participants=participants or [],
        options=[],
        limits=Limits(),
    )


def caption(text: str, utterance: str = "1", *, by: str = ANA, lang: str = "en", final: bool = True) -> Caption:
    offset = next(OFFSETS) if final else None
    return Caption(by, utterance, NAMES.get(by, ""), lang, 1, text, final, offset)


def delta(
    committed: str, tentative: str = "", utterance: str = "1", *, by: str = ANA, lang: str = "ja"
) -> TranslationDelta:
    return TranslationDelta(by, utterance, lang, 1, committed, tentative)


def final(text: str, utterance: str = "1", *, by: str = ANA, lang: str = "ja") -> TranslationFinal:
    return TranslationFinal(
        by, utterance, NAMES.get(by, ""), lang, 1, text, next(OFFSETS), Timings(1.0, 2.0, 3.0), 4
    )


def failed(message: str, utterance: str = "1", *, by: str = ANA, lang: str = "ja") -> TranslationFailed:
    return TranslationFailed(by, utterance, NAMES.get(by, ""), lang, 1, "engine_failed", message, next(OFFSETS))


async def taking_everything(peer: Peer) -> None:
    """A gateway that accepts whatever is said, until the end."""
    await peer.start(started())
    while isinstance(message := await peer.receive(), UtteranceFinal):
        await peer.say(UtteranceAccepted(message.id, message.rev, next(OFFSETS)))
    assert isinstance(message, SessionEnd), message
    await peer.leave(1000)


@contextlib.asynccontextmanager
async def command(*argv: str) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """A running command on pipes."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*COMMAND, *argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def interrupted(process: asyncio.subprocess.Process) -> Ran:
    """What is still to come after Ctrl-C; stdin stays open until then."""
    assert process.stdout is not None
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
    return Ran(await process.wait(), out.decode(), err.decode())


async def lines(*texts: str) -> AsyncGenerator[str, None]:
    for text in texts:
        yield text

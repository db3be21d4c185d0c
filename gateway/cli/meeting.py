"""Parts that `gateway speak` and `gateway read` share: joining a meeting, notes about the connection.

Knows: sessions (`gateway.client`). Must not know: how flags are spelled (`cli.flags`), utterances.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from msgspec import UNSET, Struct

from gateway.cli.notes import LAST_WORDS, EngineWait, sentence_about
from gateway.cli.tokens import Token
from gateway.client import ClientSession, Reconnected, Reconnecting, SessionEvent, connect
from gateway.domain.errors import SessionIdle, SessionReplaced
from gateway.domain.sessions import Stability
from gateway.protocol.messages import Error, LanguagesChanged, SessionDraining

# Errors that come right before the gateway closes. They are shown as the reason for the close.
_LAST_WORDS = LAST_WORDS | {SessionIdle.code, SessionReplaced.code}


class MeetingOptions(Struct, frozen=True):
    """Which meeting to join, as given by the flags."""

    url: str
    meeting: str
    name: str | None = None
    # How long to wait for an engine that is loading, and for a lost connection, in seconds. 0: not at all.
    wait_s: float = 300.0
    token: Token | None = None
    # Whether the meeting has to be recorded, or must not be; None: neither.
    record: bool | None = None


@asynccontextmanager
async def join_meeting(
    options: MeetingOptions,
    *,
    reads: Sequence[str] = (),
    speaks: str | None = None,
    stability: Stability = "live",
    originals: bool = False,
) -> AsyncGenerator[ClientSession, None]:
    """Join the meeting with a session. Raises `ClientError`."""
    async with connect(
        options.url,
        reads=reads,
        speaks=speaks,
        meeting=options.meeting,
        name=options.name,
        stability=stability,
        originals=originals,
        record=options.record,
        token=options.token,
        ready_timeout_s=options.wait_s,
        reconnect=options.wait_s > 0,
        give_up_s=options.wait_s,
        on_waiting=EngineWait(options.wait_s).note_answer,
    ) as session:
        yield session


def session_note(event: SessionEvent) -> str | None:
    """What to tell people about an event of the session itself. None if there is nothing to tell."""
    match event:
        case Reconnecting(attempt=1):
            return f"{event.reason} Trying again."
        case Reconnected(started=started) if started.recovered is False:
            return "The connection is back; unfinished translations may be missing."
        case Reconnected():
            return "The connection is back."
        case LanguagesChanged():
            return f"From now on this is translated: {_pairs(event)}."
        case SessionDraining():
            return "The gateway is restarting; the meeting goes on in a moment."
        case Error(utterance=None) if event.code not in _LAST_WORDS:
            return sentence_about(event)
    return None


def _pairs(now: LanguagesChanged) -> str:
    """Such as `en into ja, de; ja into en`."""
    if now.targets is UNSET:
        return f"{', '.join(now.languages)}, each into every other"
    return "; ".join(f"{source} into {', '.join(targets)}" for source, targets in now.targets.items())

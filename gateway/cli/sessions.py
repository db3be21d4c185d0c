"""Sessions of commands: what flags say of them, what people are told of them on stderr, and exit statuses.

Knows: sessions (`gateway.client`), what to print when a gateway is not ready, lost or back.
Must not know: how flags are spelled (`cli.flags`), any single command.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypedDict

from msgspec import UNSET, Struct

from gateway.cli.terminal.drawing import printable
from gateway.cli.tokens import Token
from gateway.client import ClientSession, Reconnect, Reconnected, Reconnecting, SessionEvent, connect
from gateway.domain.errors import (
    Draining,
    GatewayError,
    MeetingEnded,
    Removed,
    SessionIdle,
    SessionReplaced,
    SlowReader,
    TokenExpired,
    TokenRevoked,
    Unauthenticated,
)
from gateway.domain.sessions import Stability
from gateway.protocol.messages import Error, LanguagesChanged, SessionDraining

EXIT_UNREACHABLE = 1
EXIT_FAILED = 3

# Errors that come right before the gateway closes. They are shown as the reason for the close.
LAST_WORDS = frozenset(
    cls.code for cls in (GatewayError, Draining, MeetingEnded, Removed, SlowReader, TokenExpired, TokenRevoked)
)

_LAST_WORDS_OF_MEETINGS = LAST_WORDS | {SessionIdle.code, SessionReplaced.code}

TOKEN_NEEDED = "This gateway needs a token: set GATEWAY_TOKEN or --token-file."  # noqa: S105 -- a sentence
TOKEN_REFUSED = "The gateway did not accept the token."  # noqa: S105 -- a sentence


class EngineWait:
    """How much longer to wait for an engine, counted from the first time that it was not ready."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._until_s: float | None = None

    def allows(self, more_s: float) -> bool:
        """Whether to wait `more_s` more seconds. Prints a note the first time."""
        now_s = asyncio.get_running_loop().time()
        if self._until_s is None:
            self._until_s = now_s + self._wait_s
            if more_s <= self._wait_s:
                note("The gateway's engine is not ready yet; waiting for it.")
        return now_s + more_s <= self._until_s

    def note_answer(self, error: Error) -> None:
        """Note that `session.start` has to wait; the client itself does the waiting."""
        self.allows((error.retry_after_ms or 0) / 1000)


class _Common(TypedDict):
    """Arguments of `connect`."""

    record: bool | None
    token: Token | None
    ready_timeout_s: float
    reconnect: Reconnect
    on_waiting: Callable[[Error], object]


class SessionOptions(Struct, frozen=True, kw_only=True):
    """What flags say of every session."""

    # The gateway's address.
    url: str
    # How long to wait for an engine that is loading, and for a lost connection, in seconds. 0: not at all.
    wait_s: float
    token: Token | None = None
    # Whether what is said has to be recorded, or must not be; None: neither.
    record: bool | None = None

    def common(self, engine_wait: EngineWait) -> _Common:
        """These options as arguments of `connect`."""
        return _Common(
            record=self.record,
            token=self.token,
            ready_timeout_s=self.wait_s,
            reconnect=Reconnect(give_up_s=self.wait_s),
            on_waiting=engine_wait.note_answer,
        )


class MeetingOptions(SessionOptions, frozen=True, kw_only=True):
    """Which meeting to join."""

    meeting: str
    name: str | None = None

    def join_meeting(
        self,
        *,
        reads: Sequence[str] = (),
        speaks: str | None = None,
        stability: Stability = "live",
        originals: bool = False,
    ) -> AbstractAsyncContextManager[ClientSession]:
        """A session in the meeting. Raises what `connect` raises."""
        return connect(
            self.url,
            meeting=self.meeting,
            name=self.name,
            reads=reads,
            speaks=speaks,
            stability=stability,
            originals=originals,
            **self.common(EngineWait(self.wait_s)),
        )


def note_reconnection(event: SessionEvent) -> None:
    """Print a note when the connection is lost, and when it is back; once each, not for every attempt."""
    match event:
        case Reconnecting(attempt=1):
            note(f"{event.reason} Trying to reach it again.")
        case Reconnected():
            note("The gateway is back; continuing.")


def sentence_about(error: Error) -> str:
    """What to tell people about an error in a session."""
    # Only a session that had a token can be told this: it sent a new one.
    return TOKEN_REFUSED if error.code == Unauthenticated.code else error.message


def note(sentence: str) -> None:
    """Print a sentence for people on stderr."""
    print(f"gateway: {printable(sentence)}", file=sys.stderr, flush=True)


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
        case Error(utterance=None) if event.code not in _LAST_WORDS_OF_MEETINGS:
            return sentence_about(event)
    return None


def _pairs(now: LanguagesChanged) -> str:
    """Such as `en into ja, de; ja into en`."""
    if now.targets is UNSET:
        return f"{', '.join(now.languages)}, each into every other"
    return "; ".join(f"{source} into {', '.join(targets)}" for source, targets in now.targets.items())

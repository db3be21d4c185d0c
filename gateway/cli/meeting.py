"""Parts that `gateway speak` and `gateway read` share: joining a meeting, notes about the connection, Ctrl-C.

Knows: sessions (`gateway.client`), signals. Must not know: how flags are spelled (`cli.flags`), utterances.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from msgspec import UNSET, Struct

from gateway.cli.common import LAST_WORDS, EngineWait, said_of
from gateway.cli.tokens import Token
from gateway.client import ClientSession, Reconnected, Reconnecting, SessionEvent, connect
from gateway.domain.errors import SessionIdle, SessionReplaced
from gateway.domain.sessions import Stability
from gateway.protocol.messages import Error, LanguagesChanged, SessionDraining

__all__ = ["Interruptible", "MeetingOptions", "join_meeting", "session_note"]

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
        token=options.token,
        ready_timeout_s=options.wait_s,
        reconnect=options.wait_s > 0,
        give_up_s=options.wait_s,
        on_waiting=EngineWait(options.wait_s).begins,
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
            return said_of(event)
    return None


def _pairs(now: LanguagesChanged) -> str:
    """Such as `en into ja, de; ja into en`."""
    if now.targets is UNSET:
        return f"{', '.join(now.languages)}, each into every other"
    return "; ".join(f"{source} into {', '.join(targets)}" for source, targets in now.targets.items())


class Interruptible:
    """A context in which Ctrl-C ends only the block; the code after it still runs.

    If SIGINT was ignored before, it stays ignored.
    """

    def __init__(self) -> None:
        # Whether Ctrl-C ended the block.
        self.interrupted = False
        self._guarding = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 -- used in coroutines only
        self._task = task
        self._cancelling = task.cancelling()
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
            self._guarding = True
        return self

    def _interrupt(self) -> None:
        if not self.interrupted:
            self.interrupted = True
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._guarding:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        # Other code may have cancelled the task too; that cancellation must not be swallowed.
        return (
            self.interrupted
            and self._task.uncancel() <= self._cancelling
            and kind is not None
            and issubclass(kind, asyncio.CancelledError)
        )

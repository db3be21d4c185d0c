"""What `gateway speak` and `gateway read` share: a seat in a meeting, and what is told about the connection.

Knows: sessions (`client`), and Ctrl-C.
Must not know: flags and their spelling (`cli_flags`), what is said or shown.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from msgspec import Struct

from gateway.cli.common import LAST_WORDS, Patience
from gateway.client import ClientSession, Reconnected, Reconnecting, SessionEvent, connect
from gateway.domain.errors import SessionIdle, SessionReplaced
from gateway.domain.sessions import Stability
from gateway.protocol.messages import Error, SessionDraining

__all__ = ["Interruptible", "Seat", "sit_down", "told"]

# These come right before the gateway closes; the close is told with them.
_LAST_WORDS = LAST_WORDS | {SessionIdle.code, SessionReplaced.code}


class Seat(Struct, frozen=True):
    """What the flags say about where to sit.

    wait_s: patience with an engine that is loading and with a connection that is lost, seconds; 0: none.
    """

    url: str
    meeting: str
    name: str | None = None
    wait_s: float = 300.0


@asynccontextmanager
async def sit_down(
    seat: Seat,
    *,
    reads: Sequence[str] = (),
    speaks: str | None = None,
    stability: Stability = "live",
    originals: bool = False,
) -> AsyncGenerator[ClientSession, None]:
    """A started session in the meeting. Raises `ClientError`."""
    async with connect(
        seat.url,
        reads=reads,
        speaks=speaks,
        meeting=seat.meeting,
        name=seat.name,
        stability=stability,
        originals=originals,
        ready_timeout_s=seat.wait_s,
        reconnect=seat.wait_s > 0,
        give_up_s=seat.wait_s,
        on_waiting=Patience(seat.wait_s).begins,
    ) as session:
        yield session


def told(event: SessionEvent) -> str | None:
    """The sentence for people about an event that is about no utterance; null where there is nothing to say."""
    match event:
        case Reconnecting(attempt=1):
            return f"{event.reason} Trying again."
        case Reconnected(started=started) if started.recovered is False:
            return "The connection is back; what the gateway had not finished may be missing."
        case Reconnected():
            return "The connection is back."
        case SessionDraining():
            return "The gateway is restarting; the meeting goes on in a moment."
        case Error(utterance=None) if event.code not in _LAST_WORDS:
            return event.message
    return None


class Interruptible:
    """Ctrl-C ends the block, and nothing else: what follows is carried out. `interrupted`: whether it did.

    SIGINT stays ignored where it was ignored at the start.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._guarding = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 -- only coroutines have a block to leave
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
        # Somebody else may have cancelled the task, too; that is not ours to swallow.
        return (
            self.interrupted
            and self._task.uncancel() <= self._cancelling
            and kind is not None
            and issubclass(kind, asyncio.CancelledError)
        )

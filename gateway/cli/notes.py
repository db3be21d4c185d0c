"""What commands that talk to a gateway tell people on stderr, and the statuses they end with.

Knows: what to print when a gateway is not ready, lost or back. Must not know: any single command.
"""

from __future__ import annotations

import asyncio
import sys

from gateway.cli.terminal.drawing import printable
from gateway.client import Reconnected, Reconnecting, SessionEvent
from gateway.domain.errors import (
    Draining,
    GatewayError,
    SlowReader,
    TokenExpired,
    TokenRevoked,
    Unauthenticated,
)
from gateway.protocol.messages import Error

EXIT_UNREACHABLE = 1
EXIT_FAILED = 3

# Errors that come right before the gateway closes. They are shown as the reason for the close.
LAST_WORDS = frozenset(cls.code for cls in (GatewayError, Draining, SlowReader, TokenExpired, TokenRevoked))

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

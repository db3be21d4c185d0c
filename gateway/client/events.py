"""What iterating a session gives: the gateway's messages, and what the session itself tells of its connection.

Knows: the fields of these events. Must not know: when they happen.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.protocol.messages import ServerMessage, SessionStarted


class Reconnecting(Struct, frozen=True, tag="client.reconnecting"):
    """There is no connection; the next attempt to open one follows after a delay."""

    # Number of the attempt, from 1.
    attempt: int
    # Seconds until the attempt.
    delay_s: float
    # One sentence: how the connection was lost, or why the previous attempt failed.
    reason: str


class Reconnected(Struct, frozen=True, tag="client.reconnected"):
    """The session continues. Discard text of unfinished translations: it comes again from its start."""

    # `recovered` true: exactly what was missed follows.
    # `recovered` false: this is a new session, and the recent transcript follows. Accepted utterances without a
    # translation may have to be said again.
    started: SessionStarted


SessionEvent = ServerMessage | Reconnecting | Reconnected

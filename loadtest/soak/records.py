"""What the soak's clients saw, one record each, how records travel between processes, and what transcripts held.

Knows: names and encodings of records. Must not know: who makes them, or what follows from them (`ledger`).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from gateway.protocol.messages import (
    Caption,
    Error,
    SessionDraining,
    SessionStarted,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)

Publication = Caption | TranslationFinal | TranslationFailed
Message = Publication | UtteranceAccepted | Error | SessionDraining


class _Record(Struct, frozen=True, array_like=True, tag=str.lower):
    # Seconds on CLOCK_MONOTONIC, which all processes of a machine share.
    at: float
    # One program that a person runs. It has several sessions one after the other where one could not be resumed.
    client: str


class Joined(_Record, frozen=True):
    """`session.started` arrived."""

    started: SessionStarted
    reads: tuple[str, ...]


class Left(_Record, frozen=True):
    """The client is gone for good."""

    # It ended its session; otherwise it gave up or was turned away.
    clean: bool
    reason: str = ""


class Said(_Record, frozen=True):
    """A final was handed to the client."""

    utterance: str
    lang: str


class Cancelled(_Record, frozen=True):
    """`utterance.cancel` was sent."""

    utterance: str


class Heard(_Record, frozen=True):
    """The client handed out a message."""

    message: Message


class Again(_Record, frozen=True):
    """A publication arrived that had arrived before in this session; the client may have dropped it."""

    offset: int


class Flushed(_Record, frozen=True):
    """A ping was answered: what had been written to this client before `sent_at` has arrived."""

    sent_at: float
    # Nothing is being said or translated any more: what had not arrived never will.
    last: bool


class Status(_Record, frozen=True):
    """How a client process is doing; `client` is the process."""

    clients: int
    connected: int
    # Clients that talk, wait for an answer or are not connected.
    unsettled: int
    # Clients that are away because of a fault of their own.
    away: int = 0


class Stopped(_Record, frozen=True):
    """The clients in these seats were stopped; what they hear afterwards may be old. `client` is the process."""

    seats: tuple[int, ...]


class Done(_Record, frozen=True):
    """A client process has carried out what it was told; `client` is the process."""

    what: str


class Entry(Struct, frozen=True):
    """An utterance in a transcript, which is not a client's record."""

    participant: str
    utterance: str
    # The languages in which it was translated, or has failed.
    outcomes: frozenset[str]


def seat_of(client: str) -> int:
    """The number of the seat that a client sits in."""
    return int(client.partition(".")[0])


Record = Joined | Left | Said | Cancelled | Heard | Again | Flushed | Status | Stopped | Done

# One line, without its end. `decode` raises `msgspec.DecodeError`.
encode = msgspec.json.Encoder().encode
decode: Callable[[bytes], Record] = msgspec.json.Decoder(Record).decode

"""What the soak's clients saw, one record each, and how records travel from process to process.

Knows: names and encodings of records. Must not know: who makes them, or what follows from them (`ledger`).

`at` is seconds on CLOCK_MONOTONIC, which all processes of a machine share. `client` names one program that a
person runs: it may have several sessions one after the other, where one could not be resumed.
"""

from __future__ import annotations

from enum import Enum

import msgspec
from msgspec import Struct

__all__ = [
    "Accepted",
    "Cancelled",
    "Done",
    "Flushed",
    "Got",
    "Joined",
    "Kind",
    "Left",
    "Lost",
    "Record",
    "Refused",
    "Said",
    "Status",
    "Stopped",
    "Told",
    "decode",
    "encode",
    "seat_of",
]


class Kind(Enum):
    """Which sort of publication."""

    CAPTION = "caption"
    FINAL = "final"
    FAILED = "failed"


class _Record(Struct, frozen=True, array_like=True, tag=str.lower):
    at: float
    client: str


class Joined(_Record, frozen=True):
    """`session.started` arrived. reads, speaks: as asked. wire: this client records everything it receives."""

    meeting: str
    session: str
    participant: str
    epoch: str
    offset: int
    recovered: bool | None
    reads: tuple[str, ...]
    speaks: str | None
    wire: bool = False


class Lost(_Record, frozen=True):
    """The connection broke, as this side noticed. reason: the close code or what the client says."""

    reason: str


class Left(_Record, frozen=True):
    """The client is gone for good. clean: it ended its session; else it gave up or was turned away."""

    clean: bool
    reason: str = ""


class Said(_Record, frozen=True):
    """A final was handed to the client; what it was sent for the first time."""

    participant: str
    utterance: str
    lang: str
    chars: int


class Cancelled(_Record, frozen=True):
    """`utterance.cancel` was sent."""

    participant: str
    utterance: str


class Accepted(_Record, frozen=True):
    """`utterance.accepted` arrived."""

    participant: str
    utterance: str
    rev: int
    offset: int


class Refused(_Record, frozen=True):
    """A final was refused for good."""

    participant: str
    utterance: str
    code: str


class Got(_Record, frozen=True):
    """A publication arrived."""

    kind: Kind
    participant: str
    utterance: str
    lang: str
    rev: int
    offset: int
    # Of a failure.
    code: str = ""


class Told(_Record, frozen=True):
    """An error about the session or an utterance that is not the end of it: what it was told meanwhile."""

    code: str


class Flushed(_Record, frozen=True):
    """A ping was answered: what had been written to this client before `sent_at` has arrived.

    last: nothing is being said or translated any more, so that what had not arrived never will.
    """

    sent_at: float
    last: bool


class Status(_Record, frozen=True):
    """How a client process stands; `client` is the process.

    unacknowledged: finals not yet accepted or refused. unsettled: some of the clients that have such, talk or are
    not connected, and why.
    """

    clients: int
    connected: int
    unacknowledged: int
    unsettled: tuple[str, ...] = ()


class Stopped(_Record, frozen=True):
    """The clients in these seats were stopped; what they hear afterwards may be old. `client` is the process."""

    seats: tuple[int, ...]


class Done(_Record, frozen=True):
    """A client process has carried out what it was told; `client` is the process."""

    what: str


def seat_of(client: str) -> int:
    """The number of the seat that a client sits in."""
    return int(client.partition(".")[0])


Record = (
    Joined | Lost | Left | Said | Cancelled | Accepted | Refused | Got | Told | Flushed | Status | Stopped | Done
)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """One line, without its end."""
    return _encoder.encode(record)


def decode(line: bytes) -> Record:
    """The record in a line. Raises `msgspec.DecodeError`."""
    record: Record = _decoder.decode(line)
    return record

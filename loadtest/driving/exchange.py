"""What the driver and its client processes tell each other: one JSON line a message.

Knows: the messages. Must not know: processes, protocols.

The driver says `Start` once. For each pass it says `Prepare` and, when every process has answered, `Begin`; then a
process says `Progress` every second and `Played` at the end. Between passes it may say `ResetPrefixCache`. All but
`Begin` are answered by `Done`. A process leaves when its standard input ends, and says `Broken` when it cannot go
on.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from loadtest.driving.client import Share
from loadtest.trial.values import Address, Delivered, Line, Load, ProcessUse, Record

# A pass of many thousand lines, with their text, is told in one line.
LINE_BYTES = 512 * 2**20


class _Message(Struct, frozen=True, tag_field="type", tag=str.lower):
    pass


class Start(_Message, frozen=True):
    """Open a client. load: this process's share of it."""

    address: Address
    load: Load
    share: Share


class Prepare(_Message, frozen=True):
    """The lines of the next pass, and this process's share of its load."""

    lines: list[Line]
    load: Load


class Begin(_Message, frozen=True):
    """Say them, from `begin_s` on by the machine's monotonic clock, for at most `limit_s`."""

    begin_s: float
    limit_s: float
    keep_text: bool


class ResetPrefixCache(_Message, frozen=True):
    """An engine that this process holds has to forget what it keeps of earlier prompts."""


class Done(_Message, frozen=True):
    """The client is open, the clock may start, or nothing is kept of earlier prompts."""


class Progress(_Message, frozen=True):
    """So many records there are, so many of them failed."""

    done: int
    failed: int


class Played(_Message, frozen=True):
    """The pass is over."""

    # From the beginning to the last record.
    elapsed_s: float
    records: list[Record]
    delivered: Delivered
    use: ProcessUse
    # From the beginning to the last line sent, in a closed loop.
    ran_out_s: float | None


class Broken(_Message, frozen=True):
    """Nothing can be played any more; `reason` is a sentence."""

    reason: str


Order = Start | Prepare | Begin | ResetPrefixCache
Answer = Done | Progress | Played | Broken

orders: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)

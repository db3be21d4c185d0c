"""What every client offers, and what the driver and its client processes tell each other: one JSON line a message.

`websocket`, `meetings`, `http` and `engine` are clients, one a protocol; they run in client processes. Each has a
function that opens its client:

    def client(address, load, share: Share) -> AbstractAsyncContextManager[Client]

The driver says `Start` once. For each pass it says `Prepare` and, when every process has answered, `Begin`; then a
process says `Progress` every second and `Played` at the end. Between passes it may say `ResetPrefixCache`. All but
`Begin` are answered by `Done`. A process leaves when its standard input ends, and says `Broken` when it cannot go
on. Must not know: protocols, processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from loadtest.driving.requests import Tally
from loadtest.trial.values import Address, Delivered, Line, Load, ProcessUse, Record


class Share(Struct, frozen=True):
    """Which of the client processes this is: `index` from 0, of `processes`. token: the same in all processes of
    one driver and in those of no other, which have names of their own in a system that way."""

    index: int
    processes: int
    token: str


class Client(Protocol):
    """Says lines to one system, under one load. `prepare` and `play` take turns, any number of times.

    All raise `LoadtestError` when the system is gone for good; a line that goes wrong is a record.
    """

    async def reset_prefix_cache(self) -> None:
        """An engine that this client holds keeps nothing of earlier prompts; asked for between passes. Nothing
        happens where it holds none."""
        ...

    async def prepare(self, lines: Sequence[Line], load: Load | None = None) -> Sequence[Line]:
        """Everything that is to be done before the clock starts: sessions, prompts. Returns the lines that this
        process answers for, with the targets of which it will keep records.

        lines: for `InMeetings` those of all processes; else this process's, one target each. load: its share,
        where it is not the one that the client was opened for; of the same kind.
        """
        ...

    async def play(self, tally: Tally) -> None:
        """Say what was prepared, from `tally.begin_s` on, a moment from now; returns when all has its records.

        When it is cancelled at its time limit, whatever has no record becomes a failed one.
        """
        ...


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
    """How many records there are, and how many of them failed."""

    done: int
    failed: int


class Played(_Message, frozen=True):
    """The pass is over."""

    # Seconds from the beginning to the last record.
    elapsed_s: float
    records: list[Record]
    delivered: Delivered
    use: ProcessUse
    # Seconds from the beginning to the last line sent; None unless the loop is closed.
    ran_out_s: float | None


class Broken(_Message, frozen=True):
    """Nothing can be played any more; `reason` is a sentence."""

    reason: str


Order = Start | Prepare | Begin | ResetPrefixCache
Answer = Done | Progress | Played | Broken

orders: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)

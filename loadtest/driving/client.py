"""What every client offers. `websocket`, `meetings`, `sse`, `http` and `engine` are clients, one a protocol; they
run in client processes.

Must not know: protocols, processes. Each of those modules has a function that opens its client:

    def client(address, load, share: Share) -> AbstractAsyncContextManager[Client]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from loadtest.driving.tally import Tally
from loadtest.trial.values import Line, Load


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

"""What a client process keeps of one pass: records, and by how much it was late itself.

Knows: records and their clock. Must not know: sockets, who says what when.
"""

from __future__ import annotations

import asyncio
import math
import random
import time

from loadtest.results import nearest_rank
from loadtest.trial.values import Delivered, ProcessUse, Record

# Between looks at the event loop.
_LOOK_S = 0.01


class Lag:
    """Lateness in seconds: of lines that were due, and of the event loop."""

    def __init__(self) -> None:
        self._late_s: list[float] = []

    def late(self, seconds: float) -> None:
        """Something came so much later than it should have; less than nothing counts as nothing."""
        self._late_s.append(max(seconds, 0.0))

    def held_up(self, seconds: float) -> None:
        """The event loop came so much later than it should have, and so would whatever was due meanwhile.

        The looks that were missed count, too, with what was left then: or a stall of any length would be one look
        among a hundred a second.
        """
        self.late(seconds)
        for missed in range(1, math.ceil(seconds / _LOOK_S)):
            self.late(seconds - missed * _LOOK_S)

    async def watch(self) -> None:
        """Look at the event loop a hundred times a second, until cancelled."""
        while True:
            due_s = time.monotonic() + _LOOK_S
            await asyncio.sleep(_LOOK_S)
            self.held_up(time.monotonic() - due_s)

    def use(self, cpu_s: float, elapsed_s: float) -> ProcessUse:
        """What the process used, with its lag."""
        late_s = self._late_s or [0.0]
        p50_ms, p99_ms, max_ms = (round(nearest_rank(late_s, share) * 1000, 3) for share in (0.5, 0.99, 1.0))
        return ProcessUse(round(cpu_s, 4), round(elapsed_s, 4), p50_ms, p99_ms, max_ms)


# Latencies of each kind that are kept, of all client processes together.
_MOST = 20_000


class Sampled:
    """Latencies in milliseconds: at most so many of them, by chance."""

    def __init__(self, most: int) -> None:
        # All that there were.
        self.count = 0
        self.kept_ms: list[float] = []
        self._most = most
        self._rng = random.Random("sampled")

    def add(self, ms: float) -> None:
        self.count += 1
        if len(self.kept_ms) < self._most:
            self.kept_ms.append(round(ms, 3))
        elif (place := self._rng.randrange(self.count)) < self._most:
            self.kept_ms[place] = round(ms, 3)


class Tally:
    """Filled by a client while it plays. processes: client processes that play together."""

    def __init__(self, begin_s: float, *, keep_text: bool, processes: int) -> None:
        # The pass begins then, by `time.monotonic`; seconds in records count from it.
        self.begin_s = begin_s
        # Whether records hold their text.
        self.keep_text = keep_text
        self.lag = Lag()
        self.records: list[Record] = []
        self.failed = 0
        # The wire's payload; a client adds to them.
        self.frames = 0
        self.bytes = 0
        # When the newest record came.
        self.last_s = 0.0
        # When the last line of a closed loop was sent; from then on fewer and fewer are in flight.
        self.ran_out_s: float | None = None
        # From when a line was due to a reader's first text of its translation, and to all of it.
        self.texts = Sampled(_MOST // processes)
        self.finals = Sampled(_MOST // processes)
        # From when a final was sent to the gateway's word that it is accepted.
        self.accepted = Sampled(_MOST // processes)

    def now_s(self) -> float:
        """Seconds after the beginning."""
        return time.monotonic() - self.begin_s

    def done(self, record: Record) -> None:
        """One line in one language has ended, well or not: once for each of `Line.targets`."""
        self.records.append(record)
        self.last_s = self.now_s()
        if record.failed is not None:
            self.failed += 1

    def delivered(self) -> Delivered:
        """What arrived so far."""
        return Delivered(
            self.frames,
            self.bytes,
            self.finals.count,
            self.finals.kept_ms,
            text_ms=self.texts.kept_ms,
            accepted_ms=self.accepted.kept_ms,
        )

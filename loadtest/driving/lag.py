"""By how much a client process was late: what it adds to the latencies that it measures.

Knows: clocks. Must not know: what is sent, or when it is due.
"""

from __future__ import annotations

import asyncio
import math
import time

from loadtest.results import nearest_rank
from loadtest.trial.values import ProcessUse

__all__ = ["Lag"]

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

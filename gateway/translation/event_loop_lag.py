"""How late the event loop comes to what is due: how full the process is, as everything in it feels it.

Knows: timers. Must not know: what makes the loop late, or who gives way when it is.
"""

from __future__ import annotations

import asyncio
import math
import time
from types import TracebackType
from typing import Self

from gateway import metrics

__all__ = ["EventLoopLag"]

# Between two looks.
_LOOK_S = 0.05

# How far back the mean goes, seconds.
_REMEMBERED_S = 1.0


class EventLoopLag:
    """Measured while its context is open. mean_s: of about the last second."""

    def __init__(self) -> None:
        self.mean_s = 0.0
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._look_again()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def late(self, late_s: float) -> None:
        """The loop came so late to something."""
        metrics.EVENT_LOOP_LAG_S.observe(late_s)
        # By time, not by number: while the loop is late, there are fewer looks.
        remembered = math.exp(-(_LOOK_S + late_s) / _REMEMBERED_S)
        self.mean_s = self.mean_s * remembered + late_s * (1 - remembered)

    def _look(self) -> None:
        self.late(max(0.0, time.monotonic() - self._due_s))
        self._look_again()

    def _look_again(self) -> None:
        self._due_s = time.monotonic() + _LOOK_S
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

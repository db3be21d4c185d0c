"""The load of vLLM's engine, updated at every step: running and waiting sequences, and the time of a step.

Knows: vLLM's statistics. Must not know: generations, texts.
"""

from __future__ import annotations

import math
import time
from typing import Any

from gateway import metrics
from gateway.engines.pieces import tokens_a_piece

# Time constant of the mean step time, in seconds. The mean is over time, not over a number of steps: when this
# event loop was busy, several steps are seen as one long step and some of no length. Only their sum is right.
_REMEMBERED_S = 1.0


class EngineLoad:
    """The engine's load as of its last step."""

    def __init__(self) -> None:
        self._steps_s = metrics.ENGINE_STEP_S.labels(metrics.DEFAULT_ENGINE)
        # Sequences that run.
        self.running = 0
        # Sequences that wait.
        self.waiting = 0
        self._last_s: float | None = None
        # Exponentially decaying sums over the steps: their time, and their number.
        self._took_s = self._steps = 0.0

    @property
    def step_s(self) -> float:
        """Mean time of a recent step, in seconds; 0 if not known."""
        return self._took_s / self._steps if self._steps else 0.0

    def stepped(self, running: int, waiting: int, now_s: float) -> None:
        """The engine finished a step. now_s: of a monotonic clock."""
        # If the last step left nothing to run, the time since then was idle, not a step.
        if self._last_s is not None and self.running:
            took_s = now_s - self._last_s
            self._steps_s.observe(took_s)
            remembered = math.exp(-took_s / _REMEMBERED_S)
            self._took_s = self._took_s * remembered + took_s
            self._steps = self._steps * remembered + 1
        self._last_s = now_s
        self.running, self.waiting = running, waiting

    def tokens_a_piece(self, interval_s: float) -> int:
        """See the function `tokens_a_piece`."""
        return tokens_a_piece(interval_s, self.step_s, self.running)


def load_logger(load: EngineLoad, prometheus_logger: type) -> type:
    """A subclass of vLLM's Prometheus stat logger that also keeps `load` up to date."""

    class LoadLogger(prometheus_logger):  # type: ignore[misc]
        def record(self, scheduler_stats: Any, iteration_stats: Any, *args: Any, **kwargs: Any) -> None:
            if scheduler_stats is not None:
                load.stepped(scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs, time.monotonic())
            super().record(scheduler_stats, iteration_stats, *args, **kwargs)

    return LoadLogger

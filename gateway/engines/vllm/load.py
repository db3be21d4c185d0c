"""What vLLM's engine process says about itself at every step: how much runs and waits, and how long a step takes.

Knows: vLLM's statistics. Must not know: generations, texts.
"""

from __future__ import annotations

import math
import time
from typing import Any

from gateway import metrics

__all__ = ["EngineLoad", "load_logger"]

# How far back the mean of the steps goes, seconds. By time, not by number: when our own event loop was elsewhere,
# the steps of that while are seen as one long and many of no length, which are right only together.
_REMEMBERED_S = 1.0

# Pieces of text that all sequences together hand on. Each is a frame for every reader, and costs the gateway about
# 50 microseconds before the first of them; what its event loop cannot keep up with makes first words late.
_MOST_PIECES_PER_S = 2_500

# A sequence keeps its pace to its end, while the engine's may change: so many tokens never take long.
_MOST_TOKENS = 12


class EngineLoad:
    """running, waiting: sequences as of the engine's last step. step_s: what a step took lately; 0: not known.

    name: what the engine is called in metrics.
    """

    def __init__(self, name: str = metrics.DEFAULT_ENGINE) -> None:
        self._steps_s = metrics.ENGINE_STEP_S.labels(name)
        self.running = 0
        self.waiting = 0
        self._last_s: float | None = None
        # Of the steps that are remembered, the older the less: how long they took, and how many they were.
        self._took_s = self._steps = 0.0

    @property
    def step_s(self) -> float:
        return self._took_s / self._steps if self._steps else 0.0

    def stepped(self, running: int, waiting: int, now_s: float) -> None:
        """The engine gave outputs; `now_s` by a monotonic clock."""
        # Between a step that left nothing to run and the next lies idleness, not a step.
        if self._last_s is not None and self.running:
            took_s = now_s - self._last_s
            self._steps_s.observe(took_s)
            remembered = math.exp(-took_s / _REMEMBERED_S)
            self._took_s = self._took_s * remembered + took_s
            self._steps = self._steps * remembered + 1
        self._last_s = now_s
        self.running, self.waiting = running, waiting

    def tokens_a_piece(self, interval_s: float) -> int:
        """How many tokens of one sequence are handed on together, so that a piece comes about every `interval_s`.

        1 with 0 s, 12 at most. Where many sequences run, pieces come less often, so that those of all are 2,500 a
        second at most.
        """
        if not interval_s or not self.step_s:
            return 1
        tokens = round(max(interval_s, self.running / _MOST_PIECES_PER_S) / self.step_s)
        return min(max(1, tokens), _MOST_TOKENS)


def load_logger(load: EngineLoad, prometheus_logger: type) -> type:
    """A vLLM stat logger class that keeps `load` up to date, in the place of vLLM's own for Prometheus."""

    class LoadLogger(prometheus_logger):  # type: ignore[misc]
        def record(self, scheduler_stats: Any, iteration_stats: Any, *args: Any, **kwargs: Any) -> None:
            if scheduler_stats is not None:
                load.stepped(scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs, time.monotonic())
            super().record(scheduler_stats, iteration_stats, *args, **kwargs)

    return LoadLogger

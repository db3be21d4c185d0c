"""What vLLM's engine process says about itself at every step: how much runs and waits, and how long a step takes.

Knows: vLLM's statistics. Must not know: generations, texts.
"""

from __future__ import annotations

import time
from typing import Any

from gateway import metrics

__all__ = ["EngineLoad", "load_logger"]

# The weight of the newest step in the mean: some ten steps back count.
_NEWEST = 0.1

# A pause this long between outputs is no step: nothing ran, or our own event loop was elsewhere.
_LONGEST_STEP_S = 2.0


class EngineLoad:
    """running, waiting: sequences as of the engine's last step. step_s: what a step took lately; 0: not known."""

    def __init__(self) -> None:
        self.running = 0
        self.waiting = 0
        self.step_s = 0.0
        self._last_s: float | None = None

    def stepped(self, running: int, waiting: int, now_s: float) -> None:
        """The engine gave outputs; `now_s` by a monotonic clock."""
        # Between a step that left nothing to run and the next lies idleness, not a step.
        if self._last_s is not None and self.running:
            took_s = now_s - self._last_s
            metrics.ENGINE_STEP_S.observe(took_s)
            if took_s < _LONGEST_STEP_S:
                self.step_s += (took_s - self.step_s) * (_NEWEST if self.step_s else 1.0)
        self._last_s = now_s
        self.running, self.waiting = running, waiting

    def tokens_in(self, interval_s: float) -> int:
        """How many tokens of one sequence come about in this time; at least 1."""
        return max(1, round(interval_s / self.step_s)) if self.step_s else 1


def load_logger(load: EngineLoad, prometheus_logger: type) -> type:
    """A vLLM stat logger class that keeps `load` up to date, in the place of vLLM's own for Prometheus."""

    class LoadLogger(prometheus_logger):  # type: ignore[misc]
        def record(self, scheduler_stats: Any, iteration_stats: Any, *args: Any, **kwargs: Any) -> None:
            if scheduler_stats is not None:
                load.stepped(scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs, time.monotonic())
            super().record(scheduler_stats, iteration_stats, *args, **kwargs)

    return LoadLogger

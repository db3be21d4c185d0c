"""How much of the time that translations took went by in queues, as the systems themselves count it.

Knows: the names of their metrics. Must not know: what is measured meanwhile.
"""

from __future__ import annotations

from msgspec import Struct

from loadtest.systems.metrics import get, metric

__all__ = ["Queued", "read"]

# In queues of its own, and in its engine's; altogether.
_QUEUES = ("gateway_queue_seconds_sum", "vllm:request_queue_time_seconds_sum", "baseline_queue_seconds_total")
_TOTALS = ("gateway_translation_seconds_sum", "baseline_response_seconds_total")


class Queued(Struct, frozen=True):
    """Seconds, of all translations so far."""

    queues_s: float
    total_s: float

    def share_since(self, earlier: Queued) -> float | None:
        """Part of the time since; null when nothing was translated."""
        total_s = self.total_s - earlier.total_s
        return round((self.queues_s - earlier.queues_s) / total_s, 4) if total_s > 0 else None


def read(metrics_url: str | None) -> Queued:
    """A reading; blocks. Zeros from a system that does not tell."""
    text = get(metrics_url)[1] if metrics_url is not None else ""

    def summed(names: tuple[str, ...]) -> float:
        return sum(metric(text, name) or 0.0 for name in names)

    return Queued(summed(_QUEUES), summed(_TOTALS))

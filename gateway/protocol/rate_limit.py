"""Limits a client's message rate with a token bucket.

Knows: rates. Must not know: clocks (the time is an argument), sessions.
"""

from __future__ import annotations


class TokenBucket:
    """Admits `rate` messages a second on average, and `burst` at once. Times are seconds of any one clock."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at_s: float | None = None

    def take(self, now_s: float, cost: float = 1) -> float:
        """Take `cost` tokens, at most `burst`. Returns 0 if admitted, else the seconds to wait."""
        if self._at_s is not None:
            elapsed_s = max(0.0, now_s - self._at_s)
            self._tokens = min(self._burst, self._tokens + elapsed_s * self._rate)
        self._at_s = now_s
        cost = min(cost, self._burst)
        if self._tokens >= cost:
            self._tokens -= cost
            return 0.0
        return (cost - self._tokens) / self._rate

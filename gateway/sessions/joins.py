"""How fast one account may join, and which kept session ends when the gateway is full.

Knows: accounts, rates, since when sessions are away. Must not know: meetings, sockets, clocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gateway.domain.errors import RateLimited
from gateway.protocol.rate_limit import TokenBucket
from gateway.sessions.seat import Seat

__all__ = ["JoinRate", "to_give_way"]

# Seconds in which an account may join as often as it may at once: a restart lets everybody join again.
_REFILL_S = 60.0


class JoinRate:
    """Bounds the joins of each account: `burst` at once, and as many again within a minute."""

    def __init__(self, burst: int) -> None:
        self._burst = burst
        # Account → its bucket, and until when the bucket is not full again.
        self._buckets: dict[str, tuple[TokenBucket, float]] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def check(self, account: str, now_s: float) -> None:
        """Count a join. Raises `RateLimited`."""
        bucket, _ = self._buckets.get(account, (None, 0.0))
        bucket = bucket or TokenBucket(self._burst / _REFILL_S, self._burst)
        self._buckets[account] = (bucket, now_s + _REFILL_S)
        if wait_s := bucket.take(now_s):
            raise RateLimited(
                f"This address has joined {self._burst} times within a minute.",
                retry_after_ms=max(1, round(wait_s * 1_000)),
            )

    def sweep(self, now_s: float) -> None:
        """Forget accounts that may join as often as any other."""
        self._buckets = {account: held for account, held in self._buckets.items() if held[1] > now_s}


def to_give_way(seats: Iterable[Seat], account: str) -> Seat | None:
    """Whose session ends for a newcomer of `account`: of the account that has the most, the longest away.

    All sessions of an account count, and those that are away can end. Among accounts that have as many, the
    newcomer's own comes first. None where nobody is away but of accounts that have fewer than the newcomer's.
    """
    held: Counter[str] = Counter()
    away: dict[str, list[Seat]] = {}
    for seat in seats:
        held[seat.account] += 1
        if seat.away_since_s is not None:
            away.setdefault(seat.account, []).append(seat)
    most = max(away, key=lambda name: (held[name], name == account), default=None)
    if most is None or held[most] < held[account]:
        return None
    return min(away[most], key=lambda seat: seat.away_since_s or 0.0)

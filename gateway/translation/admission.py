"""Whether the queue in front of the engine has room for more: the rule behind `overloaded`.

Knows: how many translations wait, in all, of one account and of one meeting.
Must not know: why the engine is slow, who asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.errors import Overloaded
from gateway.translation.ticket import FINAL
from gateway.translation.turn_order import TurnQueue

__all__ = ["Admission"]

_RETRY_AFTER_MS = 1_000

# An account may wait with so many translations for each place that is left free. So whoever fills the queue
# leaves room: one account an eighth of it, three together a twenty-second (the dynamic thresholds of Choudhury and
# Hahne, 1998).
_ACCOUNT_FACTOR = 7


@dataclass(frozen=True, slots=True)
class Admission:
    """Bounds the queue, and the part of it that one account and one meeting can take."""

    # Translations that may wait for their turn; one more is refused.
    max_waiting: int

    def check(self, queue: TurnQueue, account: str, meeting: str, priority: int, count: int, free: int) -> None:
        """Raise `Overloaded` where `count` newcomers of one meeting are too many; `free` of them need not wait."""
        # Best effort takes half of the room, in all and of each meeting; finals do not see it.
        part = 1 if priority == FINAL else 2
        limit = self.max_waiting // part
        waiting = queue.ahead(priority)
        if waiting + count > limit + free:
            raise _overloaded(f"{waiting} translations are waiting already; the limit is {limit}.")
        # Half at most, so that nobody's backlog can shut the others out.
        share = (self.max_waiting + 1) // 2 // part
        own = queue.ahead_of_meeting(priority, account, meeting)
        if own + count > share + free:
            raise _overloaded(f"{own} translations of this meeting are waiting already; its share is {share}.")
        share = _ACCOUNT_FACTOR * (limit - waiting)
        own = queue.ahead_of_account(priority, account)
        if own + count > share + free:
            raise _overloaded(
                f"{own} translations of this address are waiting already; its share is {share} at present."
            )


def _overloaded(message: str) -> Overloaded:
    return Overloaded(message, retry_after_ms=_RETRY_AFTER_MS)

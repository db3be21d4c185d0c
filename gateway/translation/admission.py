"""Whether the queue in front of the engine has room for more: the rule behind `overloaded`.

Knows: how many translations wait, in all, of one account and of one meeting; how fast their turns come.
Must not know: why the engine is slow, who asks, clocks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from gateway.domain.errors import Overloaded
from gateway.translation.ticket import FINAL
from gateway.translation.turn_order import TurnQueue

__all__ = ["Admission", "TurnPace"]

# An account may wait with so many translations for each place that is left free. So whoever fills the queue
# leaves room: one account an eighth of it, three together a twenty-second (the dynamic thresholds of Choudhury and
# Hahne, 1998).
_ACCOUNT_FACTOR = 7

# The first of those who are refused may try again after so many seconds, and the last.
_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 20.0


class TurnPace:
    """How fast turns come while others wait for theirs: what the engine carries when it is full."""

    # Of busy time that counts, seconds.
    _REMEMBERED_S = 5.0
    # Before so many turns nothing is known.
    _FEWEST = 16

    def __init__(self) -> None:
        self._seen = 0
        # Both fade with busy time.
        self._turns = 0.0
        self._busy_s = 0.0
        # Of the last turn, or of the moment from which on others wait. None: nobody does.
        self._since_s: float | None = None

    def turn(self, now_s: float) -> None:
        """A final's turn has come."""
        if self._since_s is None:
            return
        past_s = max(0.0, now_s - self._since_s)
        kept = math.exp(-past_s / self._REMEMBERED_S)
        self._seen += 1
        self._turns = self._turns * kept + 1
        self._busy_s = self._busy_s * kept + past_s
        self._since_s = now_s

    def waits(self, now_s: float, *, waits: bool) -> None:
        """Whether finals wait for an engine that runs."""
        if not waits:
            self._since_s = None
        elif self._since_s is None:
            self._since_s = now_s

    @property
    def interval_s(self) -> float:
        """Between two turns; 0 if nothing is known."""
        return self._busy_s / self._turns if self._seen >= self._FEWEST else 0.0


class Admission:
    """Bounds the queue by number and by time, and the part of it that one account and one meeting can take.

    max_waiting: translations that may wait for their turn; one more is refused.
    max_queue_s: how long a newcomer may have to wait for its turn, as far as can be told.
    chance: a number from 0 to 1, which spreads the clients that try again.
    """

    def __init__(
        self, max_waiting: int, max_queue_s: float, *, chance: Callable[[], float] = random.random
    ) -> None:
        self.pace = TurnPace()
        self._max_waiting = max_waiting
        self._max_queue_s = max_queue_s
        self._chance = chance
        # When the next one who is refused is to try again.
        self._retry_s = 0.0

    def check(
        self,
        queue: TurnQueue,
        account: str,
        meeting: str,
        priority: int,
        count: int,
        *,
        free: int,
        now_s: float,
        patient: bool = False,
    ) -> None:
        """Raise `Overloaded` where `count` newcomers of one meeting are too many; `free` of them need not wait.

        patient: they may have to wait long.
        """
        why = self._is_full(queue, account, meeting, priority, count, free)
        if not why and not patient and free < count:
            why = self._is_late(queue, account, priority)
        if why:
            raise Overloaded(why, retry_after_ms=self._retry_after_ms(count, now_s))

    def _is_full(self, queue: TurnQueue, account: str, meeting: str, priority: int, count: int, free: int) -> str:
        """Why there is no room for so many; empty if there is."""
        # Best effort takes half of the room, in all and of each meeting; finals do not see it.
        part = _part(priority)
        limit = self._max_waiting // part
        waiting = queue.ahead(priority)
        if waiting + count > limit + free:
            return f"{waiting} translations are waiting already; the limit is {limit}."
        # Half at most, so that nobody's backlog can shut the others out.
        share = (self._max_waiting + 1) // 2 // part
        own = queue.ahead_of_meeting(priority, account, meeting)
        if own + count > share + free:
            return f"{own} translations of this meeting are waiting already; its share is {share}."
        share = _ACCOUNT_FACTOR * (limit - waiting)
        own = queue.ahead_of_account(priority, account)
        return _crowded(own, share) if own + count > share + free else ""

    def _is_late(self, queue: TurnQueue, account: str, priority: int) -> str:
        """Why newcomers would have to wait too long; empty if they would not.

        However many they are: an utterance in many languages is as welcome as one in one.
        """
        interval_s = self.pace.interval_s
        waiting = queue.ahead(priority)
        most_s = self._max_queue_s / _part(priority)
        if waiting and waiting * interval_s >= most_s:
            return f"{waiting} translations are waiting already, which takes {waiting * interval_s:.1f} s."
        if not interval_s:
            return ""
        share = round(_ACCOUNT_FACTOR * (most_s / interval_s - waiting))
        own = queue.ahead_of_account(priority, account)
        return _crowded(own, share) if own > share else ""

    def _retry_after_ms(self, count: int, now_s: float) -> int:
        """When to try again: one after another, as fast as turns come, so that they do not meet again."""
        self._retry_s = max(self._retry_s, now_s + _FIRST_RETRY_S) + count * self.pace.interval_s
        self._retry_s = min(self._retry_s, now_s + _LAST_RETRY_S)
        return round(1_000 * (self._retry_s - now_s) * (1 + self._chance() / 2))


def _part(priority: int) -> int:
    return 1 if priority == FINAL else 2


def _crowded(own: int, share: int) -> str:
    return f"{own} translations of this address are waiting already; its share is {share} at present."

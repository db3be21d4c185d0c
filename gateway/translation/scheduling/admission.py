"""Whether the queue in front of the engine has room for more: the rule behind `overloaded`.

Knows: how many translations wait, in all, of one account and of one meeting; how fast their turns come; how late
the event loop is.
Must not know: why the engine is slow, who asks, clocks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from gateway.domain.errors import Overloaded
from gateway.translation.scheduling.ticket import FINAL
from gateway.translation.scheduling.turn_order import TurnQueue

# An account may wait with so many translations for each place that is left free. So accounts that fill the queue
# leave room: one account an eighth of it, three together a twenty-second (the dynamic thresholds of Choudhury and
# Hahne, 1998).
_ACCOUNT_FACTOR = 7

# When to try again, unless the queue is too long for a final; and the longest that is told then, before chance.
_RETRY_S = 1.0
_LONGEST_RETRY_S = 20.0

# Turns of the event loop that a final needs at least, one after another: it is read, and its first text is shown.
# Each waits for all else that the process has to do.
_LOOP_TURNS = 2

# Accounts whose refusals are remembered, before those that are over are forgotten.
_MOST_RETRIES = 1_000


class TurnPace:
    """How fast turns come while others wait for theirs: what the engine carries when it is full."""

    # How much busy time counts, seconds.
    _REMEMBERED_S = 5.0
    # Before so many turns nothing is known.
    _FEWEST = 16

    def __init__(self) -> None:
        self._seen = 0
        # Both fade with busy time.
        self._turns = 0.0
        self._busy_s = 0.0
        # The time of the last turn, or from which on others wait. None: no one waits.
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
        # Account → when the next final of it that is refused is to come again.
        self._retries_s: dict[str, float] = {}

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
        late_s: float = 0.0,
        exempt: bool = False,
    ) -> None:
        """Raise `Overloaded` where `count` newcomers of one meeting are too many; `free` of them need not wait.

        late_s: how late the event loop is. exempt: however long they have to wait.
        """
        retry_s = _RETRY_S
        why = self._is_full(queue, account, meeting, priority, count, free)
        if not why and not exempt and _LOOP_TURNS * late_s >= self._max_queue_s / _part(priority):
            why = f"The gateway's process is full: it comes to what is due {late_s:.2f} s late."
        if not why and not exempt and free < count:
            # Texts without a meeting are a batch, of which all count. Those of an utterance do not: it is as
            # welcome in many languages as in one.
            turns = _turns_ahead(queue, account, meeting, priority, 0 if meeting else count - 1)
            wait_s = turns * self.pace.interval_s
            if turns and wait_s >= self._max_queue_s / _part(priority):
                why = f"{turns} translations would come before this, which takes {wait_s:.1f} s."
                if priority == FINAL:
                    retry_s = self._later_s(queue, account, count, wait_s, now_s)
        if why:
            raise Overloaded(why, retry_after_ms=round(1_000 * retry_s * (1 + self._chance() / 2)))

    def _is_full(self, queue: TurnQueue, account: str, meeting: str, priority: int, count: int, free: int) -> str:
        """Why there is no room for so many; empty if there is."""
        # Best effort takes half of the room, in all and of each meeting; finals do not see it.
        part = _part(priority)
        limit = self._max_waiting // part
        waiting = queue.ahead(priority)
        if not waiting and count <= free:
            return ""
        if waiting + count > limit + free:
            return f"{waiting} translations are waiting already; the limit is {limit}."
        # Half at most, so that one backlog cannot shut the others out.
        share = (self._max_waiting + 1) // 2 // part
        own = queue.ahead_of_meeting(priority, account, meeting)
        if own + count > share + free:
            return f"{own} translations of this meeting are waiting already; its share is {share}."
        share = _ACCOUNT_FACTOR * (limit - waiting)
        own = queue.ahead_of_account(priority, account)
        if own + count > share + free:
            return f"{own} translations of this address are waiting already; its share is {share} at present."
        return ""

    def _later_s(self, queue: TurnQueue, account: str, count: int, wait_s: float, now_s: float) -> float:
        """In how many seconds a final may come again that is refused now.

        Those of an account one after another, from when those that wait have had their turns, and as fast as its
        turns come.
        """
        if len(self._retries_s) > _MOST_RETRIES:
            self._retries_s = {each: at_s for each, at_s in self._retries_s.items() if at_s > now_s}
        each_s = count * self.pace.interval_s * len(queue.accounts(FINAL) | {account})
        at_s = max(self._retries_s.get(account, 0.0), now_s + wait_s) + each_s
        self._retries_s[account] = min(at_s, now_s + _LONGEST_RETRY_S)
        return self._retries_s[account] - now_s


def _turns_ahead(queue: TurnQueue, account: str, meeting: str, priority: int, own: int) -> int:
    """How many turns come before that of a newcomer who comes with `own` others, which are before it.

    Accounts take turns, and so do the meetings of each. So a final waits for no more rounds of the others than its
    own meeting needs, but for each of them: while more comes than the engine carries, whoever has had a turn is
    there again. Whether it does is not known, so it counts as at most twice what waits.
    """
    if priority > FINAL:
        return queue.ahead(priority) + own
    turns = own + queue.ahead_of_meeting(priority, account, meeting)
    rounds = 1 + queue.utterances_ahead(priority, account, meeting)
    turns += rounds * queue.round_of_others(priority, account, meeting)
    turns += (turns + 1) * len(queue.accounts(priority) - {account})
    return min(turns, own + 2 * queue.ahead(priority))


def _part(priority: int) -> int:
    return 1 if priority == FINAL else 2

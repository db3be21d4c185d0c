"""Whose turn it is: what one member does and many are told of, divided between accounts, then between meetings.

What costs little is done at once. A meeting or an account past its budget waits: for each thing that changes, the
newest of what waits is done in its turn, and all that waits has at most half of the event loop.

Knows: who pays, what it is estimated to cost, how long it took. Must not know: what is done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Hashable
from typing import NamedTuple

_log = logging.getLogger(__name__)

# What it costs that something is said, in seconds of a core, estimated from above, the same on every machine:
# each frame that is written, and each character that is compared with the revision before.
FRAME_S, CHAR_S = 15e-6, 0.5e-6

# Which part of the event loop a meeting and an account use without waiting, and for how many seconds in advance.
# Six people who talk use a hundredth. What waits meanwhile is late by milliseconds unless others wait too.
_MEETING_RATE, _MEETING_S = 0.02, 0.05
_ACCOUNT_RATE, _ACCOUNT_S = 0.1, 0.1

# For so long what waits is done without a pause; one thing that takes longer is not divided.
_SLICE_S = 0.004
# So long the next waits for what was begun and has not ended, such as what the store has to accept.
_PATIENCE_S = 0.02


class Payer(NamedTuple):
    """For whom something is done."""

    account: str
    # The meeting's key.
    meeting: str
    # Who causes it.
    participant: str = ""


class Debts:
    """Seconds that parties owe: each pays off `rate` seconds a second, and may go on while it owes `most_s`."""

    def __init__(self, rate: float, most_s: float) -> None:
        self._rate = rate
        self._most_s = most_s
        # Party → what it owed at which time.
        self._owed: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._owed)

    def may_go_on(self, party: str, now_s: float) -> bool:
        return self._owed_s(party, now_s) <= self._most_s

    def charge(self, party: str, cost_s: float, now_s: float) -> None:
        # Nobody owes more than twice what is allowed: who stops may soon go on.
        self._owed[party] = min(self._owed_s(party, now_s) + cost_s, 2 * self._most_s), now_s

    def sweep(self, now_s: float) -> None:
        """Forget who owes nothing."""
        for party in [party for party in self._owed if not self._owed_s(party, now_s)]:
            del self._owed[party]

    def _owed_s(self, party: str, now_s: float) -> float:
        owed_s, at_s = self._owed.get(party, (0.0, now_s))
        return max(0.0, owed_s - (now_s - at_s) * self._rate)


class FairOrder:
    """The order of turns: next is who was served least since it waits (start-time fair queueing)."""

    def __init__(self) -> None:
        # Party → seconds it was served, counted from where those were who waited when it came.
        self._served_s: dict[str, float] = {}
        self._now_s = 0.0

    def __len__(self) -> int:
        return len(self._served_s)

    def enter(self, party: str) -> None:
        """It waits from now on; how long it did not wait gives it no advantage."""
        self._served_s[party] = max(self._served_s.get(party, 0.0), self._now_s)

    def next(self, waiting: Collection[str]) -> str:
        """waiting: those that have entered, at least one."""
        party = min(waiting, key=self._served_s.__getitem__)
        self._now_s = self._served_s[party]
        return party

    def charge(self, party: str, cost_s: float) -> None:
        if party in self._served_s:  # otherwise all were forgotten since
            self._served_s[party] += cost_s

    def sweep(self, waiting: Collection[str]) -> None:
        """Forget those who wait for nothing and would begin where all others are."""
        served_s = self._served_s.items()
        for party in [party for party, at_s in served_s if at_s <= self._now_s and party not in waiting]:
            del self._served_s[party]


# What is done: its kind, and of what.
Key = tuple[str, Hashable]
# Returns what it began and has not ended; None: it is done.
Job = Callable[[], asyncio.Task[None] | None]


class Waiting:
    """What waits: for each meeting, participant and key the newest. Participants of a meeting take turns.

    Who pays for what waits of a participant pays for what joins it, whatever its account is by then.
    """

    def __init__(self) -> None:
        # Account → meeting → participant.
        self._jobs: dict[str, dict[str, dict[str, dict[Key, Job]]]] = {}
        # (meeting, participant) → account.
        self._paying: dict[tuple[str, str], str] = {}
        self._accounts = FairOrder()
        self._meetings: dict[str, FairOrder] = {}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def has(self, payer: Payer) -> bool:
        """Whether something of the account in the meeting waits, or of the participant."""
        return payer[1:] in self._paying or payer.meeting in self._jobs.get(payer.account, {})

    def put(self, payer: Payer, key: Key, job: Job, most: int) -> None:
        """most: how many of this kind may wait for the participant; beyond it, the oldest goes."""
        meeting, participant = payer[1:]
        account = self._paying.setdefault((meeting, participant), payer.account)
        if account not in self._jobs:
            self._accounts.enter(account)
        meetings = self._jobs.setdefault(account, {})
        if meeting not in meetings:
            self._meetings.setdefault(account, FairOrder()).enter(meeting)
        jobs = meetings.setdefault(meeting, {}).setdefault(participant, {})
        jobs[key] = job
        same = [each for each in jobs if each[0] == key[0]]
        if len(same) > most:
            del jobs[same[0]]

    def take_back(self, meeting: str, participant: str, key: Key) -> bool:
        """Whether something waited under this key."""
        if (account := self._paying.get((meeting, participant))) is None:
            return False
        jobs = self._jobs[account][meeting][participant]
        waited = jobs.pop(key, None) is not None
        if not jobs:
            self._drop(Payer(account, meeting, participant))
        return waited

    def next(self) -> tuple[Payer, Job]:
        """Whose turn it is, and what is done then; only while something waits. To be charged afterwards."""
        account = self._accounts.next(self._jobs)
        meeting = self._meetings[account].next(self._jobs[account])
        participants = self._jobs[account][meeting]
        payer = Payer(account, meeting, next(iter(participants)))
        participants[payer.participant] = jobs = participants.pop(payer.participant)
        job = jobs.pop(next(iter(jobs)))
        if not jobs:
            self._drop(payer)
        return payer, job

    def charge(self, payer: Payer, cost_s: float) -> None:
        self._accounts.charge(payer.account, cost_s)
        self._meetings.get(payer.account, FairOrder()).charge(payer.meeting, cost_s)

    def sweep(self) -> None:
        self._accounts.sweep(self._jobs)
        for account, order in self._meetings.items():
            order.sweep(self._jobs[account])

    def _drop(self, payer: Payer) -> None:
        """Nothing of a participant waits any more. Where nothing waits at all, the order begins again."""
        account, meeting, participant = payer
        del self._paying[meeting, participant], self._jobs[account][meeting][participant]
        if not self._jobs[account][meeting]:
            del self._jobs[account][meeting]
        if not self._jobs[account]:
            del self._jobs[account], self._meetings[account]
        if not self._jobs:
            self._accounts = FairOrder()


class Turns:
    """Those of one process. clock: monotonic, seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of_meetings = Debts(_MEETING_RATE, _MEETING_S)
        self._of_accounts = Debts(_ACCOUNT_RATE, _ACCOUNT_S)
        self._waiting = Waiting()
        self._next: asyncio.Handle | None = None

    def do(self, payer: Payer, cost_s: float, key: Key, job: Job, most: int = 1) -> asyncio.Task[None] | None:
        """At once if nothing of the payer's waits, or in its turn instead of what waits under the same key.

        most: as in `Waiting.put`. Returns what was begun at once and has not ended.
        """
        now_s = self._clock()
        at_once = (
            not self._waiting.has(payer)
            and self._of_meetings.may_go_on(payer.meeting, now_s)
            and self._of_accounts.may_go_on(payer.account, now_s)
        )
        self.charge(payer, cost_s)
        if at_once:
            return job()
        self._waiting.put(payer, key, job, most)
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._go_on)
        return None

    def charge(self, payer: Payer, cost_s: float) -> None:
        """Something was done in any case."""
        now_s = self._clock()
        self._of_meetings.charge(payer.meeting, cost_s, now_s)
        self._of_accounts.charge(payer.account, cost_s, now_s)

    def take_back(self, meeting: str, participant: str, key: Key) -> bool:
        """Do not do what waits under this key. Returns whether something did."""
        return self._waiting.take_back(meeting, participant, key)

    def sweep(self) -> None:
        """Forget who costs nothing; to be called every second."""
        now_s = self._clock()
        self._of_meetings.sweep(now_s)
        self._of_accounts.sweep(now_s)
        self._waiting.sweep()

    def close(self) -> None:
        """Nothing of what waits is done."""
        self._waiting = Waiting()
        if self._next is not None:
            self._next.cancel()

    def _go_on(self) -> None:
        began_s = done_s = self._clock()
        begun: asyncio.Task[None] | None = None
        while self._waiting and begun is None and done_s - began_s < _SLICE_S:
            before_s = done_s
            payer, job = self._waiting.next()
            try:
                begun = job()
            except Exception:
                _log.exception("what had its turn failed")
            done_s = self._clock()
            self._waiting.charge(payer, done_s - before_s)
        if begun is None:
            self._pause(began_s)
            return

        def go_on(_: asyncio.Task[None] | None = None) -> None:
            if self._next is patience:
                patience.cancel()
                self._pause(began_s)

        patience = self._next = asyncio.get_running_loop().call_later(_PATIENCE_S, go_on)
        begun.add_done_callback(go_on)

    def _pause(self, began_s: float) -> None:
        """For as long as what was done took: others have half of the time at least."""
        self._next = None
        if self._waiting:
            self._next = asyncio.get_running_loop().call_later(self._clock() - began_s, self._go_on)

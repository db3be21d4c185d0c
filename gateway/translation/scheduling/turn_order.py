"""Who waits for the engine and who is next: by priority, then accounts take turns, then each one's meetings do.

An account's turn is one translation; a meeting's lasts until its utterance is in the engine in all its languages.
Knows: tickets that wait; within a meeting, the order of admission. Must not know: the engine, how many run, tasks,
clocks.
"""

from __future__ import annotations

import itertools
from bisect import insort
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence

from gateway.translation.scheduling.ticket import FINAL, Ticket

# Meeting, in the order of their turns → its tickets, in the order of admission.
_Meetings = OrderedDict[str, deque[Ticket]]
# Account, in the order of their turns → its meetings.
_Accounts = OrderedDict[str, _Meetings]


class TurnQueue:
    """The queue in front of the engine. Suspects come before everything: see `ticket.SUSPECT_CRASHES`.

    turns: numbers that grow, the same for queues that share an engine: by them accounts take turns over all.
    """

    def __init__(self, turns: Iterator[int] | None = None) -> None:
        self._turns = turns or itertools.count(1)
        # Priority and account → since which turn it waits. Negative: it comes before those that do.
        self._since: dict[tuple[int, str], int] = {}
        # By priority.
        self._queues: dict[int, _Accounts] = {}
        self._suspects: list[Ticket] = []
        # Priority → how many wait; suspects do not count.
        self._waiting: defaultdict[int, int] = defaultdict(int)

    def __len__(self) -> int:
        return len(self._suspects) + sum(self._waiting.values())

    def __iter__(self) -> Iterator[Ticket]:
        yield from self._suspects
        for accounts in self._queues.values():
            for meetings in accounts.values():
                for queue in meetings.values():
                    yield from queue

    @property
    def suspects(self) -> bool:
        """Whether one waits that has to run alone."""
        return bool(self._suspects)

    @property
    def finals(self) -> int:
        """How many finals wait; suspects do not count."""
        return self._waiting[FINAL]

    def ahead(self, priority: int) -> int:
        """How many wait that come before a newcomer of this priority."""
        return len(self._suspects) + sum([n for number, n in self._waiting.items() if number <= priority])

    def ahead_of_account(self, priority: int, account: str) -> int:
        """How many of them are of one account."""
        waiting = sum(_count({account: accounts.get(account, _Meetings())}) for accounts in self._up_to(priority))
        return waiting + sum(ticket.account == account for ticket in self._suspects)

    def ahead_of_meeting(self, priority: int, account: str, meeting: str) -> int:
        """How many of them are of one meeting and account."""
        waiting = sum(
            len(accounts.get(account, _Meetings()).get(meeting, ())) for accounts in self._up_to(priority)
        )
        return waiting + sum((ticket.account, ticket.meeting) == (account, meeting) for ticket in self._suspects)

    def utterances_ahead(self, priority: int, account: str, meeting: str) -> int:
        """How many utterances those of `ahead_of_meeting` belong to; suspects do not count."""
        queues = [accounts.get(account, _Meetings()).get(meeting, ()) for accounts in self._up_to(priority)]
        return sum(len({ticket.utterance for ticket in queue}) for queue in queues)

    def round_of_others(self, priority: int, account: str, meeting: str) -> int:
        """How many turns it takes until each other meeting of an account that waits has had its next utterance."""
        meetings = [accounts.get(account, _Meetings()).items() for accounts in self._up_to(priority)]
        return sum(_of_next(queue) for each in meetings for name, queue in each if name != meeting)

    def accounts(self, priority: int) -> set[str]:
        """Those that wait with something that comes before a newcomer of this priority; suspects do not count."""
        return {account for accounts in self._up_to(priority) for account in accounts}

    def append(self, tickets: Sequence[Ticket]) -> None:
        """Newcomers of one meeting, account and priority; all of them are suspects, or none."""
        if tickets[0].suspect:
            for ticket in tickets:
                self.put_back(ticket)
            return
        self._queue_of(tickets[0]).extend(tickets)
        self._waiting[tickets[0].request.priority] += len(tickets)

    def put_back(self, ticket: Ticket) -> None:
        """One whose engine died: its meeting is next, with what ran before what never did, by admission."""
        if ticket.suspect:
            insort(self._suspects, ticket, key=lambda suspect: (suspect.request.priority, suspect.serial))
            return
        self._waiting[ticket.request.priority] += 1
        queue = self._queue_of(ticket)
        accounts = self._queues[ticket.request.priority]
        accounts.move_to_end(ticket.account, last=False)
        accounts[ticket.account].move_to_end(ticket.meeting, last=False)
        self._since[ticket.request.priority, ticket.account] = -next(self._turns)
        place = next((n for n, other in enumerate(queue) if other.serial > ticket.serial), len(queue))
        queue.insert(place, ticket)

    def remove(self, ticket: Ticket) -> None:
        if ticket in self._suspects:
            self._suspects.remove(ticket)
            return
        self._waiting[ticket.request.priority] -= 1
        self._queue_of(ticket).remove(ticket)
        self._tidy(ticket)

    def next_is_best_effort(self) -> bool:
        """Whether nothing waits that was promised."""
        return not self._suspects and min(self._queues, default=FINAL) > FINAL

    @property
    def next_turn(self) -> tuple[int, int]:
        """What the next one is compared by with that of another queue: its priority, and since when it waits."""
        if self._suspects or not self._queues:
            return (-1, 0)
        priority = min(self._queues)
        return (priority, self._since[priority, next(iter(self._queues[priority]))])

    def pop(self) -> Ticket | None:
        """Take out the one whose turn it is."""
        if self._suspects:
            return self._suspects.pop(0)
        if not self._queues:
            return None
        accounts = self._queues[priority := min(self._queues)]
        account, meetings = next(iter(accounts.items()))
        meeting, queue = next(iter(meetings.items()))
        ticket = queue.popleft()
        self._waiting[priority] -= 1
        # To the back: the others come first.
        accounts.move_to_end(account)
        self._since[priority, account] = next(self._turns)
        if not queue or queue[0].utterance != ticket.utterance:
            meetings.move_to_end(meeting)
        self._tidy(ticket)
        return ticket

    def _up_to(self, priority: int) -> Iterator[_Accounts]:
        return (accounts for number, accounts in self._queues.items() if number <= priority)

    def _queue_of(self, ticket: Ticket) -> deque[Ticket]:
        accounts = self._queues.setdefault(ticket.request.priority, _Accounts())
        if ticket.account not in accounts:
            self._since[ticket.request.priority, ticket.account] = next(self._turns)
        return accounts.setdefault(ticket.account, _Meetings()).setdefault(ticket.meeting, deque())

    def _tidy(self, ticket: Ticket) -> None:
        accounts = self._queues[ticket.request.priority]
        meetings = accounts[ticket.account]
        if not meetings[ticket.meeting]:
            del meetings[ticket.meeting]
        if not meetings:
            del accounts[ticket.account], self._since[ticket.request.priority, ticket.account]
        if not accounts:
            del self._queues[ticket.request.priority]


def _of_next(queue: deque[Ticket]) -> int:
    """How many of them are of the first utterance."""
    return next((n for n, ticket in enumerate(queue) if ticket.utterance != queue[0].utterance), len(queue))


def _count(accounts: dict[str, _Meetings]) -> int:
    return sum(len(queue) for meetings in accounts.values() for queue in meetings.values())

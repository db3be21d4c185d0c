"""Who waits for the engine and who is next: by priority, then meetings in turns, then in order of admission.

Knows: tickets that wait. Must not know: the engine, how many run, tasks, clocks.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence

from gateway.translation.ticket import FINAL, Ticket

__all__ = ["TurnQueue"]


class TurnQueue:
    """The queue in front of the engine. Suspects come before everything: see `ticket.SUSPECT_CRASHES`."""

    def __init__(self) -> None:
        # Priority → meeting, in the order of their turns → its tickets, in the order of admission.
        self._queues: dict[int, OrderedDict[str, deque[Ticket]]] = {}
        self._suspects: list[Ticket] = []
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def __iter__(self) -> Iterator[Ticket]:
        yield from self._suspects
        for queues in self._queues.values():
            for queue in queues.values():
                yield from queue

    @property
    def suspects(self) -> bool:
        """Whether one waits that has to run alone."""
        return bool(self._suspects)

    @property
    def finals(self) -> int:
        """How many finals wait; suspects do not count."""
        return sum(map(len, self._queues.get(FINAL, {}).values()))

    def ahead(self, priority: int, queue: str | None = None) -> int:
        """How many wait that come before a newcomer of this priority, in all or in one meeting's queue."""
        queues = [queues for number, queues in self._queues.items() if number <= priority]
        if queue is None:
            return sum(len(tickets) for each in queues for tickets in each.values()) + len(self._suspects)
        return sum(len(each.get(queue, ())) for each in queues) + sum(t.queue == queue for t in self._suspects)

    def append(self, tickets: Sequence[Ticket]) -> None:
        """Newcomers of one queue and one priority."""
        queues = self._queues.setdefault(tickets[0].request.priority, OrderedDict())
        queues.setdefault(tickets[0].queue, deque()).extend(tickets)
        self._waiting += len(tickets)

    def put_back(self, ticket: Ticket) -> None:
        """One whose engine died: its meeting is next, with what ran before what never did, by admission."""
        self._waiting += 1
        if ticket.suspect:
            insort(self._suspects, ticket, key=lambda suspect: (suspect.request.priority, suspect.serial))
            return
        queues = self._queues.setdefault(ticket.request.priority, OrderedDict())
        queue = queues.setdefault(ticket.queue, deque())
        queues.move_to_end(ticket.queue, last=False)
        place = next((n for n, other in enumerate(queue) if other.serial > ticket.serial), len(queue))
        queue.insert(place, ticket)

    def remove(self, ticket: Ticket) -> None:
        """One that does not wait any more."""
        self._waiting -= 1
        if ticket.suspect:
            self._suspects.remove(ticket)
            return
        queues = self._queues[ticket.request.priority]
        queues[ticket.queue].remove(ticket)
        self._tidy(ticket)

    def next_is_best_effort(self) -> bool:
        """Whether nothing waits that was promised."""
        return not self._suspects and min(self._queues, default=FINAL) > FINAL

    def pop(self) -> Ticket | None:
        """Take out the one whose turn it is."""
        if self._suspects:
            self._waiting -= 1
            return self._suspects.pop(0)
        if not self._queues:
            return None
        queues = self._queues[min(self._queues)]
        name, queue = queues.popitem(last=False)
        ticket = queue.popleft()
        self._waiting -= 1
        # To the back: the other meetings come first.
        queues[name] = queue
        self._tidy(ticket)
        return ticket

    def _tidy(self, ticket: Ticket) -> None:
        """Leave no empty queue behind."""
        queues = self._queues[ticket.request.priority]
        if not queues[ticket.queue]:
            del queues[ticket.queue]
        if not queues:
            del self._queues[ticket.request.priority]

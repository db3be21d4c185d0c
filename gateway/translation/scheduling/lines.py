"""Who waits for which lanes: a queue of its own for each set of lanes, so that a full lane holds up nobody else.

Knows: tickets that wait, for what. Must not know: engines, how many run, tasks, clocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from gateway.domain.engine import EngineState
from gateway.translation.scheduling.admission import Admission
from gateway.translation.scheduling.lanes import Lane, Route
from gateway.translation.scheduling.ticket import Ticket
from gateway.translation.scheduling.turn_order import TurnQueue


class Line:
    """Those that wait for the same lanes, and whether there is room for more of them."""

    def __init__(self, route: Route, queue: TurnQueue, admission: Admission) -> None:
        self.route = route
        self.queue = queue
        self.admission = admission


class Lines:
    """All lines. max_waiting, max_queue_s: of each line, as in `Scheduler`."""

    def __init__(self, max_waiting: int, max_queue_s: float) -> None:
        self._max_waiting = max_waiting
        self._max_queue_s = max_queue_s
        self._turns = itertools.count(1)
        self._lines: dict[Route, Line] = {}

    def __len__(self) -> int:
        """How many wait."""
        return sum([len(line.queue) for line in self._lines.values()])

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines.values())

    @property
    def tickets(self) -> Iterator[Ticket]:
        for line in self:
            yield from line.queue

    def wanted(self, lane: str) -> tuple[int, int]:
        """Of those that wait for a lane: finals, and others. Suspects count as others."""
        queues = [line.queue for line in self if lane in line.route]
        finals = sum(queue.finals for queue in queues)
        return finals, sum(map(len, queues)) - finals

    def of(self, route: Route) -> Line:
        """Those that wait for just these lanes."""
        if (line := self._lines.get(route)) is None:
            admission = Admission(self._max_waiting, self._max_queue_s)
            self._lines[route] = line = Line(route, TurnQueue(self._turns), admission)
        return line

    def ahead_of_account(self, priority: int, account: str) -> int:
        """How many of one account wait that come before a newcomer of this priority, for whatever lanes."""
        return sum(line.queue.ahead_of_account(priority, account) for line in self)

    def in_turn(self) -> list[Line]:
        """Those in which somebody waits, whose next comes first first."""
        if len(self._lines) == 1:
            return [line for line in self if line.queue]
        return sorted((line for line in self if line.queue), key=lambda line: line.queue.next_turn)

    def is_full(self, line: Line, lanes: Iterable[Lane]) -> bool:
        """Whether finals wait for nothing but other finals to end, as many as the line's lanes run together."""
        if not line.queue.finals or line.queue.suspects:
            return False
        ready = [lane for lane in lanes if lane.state is EngineState.READY]
        return bool(ready) and not any(
            lane.suspect_runs or lane.best_effort_running or self.suspects_of(lane.route) for lane in ready
        )

    def suspects_of(self, lane: Route) -> bool:
        """Whether one waits that has to run alone on this lane; each waits for one."""
        line = self._lines.get(lane)
        return line is not None and line.queue.suspects

    def append(self, newcomers: Sequence[Ticket]) -> None:
        """Newcomers of one meeting, account and priority, each for the lanes of its route."""
        for route in dict.fromkeys(ticket.route for ticket in newcomers):
            self.of(route).queue.append([ticket for ticket in newcomers if ticket.route == route])

    def route_again(self, route_of: Callable[[Ticket], Route]) -> list[Ticket]:
        """Lanes have come or gone: let those that wait wait for the right ones. Returns those that have none."""
        nowhere = []
        for ticket in reversed(list(self.tickets)):  # as each is put in front of the others
            before, route = ticket.route, route_of(ticket)
            if not route:
                nowhere.append(ticket)
            elif route != before:
                self.of(before).queue.remove(ticket)
                ticket.route = route
                self.of(route).queue.put_back(ticket)
        return nowhere

    def forget(self, lanes: Route) -> None:
        """Only these lanes are there: let go of empty lines for others."""
        for route, line in list(self._lines.items()):
            if not line.queue and not route <= lanes:
                del self._lines[route]

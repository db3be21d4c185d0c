"""Who waits for which lanes: a queue of its own for each set of lanes, so that a full lane holds up no other line.

Knows: tickets that wait, for what. `Door` also knows how many run and for how long others
wait. Must not know: engines, tasks, sockets.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from gateway.domain.engine import EngineState
from gateway.domain.errors import Overloaded
from gateway.domain.grants import tenant_of_account
from gateway.translation.scheduling.admission import Admission
from gateway.translation.scheduling.lanes import Lane, Lanes, Route
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.ticket import FINAL, Ticket
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
        """How many wait for a lane: finals, and others. Suspects count as others."""
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
        """Lines that are not empty; first the one whose next ticket comes first."""
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


def to_preempt(lanes: Iterable[Lane], lines: Iterable[Line]) -> list[Ticket]:
    """The partials whose places are needed: of finals that wait, and of what waits inside a lane.

    The youngest have the least to lose. Places that are being given up already are counted once.
    """
    if not any([line.queue.finals for line in lines]) and not any([lane.overflow for lane in lanes]):
        return []
    running = {lane.name: lane for lane in lanes if lane.running}
    needs = [(frozenset({lane.name}), lane.overflow) for lane in running.values()]
    needs += [(line.route, line.queue.finals) for line in lines]
    partials = {name: lane.partials() for name, lane in running.items()}
    ending = {name: sum(ticket.ending for ticket in there) for name, there in partials.items()}
    chosen: list[Ticket] = []
    for route, count in needs:
        names = [name for name in running if name in route]
        for name in names:
            free = min(count, ending[name])
            ending[name] -= free
            count -= free
        chosen += _youngest([ticket for name in names for ticket in partials[name]], chosen, count)
    return chosen


def _youngest(partials: Iterable[Ticket], but: Collection[Ticket], count: int) -> list[Ticket]:
    left = [ticket for ticket in partials if not ticket.ending and ticket not in but]
    return sorted(left, key=lambda ticket: ticket.serial, reverse=True)[: max(0, count)]


class Door:
    """clock: as the scheduler's. lag_s: how late the event loop is, seconds."""

    def __init__(
        self, lanes: Lanes, lines: Lines, quotas: Quotas, clock: Callable[[], float], lag_s: Callable[[], float]
    ) -> None:
        self._lanes = lanes
        self._lines = lines
        self._quotas = quotas
        self._clock = clock
        self._lag_s = lag_s

    def check(self, account: str, meeting: str, priority: int, counts: Mapping[Route, int]) -> None:
        """Raises `Overloaded` or `QuotaExceeded` unless all may come in. counts: how many for which lanes."""
        tenant = tenant_of_account(account)
        self._quotas.check_day(tenant, meeting)
        rooms = {route: self._room(route) for route in counts}
        if (more := sum(counts.values()) - sum(rooms.values())) > 0:
            self._quotas.check_waiting(tenant, self._lines.ahead_of_account(priority, account), more)
        for route, count in counts.items():
            self._check(route, account, meeting, priority, count, rooms[route])

    def check_promised(self, account: str, meeting: str, priority: int, counts: Mapping[Route, int]) -> None:
        """As `check`, of what was accepted before: it may have to wait for long, and quotas do not matter."""
        for route, count in counts.items():
            self._check(route, account, meeting, priority, count, self._room(route), promised=True)

    def check_unread(self, account: str) -> None:
        """Raises `Overloaded` where no final of an account may come in, whatever it says."""
        refused: Overloaded | None = None
        # Routes of lanes, too, for which no request came so far.
        for route in {line.route for line in self._lines} | {lane.route for lane in self._lanes}:
            try:
                return self._check(route, account, "", FINAL, 1, self._room(route))
            except Overloaded as error:
                refused = error
        if refused is not None:
            raise refused

    def free(self, lane: Lane, *, best_effort: bool = False) -> int:
        """How many turns may be given now; see `Lane.free`."""
        return lane.free(quarantined=self._lines.suspects_of(lane.route), best_effort=best_effort)

    def _room(self, route: Route) -> int:
        return sum(map(self.free, self._lanes.some(route)))

    def _check(
        self,
        route: Route,
        account: str,
        meeting: str,
        priority: int,
        count: int,
        free: int,
        *,
        promised: bool = False,
    ) -> None:
        line = self._lines.of(route)
        # While no lane runs, a newcomer is not sent away for having to wait.
        none_runs = not free and all(lane.state is not EngineState.READY for lane in self._lanes.some(route))
        line.admission.check(
            *(line.queue, account, meeting, priority, count),
            free=free,
            now_s=self._clock(),
            late_s=self._lag_s(),
            exempt=promised or none_runs,
        )

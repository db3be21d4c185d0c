"""Who waits for which lanes, who is next, and whether there is room for more: the rule behind `overloaded`.

Each set of lanes has a line of its own, so that a full lane holds up no other line. In a line priority decides,
then accounts take turns, then each one's meetings do. An account's turn is one translation; a meeting's lasts
until its utterance is in the engine in all its languages.
Knows: tickets that wait, for what; how fast their turns come, how many run, how late the event loop is.
Must not know: why an engine is slow, tasks, sockets.
"""

from __future__ import annotations

import itertools
import math
import random
from bisect import insort
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gateway.domain.engine import EngineState
from gateway.domain.errors import Overloaded
from gateway.domain.grants import tenant_of_account
from gateway.translation.scheduling.lanes import Lane, Lanes, Route
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.ticket import FINAL, Ticket

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


class Newcomers(NamedTuple):
    """Translations of one meeting that ask to wait together."""

    account: str
    # Empty: a call over HTTP.
    meeting: str
    priority: int
    texts: int = 1


class Line:
    """Those that wait for the same lanes, bounded by number and by time; so is the part of an account or meeting.

    turns: as in `TurnQueue`.
    max_waiting: translations that may wait for their turn; one more is refused.
    max_queue_s: how long a newcomer may have to wait for its turn, as far as can be told.
    chance: a number from 0 to 1, which spreads the clients that try again.
    """

    def __init__(
        self,
        route: Route,
        turns: Iterator[int],
        max_waiting: int,
        max_queue_s: float,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.route = route
        self.queue = TurnQueue(turns)
        self.pace = TurnPace()
        self._max_waiting = max_waiting
        self._max_queue_s = max_queue_s
        self._chance = chance
        # Account → when the next final of it that is refused is to come again.
        self._retries_s: dict[str, float] = {}

    def check(self, new: Newcomers, *, free: int, now_s: float, late_s: float = 0.0, exempt: bool = False) -> None:
        """Raise `Overloaded` where newcomers are too many; `free` of them need not wait.

        late_s: how late the event loop is. exempt: however long they have to wait.
        """
        retry_s, longest_s = _RETRY_S, self._max_queue_s / _part(new.priority)
        why = self._is_full(new, free)
        if not why and not exempt and _LOOP_TURNS * late_s >= longest_s:
            why = f"The gateway's process is full: it comes to what is due {late_s:.2f} s late."
        if not why and not exempt and free < new.texts:
            turns = self._turns_ahead(new)
            wait_s = turns * self.pace.interval_s
            if turns and wait_s >= longest_s:
                why = f"{turns} translations would come before this, which takes {wait_s:.1f} s."
                if new.priority == FINAL:
                    retry_s = self._later_s(new, wait_s, now_s)
        if why:
            raise Overloaded(why, retry_after_ms=round(1_000 * retry_s * (1 + self._chance() / 2)))

    def _is_full(self, new: Newcomers, free: int) -> str:
        account, meeting, priority, count = new
        queue = self.queue
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

    def _turns_ahead(self, new: Newcomers) -> int:
        """How many turns come before that of the first newcomer.

        Accounts take turns, and so do the meetings of each. So a final waits for no more rounds of the others than
        its own meeting needs, but for each of them: while more comes than the engine carries, each that has had a
        turn is there again. Whether it does is not known, so it counts as at most twice what waits.

        Those that come together do not count, languages of an utterance or texts of a call: they are no queue
        before themselves, and would be as many however often they came again.
        """
        account, meeting, priority, _ = new
        queue = self.queue
        if priority > FINAL:
            return queue.ahead(priority)
        turns = queue.ahead_of_meeting(priority, account, meeting)
        rounds = 1 + queue.utterances_ahead(priority, account, meeting)
        turns += rounds * queue.round_of_others(priority, account, meeting)
        turns += (turns + 1) * len(queue.accounts(priority) - {account})
        return min(turns, 2 * queue.ahead(priority))

    def _later_s(self, new: Newcomers, wait_s: float, now_s: float) -> float:
        """In how many seconds a final may come again that is refused now.

        Those of an account one after another, from when those that wait have had their turns, and as fast as its
        turns come.
        """
        if len(self._retries_s) > _MOST_RETRIES:
            self._retries_s = {each: at_s for each, at_s in self._retries_s.items() if at_s > now_s}
        each_s = new.texts * self.pace.interval_s * len(self.queue.accounts(FINAL) | {new.account})
        at_s = max(self._retries_s.get(new.account, 0.0), now_s + wait_s) + each_s
        self._retries_s[new.account] = min(at_s, now_s + _LONGEST_RETRY_S)
        return self._retries_s[new.account] - now_s


def _part(priority: int) -> int:
    return 1 if priority == FINAL else 2


class Lines:
    """All lines. max_waiting, max_queue_s: of each line, as in `Scheduler`."""

    def __init__(self, max_waiting: int, max_queue_s: float) -> None:
        self._max_waiting = max_waiting
        self._max_queue_s = max_queue_s
        self._turns = itertools.count(1)
        self._lines: dict[Route, Line] = {}

    def __len__(self) -> int:
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

    def line_of(self, route: Route) -> Line:
        if (line := self._lines.get(route)) is None:
            line = Line(route, self._turns, self._max_waiting, self._max_queue_s)
            self._lines[route] = line
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
            self.line_of(route).queue.append([ticket for ticket in newcomers if ticket.route == route])

    def route_again(self, route_of: Callable[[Ticket], Route]) -> list[Ticket]:
        """Lanes have come or gone: let those that wait wait for the right ones. Returns those that have none."""
        nowhere = []
        for ticket in reversed(list(self.tickets)):  # as each is put in front of the others
            before, route = ticket.route, route_of(ticket)
            if not route:
                nowhere.append(ticket)
            elif route != before:
                self.line_of(before).queue.remove(ticket)
                ticket.route = route
                self.line_of(route).queue.put_back(ticket)
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
    """Whether newcomers may wait for their lanes. clock: the scheduler's. lag_s: how late the event loop is."""

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
            self._check_line(route, Newcomers(account, meeting, priority, count), rooms[route])

    def check_promised(self, account: str, meeting: str, priority: int, counts: Mapping[Route, int]) -> None:
        """As `check`, of what was accepted before: it may have to wait for long, and quotas do not matter."""
        for route, count in counts.items():
            new = Newcomers(account, meeting, priority, count)
            self._check_line(route, new, self._room(route), promised=True)

    def check_unread(self, account: str) -> None:
        """Raises `Overloaded` or `QuotaExceeded` where no final over HTTP may come in, whatever it says."""
        tenant = tenant_of_account(account)
        self._quotas.check_day(tenant, "")
        if not any(self._room(lane.route) for lane in self._lanes):
            self._quotas.check_waiting(tenant, self._lines.ahead_of_account(FINAL, account), 1)
        refused: Overloaded | None = None
        # Routes of lanes, too, for which no request came so far.
        for route in {line.route for line in self._lines} | {lane.route for lane in self._lanes}:
            try:
                return self._check_line(route, Newcomers(account, "", FINAL), self._room(route))
            except Overloaded as error:
                refused = error
        if refused is not None:
            raise refused

    def free(self, lane: Lane, *, best_effort: bool = False) -> int:
        """How many turns may be given now; see `Lane.free`."""
        return lane.free(quarantined=self._lines.suspects_of(lane.route), best_effort=best_effort)

    def _room(self, route: Route) -> int:
        return sum(map(self.free, self._lanes.some(route)))

    def _check_line(self, route: Route, new: Newcomers, free: int, *, promised: bool = False) -> None:
        # While no lane runs, a newcomer is not sent away for having to wait.
        none_runs = not free and all(lane.state is not EngineState.READY for lane in self._lanes.some(route))
        exempt = promised or none_runs
        line = self._lines.line_of(route)
        line.check(new, free=free, now_s=self._clock(), late_s=self._lag_s(), exempt=exempt)

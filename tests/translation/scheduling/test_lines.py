"""Who is next, against a model that looks at everybody who waits; who waits for which lanes; who is refused."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import Cancelled, Overloaded
from gateway.translation.scheduling.lanes import Lanes, Route
from gateway.translation.scheduling.lines import Line, Lines, Newcomers, TurnPace, TurnQueue, to_preempt
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import CATCHING_UP, FINAL, PARTIAL, SUSPECT_CRASHES, Ticket
from tests.translation.engines import EN_DE, EN_JA, HandPool, SteppedEngine, request
from tests.usual import usual

MEETINGS = ("m", "n", "o")
ACCOUNTS = ("a", "b")
PRIORITIES = (FINAL, PARTIAL, CATCHING_UP)
_serials = itertools.count(1)


def admitted(
    meeting: str = "m", priority: int = FINAL, account: str = "a", *, name: str = "", at_s: float = 0.0
) -> Ticket:
    serial = next(_serials)
    asked = request(name or f"{meeting}{serial}", priority=priority, final=priority == FINAL)
    return Ticket(serial, meeting, asked, at_s, account)


def utterance(meeting: str) -> list[Ticket]:
    """In three languages."""
    tickets = [admitted(meeting) for _ in range(3)]
    for ticket in tickets:
        ticket.utterance = tickets[0].serial
    return tickets


def append_each(turns: TurnQueue, *tickets: Ticket) -> None:
    """Each is another utterance."""
    for ticket in tickets:
        turns.append([ticket])


def taken(turns: TurnQueue) -> list[Ticket]:
    """All that wait, in the order of their turns."""
    return list(iter(turns.pop, None))


@pytest.fixture
def turns() -> TurnQueue:
    return TurnQueue()


def test_nobody_waits(turns: TurnQueue) -> None:
    assert turns.pop() is None
    assert (len(turns), list(turns), turns.finals, turns.suspects) == (0, [], 0, False)
    assert not turns.next_is_best_effort()


def test_meetings_take_turns_and_a_meeting_keeps_its_order(turns: TurnQueue) -> None:
    m1, m2, m3, n1 = admitted("m"), admitted("m"), admitted("m"), admitted("n")
    append_each(turns, m1, m2, m3, n1)
    assert taken(turns) == [m1, n1, m2, m3]


def test_utterance_takes_one_turn_in_all_languages(turns: TurnQueue) -> None:
    m1, m2, n1, n2 = map(utterance, "mmnn")
    for tickets in (m1, m2, n1, n2):
        turns.append(tickets)
    assert turns.utterances_ahead(FINAL, "a", "m") == 2
    assert turns.round_of_others(FINAL, "a", "m") == 3
    assert turns.round_of_others(FINAL, "a", "o") == 6
    assert turns.round_of_others(FINAL, "b", "m") == 0
    assert taken(turns) == [*m1, *n1, *m2, *n2]


def test_http_call_has_a_turn_per_text(turns: TurnQueue) -> None:
    texts, said = [admitted("") for _ in range(3)], admitted("m")
    turns.append(texts)
    turns.append([said])
    assert taken(turns) == [texts[0], said, *texts[1:]]


def test_accounts_take_turns_within_an_utterance_too(turns: TurnQueue) -> None:
    languages, other = utterance("m"), admitted("n", account="b")
    turns.append(languages)
    turns.append([other])
    assert taken(turns) == [languages[0], other, *languages[1:]]


def test_accounts_take_turns_however_many_meetings_one_has(turns: TurnQueue) -> None:
    crowd = [admitted(meeting) for meeting in "mnopq"]
    own = [admitted("x", account="b"), admitted("x", account="b"), admitted("y", account="b")]
    append_each(turns, *crowd, *own)
    assert taken(turns) == [crowd[0], own[0], crowd[1], own[2], crowd[2], own[1], *crowd[3:]]


def test_newcomer_waits_one_turn_per_meeting(turns: TurnQueue) -> None:
    backlog = [admitted("m") for _ in range(5)]
    append_each(turns, *backlog)
    assert [turns.pop(), turns.pop()] == backlog[:2]
    late = admitted("n")
    turns.append([late])
    assert [turns.pop(), turns.pop()] == [backlog[2], late]


def test_finals_precede_partials_precede_catching_up(turns: TurnQueue) -> None:
    shown, partial, final = admitted(priority=CATCHING_UP), admitted(priority=PARTIAL), admitted(priority=FINAL)
    for ticket in (shown, partial, final):
        turns.append([ticket])
    assert not turns.next_is_best_effort()
    assert turns.pop() is final
    assert turns.next_is_best_effort()
    assert taken(turns) == [partial, shown]


def test_a_meeting_whose_turn_broke_off_is_the_next(turns: TurnQueue) -> None:
    m1, m2, n1 = admitted("m"), admitted("m"), admitted("n")
    append_each(turns, m1, m2, n1)
    assert turns.pop() is m1
    turns.put_back(m1)
    assert taken(turns) == [m1, n1, m2]


@pytest.mark.parametrize("first", ["m1", "m2"])
def test_returned_tickets_precede_new_ones(first: str, turns: TurnQueue) -> None:
    m1, m2, m3, n1 = admitted("m"), admitted("m"), admitted("m"), admitted("n")
    append_each(turns, m1, m2, m3, n1)
    assert [turns.pop(), turns.pop(), turns.pop()] == [m1, n1, m2]
    turns.append([n2 := admitted("n")])
    for ticket in (m1, m2) if first == "m1" else (m2, m1):
        turns.put_back(ticket)
    assert taken(turns) == [m1, n2, m2, m3]


def test_suspects_come_before_everything_whatever_their_meeting(turns: TurnQueue) -> None:
    partial, first, second = admitted("n", PARTIAL), admitted("m"), admitted("n")
    for ticket in (first, second, partial):
        ticket.crashes = SUSPECT_CRASHES
    turns.append([other := admitted("m")])
    for ticket in (second, partial, first):
        turns.put_back(ticket)
    assert turns.suspects
    assert turns.finals == 1, "suspects take no place of a partial"
    assert turns.ahead(FINAL) == turns.ahead_of_account(FINAL, "a") == 4
    assert turns.ahead_of_meeting(FINAL, "a", "n") == 2
    assert taken(turns) == [first, second, partial, other]
    assert not turns.suspects


class Model:
    """Nothing but who waits, and whose turn it is in each priority."""

    def __init__(self) -> None:
        self.waiting: list[Ticket] = []
        # By priority: the accounts in the order of their turns.
        self._accounts: dict[int, list[str]] = {priority: [] for priority in PRIORITIES}
        # By priority and account: its meetings in the order of theirs.
        self._meetings: dict[tuple[int, str], list[str]] = {}

    def of(self, priority: int, account: str | None = None, meeting: str | None = None) -> list[Ticket]:
        """Those above suspicion, by admission."""
        found = [t for t in self.waiting if not t.suspect and t.request.priority == priority]
        found = [t for t in found if account in (None, t.account) and meeting in (None, t.meeting)]
        return sorted(found, key=lambda ticket: ticket.serial)

    def suspects(self) -> list[Ticket]:
        return sorted((t for t in self.waiting if t.suspect), key=lambda t: (t.request.priority, t.serial))

    def append(self, ticket: Ticket) -> None:
        priority = ticket.request.priority
        if not self.of(priority, ticket.account):
            _move(self._accounts[priority], ticket.account, last=True)
        if not self.of(priority, ticket.account, ticket.meeting):
            _move(self._meetings_of(ticket), ticket.meeting, last=True)
        self.waiting.append(ticket)

    def put_back(self, ticket: Ticket) -> None:
        if not ticket.suspect:
            _move(self._accounts[ticket.request.priority], ticket.account, last=False)
            _move(self._meetings_of(ticket), ticket.meeting, last=False)
        self.waiting.append(ticket)

    def pop(self) -> Ticket | None:
        ticket = next(iter(self.suspects()), None)
        if ticket is None:
            for priority in PRIORITIES:
                if self.of(priority):
                    account = next(name for name in self._accounts[priority] if self.of(priority, name))
                    meetings = self._meetings[priority, account]
                    meeting = next(name for name in meetings if self.of(priority, account, name))
                    ticket, *others = self.of(priority, account, meeting)
                    _move(self._accounts[priority], account, last=True)
                    if not others or others[0].utterance != ticket.utterance:
                        _move(meetings, meeting, last=True)
                    break
        if ticket is not None:
            self.waiting.remove(ticket)
        return ticket

    def _meetings_of(self, ticket: Ticket) -> list[str]:
        return self._meetings.setdefault((ticket.request.priority, ticket.account), [])


def _move(order: list[str], name: str, *, last: bool) -> None:
    if name in order:
        order.remove(name)
    order.insert(len(order) if last else 0, name)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.sampled_from(ACCOUNTS),
            st.sampled_from(MEETINGS),
            st.sampled_from(PRIORITIES),
            st.integers(1, 3),
        ),
        st.tuples(st.just("pop")),
        st.tuples(st.just("pop")),
        st.tuples(st.just("put back"), st.integers(0, 50), st.integers(0, 2)),
        st.tuples(st.just("remove"), st.integers(0, 50)),
    ),
    max_size=60,
)


@given(STEPS)
def test_queue_agrees_with_its_model(steps: list[tuple[object, ...]]) -> None:
    turns, model, running = TurnQueue(), Model(), list[Ticket]()
    for step in steps:
        match step:
            case ("append", str(account), str(meeting), int(priority), int(count)):
                tickets = [admitted(meeting, priority, account) for _ in range(count)]
                turns.append(tickets)
                for ticket in tickets:
                    model.append(ticket)
            case ("pop",):
                popped = turns.pop()
                assert popped is model.pop()
                running += [] if popped is None else [popped]
            case ("put back", int(which), int(crashes)) if running:
                ticket = running.pop(which % len(running))
                ticket.crashes += crashes
                turns.put_back(ticket)
                model.put_back(ticket)
            case ("remove", int(which)) if model.waiting:
                ticket = model.waiting.pop(which % len(model.waiting))
                turns.remove(ticket)
        assert len(turns) == len(model.waiting)
        assert bool(turns) == bool(model.waiting)
        assert set(turns) == set(model.waiting)
        assert turns.finals == len(model.of(FINAL))
        assert turns.suspects == bool(model.suspects())
        best_effort = not model.suspects() and not model.of(FINAL) and bool(model.waiting)
        assert turns.next_is_best_effort() == best_effort
        for priority in PRIORITIES:
            before = [*model.suspects(), *(t for p in PRIORITIES[: priority + 1] for t in model.of(p))]
            assert turns.ahead(priority) == len(before)
            for account in ACCOUNTS:
                theirs = [ticket.meeting for ticket in before if ticket.account == account]
                assert turns.ahead_of_account(priority, account) == len(theirs)
                for meeting in MEETINGS:
                    assert turns.ahead_of_meeting(priority, account, meeting) == theirs.count(meeting)
    assert taken(turns) == list(iter(model.pop, None))


def test_a_newcomer_that_is_a_suspect_already_comes_first(turns: TurnQueue) -> None:
    other, suspect = admitted(), admitted()
    suspect.crashes = SUSPECT_CRASHES
    turns.append([other])
    turns.append([suspect])
    assert (turns.suspects, len(turns)) == (True, 2)
    assert taken(turns) == [suspect, other]


# ---------------------------------------------------------------- lines

A, B, BOTH = Route("a"), Route("b"), Route("ab")


def waits(lines: Lines, route: Route, name: str, account: str = "x", priority: int = FINAL) -> Ticket:
    ticket = admitted(priority=priority, account=account, name=name)
    ticket.route = route
    lines.append([ticket])
    return ticket


def order(lines: Lines) -> list[str]:
    """In which order they would have their turns on a lane that all may use."""
    taken = []
    while lines:
        ticket = lines.in_turn()[0].queue.pop()
        assert ticket is not None
        taken.append(ticket.request.id)
    return taken


@pytest.fixture
def lines() -> Lines:
    return Lines(10, 1.0)


def test_each_set_of_lanes_has_its_own_line(lines: Lines) -> None:
    waits(lines, A, "a1")
    waits(lines, BOTH, "ab1", priority=PARTIAL)
    assert lines.line_of(A) is lines.line_of(Route("a"))
    assert (len(lines), len(lines.line_of(A).queue), len(lines.line_of(B).queue)) == (2, 1, 0)
    assert (lines.wanted("a"), lines.wanted("b")) == ((1, 1), (0, 1))
    assert {ticket.request.id for ticket in lines.tickets} == {"a1", "ab1"}
    assert [line.route for line in lines.in_turn()] == [A, BOTH]


def test_accounts_take_turns_over_all_lines(lines: Lines) -> None:
    for n in range(3):
        waits(lines, A, f"flood{n}", "flood")
    for n in range(2):
        waits(lines, BOTH, f"x{n}", "x")
        waits(lines, BOTH, f"y{n}", "y")
    assert order(lines) == ["flood0", "x0", "y0", "flood1", "x1", "y1", "flood2"]


def test_finals_come_before_partials_of_another_line(lines: Lines) -> None:
    waits(lines, A, "partial", priority=PARTIAL)
    waits(lines, BOTH, "final")
    assert order(lines) == ["final", "partial"]


def test_what_ran_before_comes_before_what_never_did(lines: Lines) -> None:
    again = waits(lines, BOTH, "again")
    waits(lines, A, "new")
    assert lines.line_of(BOTH).queue.pop() is again
    lines.line_of(BOTH).queue.put_back(again)
    assert order(lines) == ["again", "new"]


def test_suspect_is_first_on_its_lane(lines: Lines) -> None:
    waits(lines, A, "new")
    suspect = waits(lines, A, "suspect")
    lines.line_of(A).queue.remove(suspect)
    suspect.crashes = SUSPECT_CRASHES
    lines.line_of(A).queue.put_back(suspect)
    assert (lines.suspects_of(A), lines.suspects_of(B)) == (True, False)
    assert order(lines) == ["suspect", "new"]


def test_waiting_tickets_are_routed_again(lines: Lines) -> None:
    stays, moves, ends = waits(lines, A, "stays"), waits(lines, BOTH, "moves"), waits(lines, B, "ends")
    routes = {"stays": A, "moves": A, "ends": Route()}
    assert lines.route_again(lambda ticket: routes[ticket.request.id]) == [ends]
    assert [ticket.route for ticket in (stays, moves, ends)] == [A, A, B]
    assert len(lines.line_of(A).queue) == 2
    lines.forget(A)
    assert [line.route for line in lines] == [A, B], "a line is not forgotten while somebody waits in it"
    lines.line_of(B).queue.remove(ends)
    lines.forget(A)
    assert [line.route for line in lines] == [A]


def test_an_account_is_counted_over_all_lines(lines: Lines) -> None:
    waits(lines, A, "a1", "x")
    waits(lines, B, "b1", "x")
    waits(lines, B, "b2", "y")
    assert lines.ahead_of_account(FINAL, "x") == 2


def test_newcomers_wait_for_their_own_lanes(lines: Lines) -> None:
    one, two = waits(lines, A, "one"), waits(lines, B, "two")
    for ticket in (one, two):
        lines.line_of(ticket.route).queue.remove(ticket)
    lines.append([one, two])
    assert [ticket.request.id for ticket in lines.line_of(A).queue] == ["one"]
    assert [ticket.request.id for ticket in lines.line_of(B).queue] == ["two"]


def test_who_is_routed_again_keeps_the_order(lines: Lines) -> None:
    for name in ("one", "two", "three"):
        waits(lines, BOTH, name)
    lines.route_again(lambda _: A)
    assert order(lines) == ["one", "two", "three"]


# ---------------------------------------------------------------- places that partials give up


class Situation:
    """What runs on two lanes of two slots each, and which finals wait."""

    def __init__(self) -> None:
        pool = HandPool(a=SteppedEngine(2), b=SteppedEngine(2))
        self.lanes = Lanes(pool, pool.lanes, lookahead=1, best_effort_share=1.0)
        self.lines = Lines(10, 1.0)

    def partial(self, lane: str, name: str) -> Ticket:
        ticket = admitted(priority=PARTIAL, name=name)
        self.lanes[lane].add(ticket)
        return ticket

    def final_waits(self, lanes: str) -> None:
        self.lines.line_of(Route(lanes)).queue.append([admitted()])

    def preempted(self) -> list[str]:
        return [ticket.request.id for ticket in to_preempt(self.lanes, self.lines)]


@pytest.fixture
def s() -> Situation:
    return Situation()


def test_nothing_is_taken_while_no_final_waits(s: Situation) -> None:
    s.partial("a", "a1")
    assert s.preempted() == []


def test_final_preempts_the_youngest_of_its_lanes(s: Situation) -> None:
    s.partial("a", "a1")
    s.partial("a", "a2")
    s.partial("b", "b1")
    s.final_waits("a")
    assert s.preempted() == ["a2"]
    s.final_waits("ab")
    assert s.preempted() == ["a2", "b1"]


def test_ending_partial_is_counted_once(s: Situation) -> None:
    s.partial("a", "a1")
    s.partial("a", "a2").given_up = Cancelled("by somebody")
    s.final_waits("a")
    assert s.preempted() == []
    s.final_waits("ab")
    assert s.preempted() == ["a1"]


def test_what_waits_inside_a_lane_takes_its_places_too(s: Situation) -> None:
    s.partial("a", "a1")
    for _ in range(2):
        s.lanes["a"].add(admitted())
    s.partial("b", "b1")
    assert s.preempted() == ["a1"]


# ---------------------------------------------------------------- the door


async def test_unmeasured_engine_refuses_nothing() -> None:
    usual(Scheduler, SteppedEngine(), max_waiting=2).door.check_unread("a")


async def test_certain_refusal_is_given_unread() -> None:
    scheduler = usual(Scheduler, SteppedEngine(max_running=1), max_waiting=2, lookahead=0)
    for n in range(2):
        scheduler.admit(f"m{n}", [request(f"r{n}")], account="a")
        scheduler.door.check_unread("a")
    scheduler.admit("m3", [request("r3")], account="a")
    with pytest.raises(Overloaded) as refused:
        scheduler.door.check_unread("a")
    assert refused.value.retry_after_ms


async def test_other_lanes_admit_unread_messages() -> None:
    pool = HandPool(a=SteppedEngine(1), b=SteppedEngine(1))
    late_s = 0.0
    scheduler = usual(
        Scheduler, pool, lanes=pool.lanes, max_waiting=1, max_queue_s=1.0, lookahead=0, lag_s=lambda: late_s
    )
    scheduler.admit("m", [request("r")])
    scheduler.door.check_unread("a")
    late_s = 1.0
    with pytest.raises(Overloaded, match="full"):
        scheduler.door.check_unread("a")
    with pytest.raises(Overloaded, match="full"):
        scheduler.admit("m", [request("s")])
    assert scheduler.admit("m", [request("t", priority=FINAL)], promised=True)


async def test_unasked_lanes_admit_unread_messages() -> None:
    a, b = SteppedEngine(1), SteppedEngine(1)
    a.pairs, b.pairs = EN_JA, EN_DE
    pool = HandPool(a=a, b=b)
    scheduler = usual(Scheduler, pool, lanes=pool.lanes, max_waiting=1, lookahead=0)
    scheduler.admit("m0", [request("r0")], account="a")
    scheduler.admit("m1", [request("r1")], account="a")
    with pytest.raises(Overloaded):
        scheduler.admit("m2", [request("r2")], account="a")
    scheduler.door.check_unread("a")


class Door:
    """Lets in what there is room for; nothing runs. chance: of the clients that try again, one number each."""

    def __init__(
        self, max_waiting: int, max_queue_s: float = 1.0, *, chance: Iterator[float] | None = None
    ) -> None:
        chances = chance or itertools.repeat(0.0)
        self.line = Line(Route(), itertools.count(1), max_waiting, max_queue_s, chance=lambda: next(chances))
        self.now_s = 0.0

    def serve(self, turns: int, interval_s: float) -> None:
        """So many turns come, one after another, while others wait."""
        for _ in range(turns):
            self.line.pace.waits(self.now_s, waits=True)
            self.now_s += interval_s
            self.line.pace.turn(self.now_s)

    def come(
        self,
        meeting: str,
        count: int = 1,
        priority: int = FINAL,
        free: int = 0,
        account: str | None = None,
        exempt: bool = False,
        late_s: float = 0.0,
    ) -> None:
        """Each meeting is another account's, unless one is given."""
        account = meeting if account is None else account
        new = Newcomers(account, meeting, priority, count)
        self.line.check(new, free=free, now_s=self.now_s, late_s=late_s, exempt=exempt)
        tickets = [admitted(meeting, priority, account, at_s=self.now_s) for _ in range(count)]
        for ticket in tickets:
            ticket.utterance = tickets[0].serial
        self.line.queue.append(tickets)


def test_one_meeting_may_not_fill_the_queue() -> None:
    door = Door(max_waiting=4)
    door.come("greedy", 2)
    with pytest.raises(
        Overloaded, match="2 translations of this meeting are waiting already; its share is 2"
    ) as full:
        door.come("greedy")
    assert full.value.retry_after_ms
    door.come("other", 2)
    with pytest.raises(Overloaded, match="4 translations are waiting already; the limit is 4"):
        door.come("third")


def test_many_meetings_leave_room_for_others() -> None:
    door = Door(max_waiting=16)
    for n in range(14):
        door.come(f"private {n}", account="crowd")
    with pytest.raises(Overloaded, match="14 translations of this address are waiting already; its share is 14"):
        door.come("private 14", account="crowd")
    door.come("m", account="somebody")
    door.come("n", account="somebody else")
    with pytest.raises(Overloaded, match="16 translations are waiting already; the limit is 16"):
        door.come("o", account="a third")


def test_what_may_run_at_once_needs_no_room() -> None:
    door = Door(max_waiting=0)
    door.come("m", 3, free=3)
    with pytest.raises(Overloaded):
        Door(max_waiting=0).come("m", 3, free=2)


def test_best_effort_never_shuts_out_finals() -> None:
    door = Door(max_waiting=8)
    door.come("m", 2, PARTIAL)
    with pytest.raises(Overloaded, match="share is 2"):
        door.come("m", 1, PARTIAL)
    door.come("n", 2, PARTIAL)
    with pytest.raises(Overloaded, match="limit is 4"):
        door.come("o", 1, PARTIAL)
    # Finals have all of their room, whatever best effort waits.
    door.come("m", 4)
    with pytest.raises(Overloaded, match="4 translations of this meeting are waiting already; its share is 4"):
        door.come("m")
    door.come("o", 4)
    with pytest.raises(Overloaded, match="8 translations are waiting already; the limit is 8"):
        door.come("p")
    assert len(door.line.queue) == 12


@given(
    st.integers(0, 12),
    st.lists(st.tuples(st.sampled_from("mno"), st.integers(1, 4), st.sampled_from((FINAL, PARTIAL, CATCHING_UP)))),
)
def test_the_queue_stays_within_its_bounds_whoever_comes(
    max_waiting: int, newcomers: list[tuple[str, int, int]]
) -> None:
    door = Door(max_waiting)
    for meeting, count, priority in newcomers:
        try:
            door.come(meeting, count, priority)
        except Overloaded:
            continue
    for priority, room in ((FINAL, max_waiting), (PARTIAL, max_waiting // 2), (CATCHING_UP, max_waiting // 2)):
        waiting = [ticket.meeting for ticket in door.line.queue if ticket.request.priority == priority]
        assert len(waiting) <= room
        for meeting in "mno":
            assert waiting.count(meeting) <= (room + 1) // 2


def test_who_would_wait_too_long_is_refused() -> None:
    door = Door(max_waiting=1_000, max_queue_s=0.95)
    door.serve(100, interval_s=0.1)
    for n in range(10):
        door.come(f"m{n}")
    with pytest.raises(Overloaded, match=r"10 translations would come before this, which takes 1.0 s"):
        door.come("late")
    door.come("exempt", exempt=True)
    door.come("lucky", free=1)


def test_many_languages_are_as_welcome_as_one() -> None:
    door = Door(max_waiting=1_000, max_queue_s=1.0)
    door.serve(100, interval_s=0.5)
    door.come("m", 20)
    with pytest.raises(Overloaded):
        door.come("m")


def test_accounts_take_turns_with_a_crowd() -> None:
    door = Door(max_waiting=1_000, max_queue_s=0.95)
    door.serve(100, interval_s=0.1)
    for n in range(10):
        door.come(f"private {n}", account="crowd")
    with pytest.raises(Overloaded):
        door.come("private 10", account="crowd")
    for _ in range(5):
        door.come("m", account="somebody")  # the last one waits for four of its own, and five of the crowd's
    with pytest.raises(Overloaded, match="11 translations would come before this"):
        door.come("m", account="somebody")
    door.come("n", account="somebody else")


def test_each_utterance_waits_a_round_of_others() -> None:
    door = Door(max_waiting=1_000, max_queue_s=0.95)
    door.serve(100, interval_s=0.1)
    for n in range(3):
        door.come(f"private {n}", count=2, account="crowd")
    door.come("m", account="crowd")
    # One of its own, and twice the six of the others: whoever has had a turn is there again.
    with pytest.raises(Overloaded, match="13 translations would come before this"):
        door.come("m", account="crowd")
    door.come("n", account="crowd")  # seven turns


def test_estimated_turns_are_bounded_by_waiting() -> None:
    door = Door(max_waiting=1_000)
    door.serve(100, 0.02)
    for n in range(10):
        door.come(f"other {n}")
    # Were all of the others there again after each turn, this would take 1.3 s; as it is, 0.3 s.
    for _ in range(6):
        door.come("m")


def test_late_loop_refuses_partials_then_finals() -> None:
    door = Door(max_waiting=1_000, max_queue_s=1.0)
    door.come("m", free=1, priority=PARTIAL, late_s=0.24)
    with pytest.raises(Overloaded, match="late"):
        door.come("m", free=1, priority=PARTIAL, late_s=0.25)
    door.come("m", free=1, late_s=0.25)
    with pytest.raises(Overloaded, match=r"0\.50 s late"):
        door.come("m", free=1, late_s=0.5)
    door.come("m", free=1, late_s=0.5, exempt=True)


@pytest.mark.parametrize(("meetings", "languages"), [(20, 1), (300, 1), (300, 3)])
def test_admitted_wait_no_longer_than_told(meetings: int, languages: int) -> None:
    """One address's meetings speak at random, three times as much as an engine carries that takes 100 a second."""
    chance, door, waits = random.Random(1), Door(max_waiting=10_000), list[float]()
    due_s = came_s = 0.0
    while due_s < 8:
        door.now_s = due_s
        while came_s <= due_s:
            came_s += chance.expovariate(300 / languages)
            with suppress(Overloaded):
                door.come(f"m{chance.randrange(meetings)}", languages, account="a")
        door.line.pace.waits(due_s, waits=bool(door.line.queue.finals))
        if (ticket := door.line.queue.pop()) is not None:
            door.line.pace.turn(due_s)
            waits.append(due_s - ticket.admitted_s)
        due_s += 0.01
    assert len(waits) >= 0.95 * 100 * 8
    assert sorted(waits)[int(0.99 * len(waits))] < 1.5


def test_best_effort_may_wait_half_as_long() -> None:
    door = Door(max_waiting=1_000, max_queue_s=0.95)
    door.serve(100, interval_s=0.1)
    for n in range(5):
        door.come(f"m{n}", priority=PARTIAL)
    with pytest.raises(Overloaded):
        door.come("late", priority=PARTIAL)
    door.come("final")


def test_without_waits_only_length_counts() -> None:
    door = Door(max_waiting=1_000, max_queue_s=0.1)
    door.serve(15, interval_s=1.0)
    for n in range(10):
        door.come(f"m{n}")


def refused(door: Door, meeting: str, **how: Any) -> int:
    """After how many milliseconds it may try again."""
    with pytest.raises(Overloaded) as full:
        door.come(meeting, **how)
    assert full.value.retry_after_ms is not None
    return full.value.retry_after_ms


def test_refused_finals_come_back_in_turn() -> None:
    door = Door(max_waiting=1_000, chance=itertools.cycle([0.0, 1.0]))
    door.serve(100, interval_s=0.5)
    door.come("m", 4)
    waits = [refused(door, "m") for _ in range(60)]
    # 2 s for those that wait, and then one each half second; every other one half as long again.
    assert waits[:6] == pytest.approx([2_500, 4_500, 3_500, 6_000, 4_500, 7_500], abs=1)
    assert waits[-2:] == [20_000, 30_000]
    # By then they have come back.
    door.now_s += 60
    assert refused(door, "m") == pytest.approx(2_500, abs=1)


def test_nobody_is_put_off_by_the_refusals_of_others() -> None:
    door = Door(max_waiting=1_000, max_queue_s=0.95)
    door.serve(100, interval_s=0.1)
    for n in range(10):
        door.come(f"private {n}", account="crowd")
    assert {refused(door, f"private {n}", priority=PARTIAL) for n in range(100)} == {1_000}
    assert [refused(door, "m", account="crowd") for _ in range(100)][-1] == pytest.approx(11_000, abs=1)
    for _ in range(5):
        door.come("m", account="somebody")
    assert refused(door, "m", account="somebody") == pytest.approx(1_300, abs=1)


def test_texts_of_a_call_are_no_queue_before_it() -> None:
    door = Door(max_waiting=1_000, max_queue_s=1.0)
    door.serve(100, interval_s=10.0)
    door.come("", 64, account="caller")
    with pytest.raises(Overloaded, match="64 translations would come before this"):
        door.come("", 2, account="caller")


def test_pace_counts_only_time_with_waiters() -> None:
    pace = TurnPace()
    for n in range(100):
        pace.turn(float(n))  # nobody waits: this says how many come, not how many could
    assert pace.interval_s == 0
    now_s = 1_000.0
    for _ in range(20):
        pace.waits(now_s, waits=True)
        for _ in range(4):  # the sequences that end in one step
            pace.turn(now_s + 0.2)
        now_s += 0.2
        pace.waits(now_s, waits=False)
        now_s += 3.0
    assert pace.interval_s == pytest.approx(0.05, rel=0.05)


@given(st.lists(st.floats(0.001, 1.0), min_size=200, max_size=300), st.floats(0.01, 0.2))
def test_the_pace_follows_the_engine(earlier: list[float], interval_s: float) -> None:
    pace, now_s = TurnPace(), 0.0
    pace.waits(now_s, waits=True)
    for each in (*earlier, *[interval_s] * round(30 / interval_s)):
        now_s += each
        pace.turn(now_s)
    assert pace.interval_s == pytest.approx(interval_s, rel=0.05)

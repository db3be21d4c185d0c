"""Lines: each set of lanes has its own queue, and accounts take turns over all that share a lane."""

from __future__ import annotations

import pytest

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import Cancelled, Overloaded
from gateway.translation.scheduling.lanes import Lanes, Route
from gateway.translation.scheduling.lines import Lines, to_preempt
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import FINAL, PARTIAL, SUSPECT_CRASHES, Ticket
from tests.translation.engines import EN_DE, EN_JA, HandPool, SteppedEngine, request
from tests.usual import usual

A, B, BOTH = Route("a"), Route("b"), Route("ab")
NUMBERS = iter(range(10**6))


def waits(lines: Lines, route: Route, name: str, account: str = "x", priority: int = FINAL) -> Ticket:
    request = TranslationRequest(id=name, text="x", source="en", target="ja", priority=priority)
    ticket = Ticket(next(NUMBERS), "m", request, 0.0, account)
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


def test_each_set_of_lanes_has_its_own_line() -> None:
    lines = Lines(10, 1.0)
    waits(lines, A, "a1")
    waits(lines, BOTH, "ab1", priority=PARTIAL)
    assert lines.of(A) is lines.of(Route("a"))
    assert (len(lines), len(lines.of(A).queue), len(lines.of(B).queue)) == (2, 1, 0)
    assert (lines.wanted("a"), lines.wanted("b")) == ((1, 1), (0, 1))
    assert {ticket.request.id for ticket in lines.tickets} == {"a1", "ab1"}
    assert [line.route for line in lines.in_turn()] == [A, BOTH]


def test_accounts_take_turns_over_all_lines() -> None:
    lines = Lines(10, 1.0)
    for n in range(3):
        waits(lines, A, f"flood{n}", "flood")
    for n in range(2):
        waits(lines, BOTH, f"x{n}", "x")
        waits(lines, BOTH, f"y{n}", "y")
    assert order(lines) == ["flood0", "x0", "y0", "flood1", "x1", "y1", "flood2"]


def test_finals_come_before_partials_of_another_line() -> None:
    lines = Lines(10, 1.0)
    waits(lines, A, "partial", priority=PARTIAL)
    waits(lines, BOTH, "final")
    assert order(lines) == ["final", "partial"]


def test_what_ran_before_comes_before_what_never_did() -> None:
    lines = Lines(10, 1.0)
    again = waits(lines, BOTH, "again")
    waits(lines, A, "new")
    assert lines.of(BOTH).queue.pop() is again
    lines.of(BOTH).queue.put_back(again)
    assert order(lines) == ["again", "new"]


def test_a_suspect_waits_for_one_lane_and_is_the_first_there() -> None:
    lines = Lines(10, 1.0)
    waits(lines, A, "new")
    suspect = waits(lines, A, "suspect")
    lines.of(A).queue.remove(suspect)
    suspect.crashes = SUSPECT_CRASHES
    lines.of(A).queue.put_back(suspect)
    assert (lines.suspects_of(A), lines.suspects_of(B)) == (True, False)
    assert order(lines) == ["suspect", "new"]


def test_what_waits_is_routed_again_when_lanes_come_and_go() -> None:
    lines = Lines(10, 1.0)
    stays, moves, ends = waits(lines, A, "stays"), waits(lines, BOTH, "moves"), waits(lines, B, "ends")
    routes = {"stays": A, "moves": A, "ends": Route()}
    assert lines.route_again(lambda ticket: routes[ticket.request.id]) == [ends]
    assert [ticket.route for ticket in (stays, moves, ends)] == [A, A, B]
    assert len(lines.of(A).queue) == 2
    lines.forget(A)
    assert [line.route for line in lines] == [A, B], "a line is not forgotten while somebody waits in it"
    lines.of(B).queue.remove(ends)
    lines.forget(A)
    assert [line.route for line in lines] == [A]


def test_an_account_is_counted_over_all_lines() -> None:
    lines = Lines(10, 1.0)
    waits(lines, A, "a1", "x")
    waits(lines, B, "b1", "x")
    waits(lines, B, "b2", "y")
    assert lines.ahead_of_account(FINAL, "x") == 2


def test_newcomers_of_one_call_wait_each_for_its_own_lanes() -> None:
    lines = Lines(10, 1.0)
    one, two = waits(lines, A, "one"), waits(lines, B, "two")
    for ticket in (one, two):
        lines.of(ticket.route).queue.remove(ticket)
    lines.append([one, two])
    assert [ticket.request.id for ticket in lines.of(A).queue] == ["one"]
    assert [ticket.request.id for ticket in lines.of(B).queue] == ["two"]


def test_who_is_routed_again_keeps_the_order() -> None:
    lines = Lines(10, 1.0)
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
        self._serial = 0

    def ticket(self, name: str, priority: int) -> Ticket:
        self._serial += 1
        final = priority == FINAL
        request = TranslationRequest(id=name, text="x", source="en", target="ja", priority=priority, final=final)
        return Ticket(self._serial, "m", request, 0.0)

    def partial(self, lane: str, name: str) -> Ticket:
        ticket = self.ticket(name, PARTIAL)
        self.lanes[lane].add(ticket)
        return ticket

    def final_waits(self, lanes: str) -> None:
        self.lines.of(Route(lanes)).queue.append([self.ticket("final", FINAL)])

    def preempted(self) -> list[str]:
        return [ticket.request.id for ticket in to_preempt(self.lanes, self.lines)]


def test_nothing_is_taken_while_no_final_waits() -> None:
    s = Situation()
    s.partial("a", "a1")
    assert s.preempted() == []


def test_a_final_takes_the_youngest_place_of_its_own_lanes() -> None:
    s = Situation()
    s.partial("a", "a1")
    s.partial("a", "a2")
    s.partial("b", "b1")
    s.final_waits("a")
    assert s.preempted() == ["a2"]
    s.final_waits("ab")
    assert s.preempted() == ["a2", "b1"]


def test_a_place_that_is_being_given_up_is_counted_once() -> None:
    s = Situation()
    s.partial("a", "a1")
    s.partial("a", "a2").given_up = Cancelled("by somebody")
    s.final_waits("a")
    assert s.preempted() == []
    s.final_waits("ab")
    assert s.preempted() == ["a1"]


def test_what_waits_inside_a_lane_takes_its_places_too() -> None:
    s = Situation()
    s.partial("a", "a1")
    for _ in range(2):
        s.lanes["a"].add(s.ticket("runs", FINAL))
    s.partial("b", "b1")
    assert s.preempted() == ["a1"]


# ---------------------------------------------------------------- the door


async def test_nobody_is_sent_away_unread_while_nothing_is_known() -> None:
    usual(Scheduler, SteppedEngine(), max_waiting=2).door.check_unread("a")


async def test_who_would_be_refused_whatever_it_says_is_refused_unread() -> None:
    scheduler = usual(Scheduler, SteppedEngine(max_running=1), max_waiting=2, lookahead=0)
    for n in range(2):
        scheduler.admit(f"m{n}", [request(f"r{n}")], account="a")
        scheduler.door.check_unread("a")
    scheduler.admit("m3", [request("r3")], account="a")
    with pytest.raises(Overloaded) as refused:
        scheduler.door.check_unread("a")
    assert refused.value.retry_after_ms


async def test_who_may_ask_for_what_another_engine_does_is_let_in() -> None:
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


async def test_nobody_is_sent_away_unread_who_may_ask_for_what_nobody_has_asked_for() -> None:
    a, b = SteppedEngine(1), SteppedEngine(1)
    a.pairs, b.pairs = EN_JA, EN_DE
    pool = HandPool(a=a, b=b)
    scheduler = usual(Scheduler, pool, lanes=pool.lanes, max_waiting=1, lookahead=0)
    scheduler.admit("m0", [request("r0")], account="a")
    scheduler.admit("m1", [request("r1")], account="a")
    with pytest.raises(Overloaded):
        scheduler.admit("m2", [request("r2")], account="a")
    scheduler.door.check_unread("a")

"""Lines: each set of lanes has its own queue, and accounts take turns over all that share a lane."""

from __future__ import annotations

from gateway.domain.engine import TranslationRequest
from gateway.translation.scheduling.lanes import Route
from gateway.translation.scheduling.lines import Lines
from gateway.translation.scheduling.ticket import FINAL, PARTIAL, SUSPECT_CRASHES, Ticket

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

"""Which partials give up their places: those of the lanes for which finals wait, the youngest first."""

from __future__ import annotations

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import Cancelled
from gateway.translation.scheduling.lanes import Lanes, Route
from gateway.translation.scheduling.lines import Lines
from gateway.translation.scheduling.preemption import to_preempt
from gateway.translation.scheduling.ticket import FINAL, PARTIAL, Ticket
from tests.translation.engines import HandPool, SteppedEngine


class Situation:
    """What runs on two lanes of two seats each, and which finals wait."""

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

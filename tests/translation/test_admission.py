"""When a newcomer is refused with `overloaded`: the whole queue, one meeting's share, and best effort's half."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import Overloaded
from gateway.translation.admission import Admission
from gateway.translation.ticket import CATCHING_UP, FINAL, PARTIAL, Ticket
from gateway.translation.turn_order import TurnQueue

_serials = itertools.count(1)


class Door:
    """Lets in what there is room for; nothing runs."""

    def __init__(self, max_waiting: int) -> None:
        self.queue = TurnQueue()
        self.admission = Admission(max_waiting)

    def come(
        self, meeting: str, count: int = 1, priority: int = FINAL, free: int = 0, account: str | None = None
    ) -> None:
        """Each meeting is another account's, unless one is given."""
        account = meeting if account is None else account
        self.admission.check(self.queue, account, meeting, priority, count, free)
        tickets = []
        for _ in range(count):
            serial = next(_serials)
            request = TranslationRequest(id=f"r{serial}", text="x", source="en", target="ja", priority=priority)
            tickets.append(Ticket(serial, meeting, request, 0.0, account))
        self.queue.append(tickets)


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


def test_however_many_meetings_an_account_has_others_find_room() -> None:
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
    assert len(door.queue) == 12


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
        waiting = [ticket.meeting for ticket in door.queue if ticket.request.priority == priority]
        assert len(waiting) <= room
        for meeting in "mno":
            assert waiting.count(meeting) <= (room + 1) // 2

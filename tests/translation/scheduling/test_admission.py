"""When a newcomer is refused with `overloaded`: the queue's length and time, shares, best effort's half."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import Overloaded
from gateway.translation.scheduling.admission import Admission, TurnPace
from gateway.translation.scheduling.ticket import CATCHING_UP, FINAL, PARTIAL, Ticket
from gateway.translation.scheduling.turn_order import TurnQueue

_serials = itertools.count(1)


class Door:
    """Lets in what there is room for; nothing runs. chance: of the clients that try again, one number each."""

    def __init__(
        self, max_waiting: int, max_queue_s: float = 1.0, *, chance: Iterator[float] | None = None
    ) -> None:
        self.queue = TurnQueue()
        chances = chance or itertools.repeat(0.0)
        self.admission = Admission(max_waiting, max_queue_s, chance=lambda: next(chances))
        self.now_s = 0.0

    def serve(self, turns: int, interval_s: float) -> None:
        """So many turns come, one after another, while others wait."""
        for _ in range(turns):
            self.admission.pace.waits(self.now_s, waits=True)
            self.now_s += interval_s
            self.admission.pace.turn(self.now_s)

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
        self.admission.check(
            *(self.queue, account, meeting, priority, count),
            free=free,
            now_s=self.now_s,
            late_s=late_s,
            exempt=exempt,
        )
        tickets = []
        for _ in range(count):
            serial = next(_serials)
            request = TranslationRequest(id=f"r{serial}", text="x", source="en", target="ja", priority=priority)
            tickets.append(Ticket(serial, meeting, request, self.now_s, account))
            tickets[-1].utterance = tickets[0].serial
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


def test_who_would_wait_too_long_is_refused() -> None:
    door = Door(max_waiting=1_000, max_queue_s=0.95)
    door.serve(100, interval_s=0.1)
    for n in range(10):
        door.come(f"m{n}")
    with pytest.raises(Overloaded, match=r"10 translations would come before this, which takes 1.0 s"):
        door.come("late")
    door.come("exempt", exempt=True)
    door.come("lucky", free=1)


def test_an_utterance_in_many_languages_is_as_welcome_as_one_in_one() -> None:
    door = Door(max_waiting=1_000, max_queue_s=1.0)
    door.serve(100, interval_s=0.5)
    door.come("m", 20)
    with pytest.raises(Overloaded):
        door.come("m")


def test_who_takes_turns_with_a_crowd_does_not_wait_for_all_of_it() -> None:
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


def test_who_waits_already_waits_a_round_of_the_other_meetings_for_each_utterance() -> None:
    door = Door(max_waiting=1_000, max_queue_s=0.95)
    door.serve(100, interval_s=0.1)
    for n in range(3):
        door.come(f"private {n}", count=2, account="crowd")
    door.come("m", account="crowd")
    # One of its own, and twice the six of the others: whoever has had a turn is there again.
    with pytest.raises(Overloaded, match="13 translations would come before this"):
        door.come("m", account="crowd")
    door.come("n", account="crowd")  # seven turns


def test_nobody_is_refused_for_many_more_turns_than_anybody_waits_for() -> None:
    door = Door(max_waiting=1_000)
    door.serve(100, 0.02)
    for n in range(10):
        door.come(f"other {n}")
    # Were all of the others there again after each turn, this would take 1.3 s; as it is, 0.3 s.
    for _ in range(6):
        door.come("m")


def test_while_the_event_loop_is_late_partials_are_refused_then_finals() -> None:
    door = Door(max_waiting=1_000, max_queue_s=1.0)
    door.come("m", free=1, priority=PARTIAL, late_s=0.24)
    with pytest.raises(Overloaded, match="late"):
        door.come("m", free=1, priority=PARTIAL, late_s=0.25)
    door.come("m", free=1, late_s=0.25)
    with pytest.raises(Overloaded, match=r"0\.50 s late"):
        door.come("m", free=1, late_s=0.5)
    door.come("m", free=1, late_s=0.5, exempt=True)


@pytest.mark.parametrize(("meetings", "languages"), [(20, 1), (300, 1), (300, 3)])
def test_beyond_the_limit_nobody_who_is_let_in_waits_much_longer_than_was_said(
    meetings: int, languages: int
) -> None:
    """One address's meetings speak at random, three times as much as an engine carries that takes 100 a second."""
    chance, door, waits = random.Random(1), Door(max_waiting=10_000), list[float]()
    due_s = came_s = 0.0
    while due_s < 8:
        door.now_s = due_s
        while came_s <= due_s:
            came_s += chance.expovariate(300 / languages)
            with suppress(Overloaded):
                door.come(f"m{chance.randrange(meetings)}", languages, account="a")
        door.admission.pace.waits(due_s, waits=bool(door.queue.finals))
        if (ticket := door.queue.pop()) is not None:
            door.admission.pace.turn(due_s)
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


def test_as_long_as_nobody_has_waited_only_the_length_counts() -> None:
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


def test_finals_that_are_refused_come_back_one_after_another() -> None:
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


def test_all_texts_of_a_batch_count() -> None:
    door = Door(max_waiting=1_000)
    door.serve(100, interval_s=0.1)
    door.come("m", 5)
    door.come("", 5, account="batch")
    with pytest.raises(Overloaded):
        door.come("", 20, account="another")


def test_the_pace_is_that_of_time_in_which_others_waited() -> None:
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

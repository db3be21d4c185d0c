"""Who is let in, of whom something is known already, and of whom nothing is."""

from __future__ import annotations

import pytest

from gateway.domain.errors import Overloaded
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import FINAL
from tests.translation.engines import HandPool, SteppedEngine
from tests.translation.scheduling.test_scheduler import EN_DE, EN_JA, request
from tests.usual import usual


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

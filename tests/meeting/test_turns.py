"""Whose turn it is: in any order, everybody is served, and who costs much waits for those who cost little."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.meeting import turns
from gateway.meeting.turns import Debts, Payer, Turns, Waiting
from tests.translation.stage import idle, until

CROWD, HONEST = Payer("crowd", "theirs", "ana"), Payer("honest", "ours", "bo")


class Told:
    """Turns by a clock that stands still, and what was done."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.turns = Turns(lambda: self.now_s)
        self.done: list[str] = []

    def do(self, what: str, payer: Payer = CROWD, cost_s: float = 0.0, key: str | None = None) -> None:
        self.turns.do(payer, cost_s, ("shown", key or what), lambda: self.done.append(what), 1_000)

    def waits(self, key: str, job: Any, payer: Payer = CROWD) -> None:
        self.is_past_its_budget(payer)
        self.turns.do(payer, 0.0, ("shown", key), job, 1_000)

    def is_past_its_budget(self, payer: Payer) -> None:
        self.turns.charge(payer, 1.0)


# ---------------------------------------------------------------- budgets


def test_who_owes_little_goes_on() -> None:
    debts = Debts(rate=0.5, most_s=2.0)
    debts.charge("ana", 2.0, now_s=0.0)
    assert debts.may_go_on("ana", 0.0)
    debts.charge("ana", 1.0, now_s=0.0)
    assert not debts.may_go_on("ana", 1.9)
    assert debts.may_go_on("ana", 2.0)
    assert debts.may_go_on("bo", 0.0)


def test_nobody_owes_for_long() -> None:
    debts = Debts(rate=0.5, most_s=2.0)
    for _ in range(1_000):
        debts.charge("ana", 1.0, now_s=0.0)
    assert debts.may_go_on("ana", 4.0)
    debts.sweep(8.0)
    assert len(debts) == 0


# ---------------------------------------------------------------- whose turn it is

PAYERS = [Payer(account, meeting, account) for account in "ab" for meeting in "mno"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["put", "take back"]), st.sampled_from(PAYERS), st.sampled_from("xyz")),
        st.tuples(st.sampled_from(["next", "sweep"]), st.just(PAYERS[0]), st.just("")),
    ),
    max_size=80,
)


@given(STEPS)
def test_the_newest_of_each_key_is_done_once(steps: list[tuple[str, Payer, str]]) -> None:
    waiting, expected, done = Waiting(), dict[tuple[Payer, str], int](), list[tuple[Payer, str, int]]()

    def serve() -> None:
        payer, job = waiting.next()
        job()
        waiting.charge(payer, 1.0)
        who, key, number = done[-1]
        assert (who, number) == (payer, expected.pop((who, key)))

    for number, (step, payer, key) in enumerate(steps):
        match step:
            case "put":
                job = lambda p=payer, k=key, n=number: done.append((p, k, n))  # noqa: E731
                waiting.put(payer, ("shown", key), job, 3)
                expected[payer, key] = number
            case "take back":
                taken = waiting.take_back(payer.meeting, payer.participant, ("shown", key))
                assert taken == (expected.pop((payer, key), None) is not None)
            case "next" if expected:
                serve()
            case "sweep":
                waiting.sweep()
        assert bool(waiting) == bool(expected)
        assert all(waiting.has(payer) for payer, _ in expected)
    while waiting:
        serve()
    assert not expected
    waiting.sweep()


@given(st.lists(st.sampled_from(PAYERS[:3]), min_size=1, max_size=3), st.floats(0.01, 5), st.floats(0.01, 5))
def test_an_account_has_its_share_however_many_meetings(
    meetings: list[Payer], theirs_s: float, mine_s: float
) -> None:
    waiting, served_s, me = Waiting(), {"a": 0.0, "b": 0.0}, Payer("b", "m", "b")
    for _ in range(200):
        for payer in (*meetings, me):
            waiting.put(payer, ("shown", "x"), lambda: None, 1)
        payer, job = waiting.next()
        job()
        cost_s = mine_s if payer == me else theirs_s
        waiting.charge(payer, cost_s)
        served_s[payer.account] += cost_s
        assert abs(served_s["a"] - served_s["b"]) <= 2 * max(theirs_s, mine_s)


def test_who_was_alone_for_long_has_no_debt_of_it() -> None:
    waiting, served = Waiting(), list[str]()

    def serve() -> None:
        payer, _ = waiting.next()
        waiting.charge(payer, 1.0)
        served.append(payer.account)

    for _ in range(100):
        waiting.put(CROWD, ("shown", "x"), lambda: None, 1)
        serve()
    for _ in range(10):
        waiting.put(CROWD, ("shown", "x"), lambda: None, 1)
        waiting.put(HONEST, ("shown", "x"), lambda: None, 1)
        serve()
    assert 4 <= served[100:].count("crowd") <= 6


# ---------------------------------------------------------------- in the event loop


async def test_what_costs_little_is_done_at_once() -> None:
    told = Told()
    for n in range(100):
        told.do(str(n))
    assert told.done == [str(n) for n in range(100)]


async def test_past_the_budget_the_newest_waits_for_its_turn() -> None:
    told = Told()
    told.is_past_its_budget(CROWD)
    for what, key in (("1", "u"), ("other", "v"), ("2", "u"), ("gone", "w")):
        told.do(what, key=key)
    assert told.turns.take_back("theirs", "ana", ("shown", "w"))
    assert not told.turns.take_back("theirs", "ana", ("shown", "w"))
    told.do("honest", HONEST)
    assert told.done == ["honest"]
    await idle()
    assert told.done == ["honest", "2", "other"]


async def test_what_waits_is_not_overtaken() -> None:
    told = Told()
    told.is_past_its_budget(CROWD)
    told.do("1")
    told.now_s = 1_000.0
    told.do("2")
    await idle()
    assert told.done == ["1", "2"]


async def test_many_meetings_of_one_account_wait_too() -> None:
    told = Told()
    for n in range(1_000):
        told.do(str(n), Payer("crowd", str(n), "ana"), cost_s=0.001)
    assert len(told.done) < 1_000
    told.do("honest", HONEST)
    assert told.done[-1] == "honest"
    await until(lambda: len(told.done) == 1_001)


async def test_others_have_their_turn_after_each_slice() -> None:
    told = Told()
    told.is_past_its_budget(CROWD)

    def works(what: str) -> None:
        told.now_s += turns._SLICE_S
        told.done.append(what)

    for n in range(3):
        told.waits(str(n), lambda n=n: works(str(n)))
    await asyncio.sleep(0)
    assert told.done == ["0"]
    await until(lambda: told.done == ["0", "1", "2"])


async def test_what_was_begun_ends_before_more_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_S", 3_600.0)
    told, ends = Told(), asyncio.Event()

    async def accept(what: str) -> None:
        told.done.append(what)
        await ends.wait()

    async with asyncio.TaskGroup() as tasks:
        for n in range(6):
            told.waits(str(n), lambda n=n: tasks.create_task(accept(str(n))))
        await idle()
        assert told.done == ["0"]
        ends.set()
        await until(lambda: len(told.done) == 6)


async def test_what_never_ends_holds_up_nobody_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_S", 0.0)
    told, ends = Told(), asyncio.Event()

    async def accept() -> None:
        await ends.wait()

    async with asyncio.TaskGroup() as tasks:
        for n in range(4):
            told.waits(str(n), lambda: tasks.create_task(accept()))
        told.waits("u", lambda: told.done.append("honest"), HONEST)
        await until(lambda: told.done == ["honest"])
        ends.set()


async def test_one_that_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    told.waits("u", lambda: 1 / 0, CROWD)
    told.waits("v", lambda: told.done.append("v"), CROWD)
    await until(lambda: told.done == ["v"])
    assert "ZeroDivisionError" in caplog.text


async def test_after_the_end_nothing_is_done() -> None:
    told = Told()
    told.waits("u", lambda: told.done.append("u"), CROWD)
    told.turns.close()
    await idle()
    assert told.done == []


async def test_who_costs_nothing_is_forgotten() -> None:
    told = Told()
    for n in range(50):
        told.do(str(n), Payer(str(n), str(n), "ana"), cost_s=10.0)
        told.do(f"{n} again", Payer(str(n), str(n), "ana"))
    await until(lambda: len(told.done) == 100)
    told.now_s = 1_000.0
    told.turns.sweep()
    mine = told.turns
    assert (len(mine._of_meetings), len(mine._of_accounts)) == (0, 0)
    assert len(mine._waiting._accounts) + len(mine._waiting._meetings) == 0


async def test_who_waited_once_is_forgotten() -> None:
    told = Told()
    told.is_past_its_budget(CROWD)
    for n in range(50):
        told.waits(str(n), lambda: None, Payer(str(n), str(n), "ana"))
        await until(lambda: told.turns._next is None)
    assert len(told.turns._waiting._accounts) + len(told.turns._waiting._meetings) == 0


async def test_of_each_kind_the_oldest_goes() -> None:
    told = Told()
    told.is_past_its_budget(CROWD)
    for n in range(5):
        for kind in ("heard", "withdrawn"):
            told.turns.do(CROWD, 0.0, (kind, n), lambda k=kind, n=n: told.done.append(f"{k} {n}"), 2)  # type: ignore[misc]
    await idle()
    assert told.done == ["heard 3", "withdrawn 3", "heard 4", "withdrawn 4"]


async def test_what_waits_is_found_whatever_the_account() -> None:
    told, later = Told(), Payer("another address", CROWD.meeting, CROWD.participant)
    told.is_past_its_budget(CROWD)
    told.do("1", CROWD, key="u")
    told.now_s = 1_000.0
    told.do("2", later, key="u")
    told.do("other", later)
    assert told.done == []
    assert told.turns.take_back(CROWD.meeting, CROWD.participant, ("shown", "u"))
    await idle()
    assert told.done == ["other"]


async def test_participants_of_a_meeting_take_turns() -> None:
    told = Told()
    told.is_past_its_budget(CROWD)
    for what in ("1", "2", "3"):
        told.do(what)
    told.do("bo", CROWD._replace(participant="bo"))
    await idle()
    assert told.done == ["1", "bo", "2", "3"]

"""Who gets a thread that accounts share, and when."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest

from gateway.domain.errors import Draining, RateLimited
from gateway.server.guard import fair_thread
from gateway.server.guard.fair_thread import FairThread


class Stage:
    """A thread whose work takes as long as it is told to, by a clock of its own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.thread = FairThread("test", clock=lambda: self.now_s)
        self.done: list[str] = []

    def work(self, account: str, seconds: float = 1.0, error: Exception | None = None) -> asyncio.Task[None]:
        def work() -> None:
            self.now_s += seconds
            self.done.append(account)
            if error is not None:
                raise error

        return asyncio.create_task(self.thread.run(account, work))


async def asked(*tasks: asyncio.Task[Any]) -> list[Any]:
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_work_is_done_in_a_thread_of_its_own() -> None:
    thread = FairThread("test")
    assert await thread.run("a", threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await thread.run("a", lambda: 1 // 0)
    assert await thread.run("a", lambda: 1) == 1


async def test_flood_of_one_account_waits_behind_its_own() -> None:
    stage = Stage()
    flood = [stage.work("flood") for _ in range(20)]
    await asyncio.sleep(0)
    await asked(*flood, stage.work("a"), stage.work("b"))
    assert stage.done[:3] == ["flood", "a", "b"]


async def test_what_waits_can_be_refused() -> None:
    stage = Stage()
    running, refused, given_up = [stage.work(each) for each in ("running", "refused", "given up")]
    await asyncio.sleep(0)
    stage.thread.refuse_waiting(Draining("It stops."))
    given_up.cancel()
    found = await asked(running, refused, given_up)
    assert [type(each) for each in found] == [type(None), Draining, asyncio.CancelledError]
    await stage.work("next")
    assert stage.done == ["running", "next"]


async def test_turns_are_shared_by_time() -> None:
    stage = Stage()
    await asked(*(stage.work("long", 3.0) for _ in range(3)), *(stage.work("short", 1.0) for _ in range(6)))
    assert stage.done == [*["long", *["short"] * 3] * 2, "long"]


async def test_work_that_fails_is_charged() -> None:
    stage = Stage()
    tasks = [stage.work("bad", 3.0, error=ValueError()) for _ in range(3)]
    await asked(*tasks, *(stage.work("good") for _ in range(3)))
    assert stage.done == ["bad", "good", "good", "good", "bad", "bad"]


async def test_who_was_away_has_saved_no_turns() -> None:
    stage = Stage()
    await asked(*(stage.work("busy") for _ in range(20)))
    await asked(*(stage.work(account) for account in ["busy"] * 3 + ["new"] * 3))
    assert stage.done[20:] == ["busy", "new"] * 3


async def test_too_many_of_one_account_are_refused() -> None:
    stage = Stage()
    tasks = [stage.work("flood") for _ in range(fair_thread._MOST_WAITING + 3)]
    others = stage.work("a")
    outcomes = await asked(*tasks, others)
    refused = [each for each in outcomes if isinstance(each, RateLimited)]
    assert len(refused) == 2
    assert refused[0].retry_after_ms
    assert "a" in stage.done


async def test_begun_calls_are_finished_first() -> None:
    thread, done = FairThread("test"), list[str]()

    async def call(name: str) -> None:
        await thread.run("a", lambda: done.append(f"{name} begins"))
        await thread.run("a", lambda: done.append(f"{name} ends"), goes_on=True)

    calls = [asyncio.create_task(call(str(n))) for n in range(fair_thread._MOST_WAITING)]
    await asyncio.gather(*calls)
    under_way = list(itertools.accumulate(1 if each.endswith("begins") else -1 for each in done))
    assert len(under_way) == 2 * len(calls)
    assert max(under_way) <= 2


async def test_who_leaves_the_queue_holds_up_nobody() -> None:
    stage = Stage()
    first, leaving, last = stage.work("a"), stage.work("a"), stage.work("a")
    await asyncio.sleep(0)
    leaving.cancel()
    await asked(first, leaving, last)
    assert leaving.cancelled()
    assert stage.done == ["a", "a"]
    # Also one whose turn has just come.
    async with stage.thread.turn("b"):
        gone, waits = stage.work("c"), stage.work("d")
        await asyncio.sleep(0)
    gone.cancel()
    await asked(gone, waits)
    assert stage.done[2:] == ["d"]
    # Also one that is cancelled right before its turn comes.
    async with stage.thread.turn("e"):
        gone, waits = stage.work("f"), stage.work("g")
        await asyncio.sleep(0)
        gone.cancel()
    await asked(gone, waits, stage.work("h"))
    assert stage.done[3:] == ["g", "h"]


async def test_accounts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_thread, "_MOST_ACCOUNTS", 3)
    stage = Stage()
    for n in range(50):
        await stage.work(f"account {n}", 0.0)
    assert len(stage.thread._spent_s) <= 4

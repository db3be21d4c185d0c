"""The driver with its client processes, its verdict on itself, and how lines and loads are split over them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadtest.driving.driver import Driven, bottleneck, driver, split_lines, split_load
from loadtest.driving.requests import Lag, Tally
from loadtest.results import LoadtestError
from loadtest.trial.values import (
    Closed,
    Delivered,
    EngineInProcess,
    InMeetings,
    Line,
    Load,
    Open,
    ProcessUse,
    Record,
    WebSocketGateway,
)
from tests.gateways import running
from tests.patience import until
from tests.processes import alive

ROOT = Path(__file__).parents[2]
SIMULATED: dict[str, Any] = {"engine": {"kind": "simulated", "script": {"first_token_s": 0.002, "token_s": 0.002}}}


def lines(count: int, text: str = "one two three", **fields: Any) -> list[Line]:
    return [Line(f"line {n}", text, "en", ("de",), **fields) for n in range(count)]


def quiet(_: str) -> None:
    pass


def test_closed_loop_lines_go_with_their_sessions() -> None:
    shares = split_load(Closed(25), 4)
    assert shares == [Closed(7), Closed(6), Closed(6), Closed(6)]
    assert split_load(Closed(3), 4) == [Closed(1), Closed(1), Closed(1), Closed(0)]
    parts = split_lines(lines(250), Closed(25), 4)
    assert [len(part) for part in parts] == [70, 60, 60, 60]
    assert sorted(line.id for part in parts for line in part) == sorted(line.id for line in lines(250))


def test_open_loop_lines_take_turns() -> None:
    line = Line("a", "hello", "en", ("de", "fr", "ja"), due_s=1.5)
    first, second = split_lines([line], Open(10.0), 2)
    assert [each.targets for each in first] == [("de",), ("ja",)]
    assert [(each.targets, each.due_s) for each in second] == [(("fr",), 1.5)]
    assert split_load(Open(10.0), 2) == [Open(5.0), Open(5.0)]
    assert split_load(Open(10.0, retries=True), 2) == [Open(5.0, retries=True)] * 2


def test_every_process_knows_all_of_the_meetings() -> None:
    load = InMeetings(meetings=1, speakers=2, per_s=1.0)
    said = [Line("a", "hello", "en", ("de", "fr"), meeting="m", speaker="s")]
    assert split_load(load, 3) == [load] * 3
    assert split_lines(said, load, 3) == [said] * 3


def test_lag_is_in_milliseconds_never_negative() -> None:
    lag = Lag()
    for late_s in [n / 1000 for n in range(100)]:
        lag.late(late_s)
    assert lag.use(1.0, 2.0) == ProcessUse(1.0, 2.0, lag_p99_ms=98.0, lag_max_ms=99.0)
    assert Lag().use(0.0, 1.0).lag_max_ms == 0.0
    lag = Lag()
    lag.late(-5.0)
    assert lag.use(0.0, 1.0).lag_max_ms == 0.0


def test_a_stall_counts_as_it_lasts() -> None:
    lag = Lag()
    for _ in range(3):
        lag.held_up(0.4)
    # 12.9 s at a hundred looks a second, less the 117 that the stalls kept from being made.
    for _ in range(1_290 - 3 * 40):
        lag.held_up(0.0005)
    use = lag.use(0.0, 12.9)
    # A hundredth of the time is 129 ms, the last 43 ms of each stall's beginning.
    assert use.lag_p99_ms == pytest.approx(400 - 40, abs=10)
    assert use.lag_max_ms == 400


async def test_a_held_up_event_loop_is_late() -> None:
    lag = Lag()
    watching = asyncio.create_task(lag.watch())
    await asyncio.sleep(0.02)
    time.sleep(0.1)  # noqa: ASYNC251 -- as something that computes would
    await asyncio.sleep(0.02)
    watching.cancel()
    assert lag.use(0.0, 1.0).lag_max_ms > 80


def test_a_process_samples_many_finals() -> None:
    tally = Tally(0.0, keep_text=False, processes=4)
    for ms in range(50_000):
        tally.finals.add(float(ms))
    delivered = tally.delivered()
    assert delivered.finals == 50_000
    assert len(delivered.final_ms) == 5_000
    # Not the first ones, nor the last.
    mean = sum(delivered.final_ms) / 5_000
    assert 24_000 < mean < 26_000


def driven(first_ms: float = 100.0, **use: float) -> Driven:
    fields = {"cpu_s": 1.0, "elapsed_s": 10.0, "lag_p99_ms": 2.0, "lag_max_ms": 50.0, **use}
    records = [Record(str(n), "de", float(n), float(n), n + first_ms / 1000, n + 1.0) for n in range(5)]
    idle = ProcessUse(0.1, 10.0, 0.2, 0.3)
    return Driven(0.0, 10.0, records, Delivered(), [idle, ProcessUse(**fields)])


@pytest.mark.parametrize(
    ("played", "load", "said"),
    [
        (driven(), Closed(4), None),
        (driven(cpu_s=8.5, lag_p99_ms=10.0), Open(4.0), None),
        (replace(driven(), records=[]), Open(4.0), None),
        (
            driven(cpu_s=8.6),
            Closed(4),
            "86% of a core (at most 85%); take more client processes, or fewer",
        ),
        (
            driven(lag_p99_ms=10.1),
            Open(4.0),
            "late by 10.1 ms (p99; at most 10.0 ms); take more",
        ),
        # Where everything is slow more lag is allowed.
        (driven(first_ms=1_000.0, lag_p99_ms=49.0), Open(4.0), None),
        (driven(first_ms=1_000.0, lag_p99_ms=51.0), Open(4.0), "late by 51.0 ms"),
        # A client that holds the engine is the system.
        (replace(driven(cpu_s=9.9, lag_p99_ms=500.0), holds_engine=True), Closed(4), None),
    ],
)
def test_a_slow_driver_was_the_limit(played: Driven, load: Load, said: str | None) -> None:
    sentence = bottleneck(played, load)
    assert (sentence is None) == (said is None)
    assert (said or "") in (sentence or "")


# ---------------------------------------------------------------- with processes


@pytest.mark.slow
async def test_two_processes_play_twice_to_a_gateway() -> None:
    said: list[str] = []
    async with running() as gateway:
        address = WebSocketGateway(f"http://127.0.0.1:{gateway.port}")
        async with driver(address, Closed(4), processes=2, say=said.append) as crowd:
            assert len(crowd.pids) == 2
            first = await crowd.play(lines(20), limit_s=300.0)
            again = await crowd.play(lines(40, "one SLOW"), limit_s=300.0, keep_text=True, stage="again")
            pids = crowd.pids
    assert Counter(record.line for record in first.records) == Counter(f"line {n}" for n in range(20))
    for record in first.records:
        assert record.failed is None
        assert record.due_s == record.sent_s
        assert record.first_s is not None
        assert record.done_s is not None
        assert 0 <= record.sent_s < record.first_s <= record.done_s <= first.elapsed_s
        assert (record.tokens, record.text) == (4, "")
    assert {record.text for record in again.records} == {"[de] one SLOW"}
    # Each process began its last line when it had nothing else left to send.
    last_s = max(record.sent_s for record in first.records)
    assert first.ran_out_s is not None
    assert 0 < first.ran_out_s <= last_s + 0.001
    assert first.delivered.finals == 20
    assert len(first.delivered.final_ms) == 20
    # For each line at least the acceptance, a delta and the final.
    assert first.delivered.frames >= 60
    assert first.delivered.bytes > 60 * 50
    assert len(first.clients) == 2
    assert all(use.elapsed_s > 0 and use.cpu_s > 0 for use in first.clients)
    assert any(line.startswith("again: ") and " done, 0 errors" in line for line in said)
    assert not any(map(alive, pids))


@pytest.mark.slow
async def test_two_drivers_hold_meetings_of_their_own() -> None:
    load = InMeetings(meetings=1, speakers=1, per_s=10, readers=2)
    said = lines(3, due_s=0.1, meeting="m", speaker="one")
    async with running() as gateway:
        address = WebSocketGateway(f"http://127.0.0.1:{gateway.port}")
        async with (
            driver(address, load, processes=1, say=quiet) as one,
            driver(address, load, processes=2, say=quiet) as other,
        ):
            played = await asyncio.gather(*(crowd.play(said, limit_s=300.0) for crowd in (one, other)))
            # One each, in which both processes of the other are.
            assert len(gateway.gateway.sessions.rooms) == 2
    for driven in played:
        assert [record.failed for record in driven.records] == [None] * 3
        # The speaker's and two readers'.
        assert driven.delivered.finals == 9


@pytest.mark.slow
async def test_the_engine_alone_is_the_system() -> None:
    async with driver(EngineInProcess(SIMULATED), Closed(4), processes=3, say=quiet) as crowd:
        assert len(crowd.pids) == 1
        played = await crowd.play(lines(8), limit_s=300.0)
    assert played.holds_engine
    assert [record.failed for record in played.records] == [None] * 8


@pytest.mark.slow
async def test_unfinished_lines_fail_at_the_limit() -> None:
    async with running() as gateway:
        address = WebSocketGateway(f"http://127.0.0.1:{gateway.port}")
        async with driver(address, Open(10.0), processes=1, say=quiet) as crowd:
            a, b = Line("a", "one", "en", ("de",)), Line("b", "STALL", "en", ("de",))
            limit_s = 1.0
            failed: dict[str, str | None] = {"a": "time limit"}
            # Until it is long enough on this machine for the one that does not stall.
            while failed["a"] == "time limit":
                played = await crowd.play([a, b], limit_s=limit_s)
                failed, limit_s = {record.line: record.failed for record in played.records}, 2 * limit_s
            assert failed == {"a": None, "b": "time limit"}
            # What was left behind does not come back.
            again = await crowd.play(lines(2), limit_s=300.0)
            assert [record.failed for record in again.records] == [None, None]


@pytest.mark.slow
async def test_a_killed_client_process_ends_the_pass() -> None:
    async with running() as gateway:
        address = WebSocketGateway(f"http://127.0.0.1:{gateway.port}")
        async with driver(address, Closed(2), processes=2, say=quiet) as crowd:
            playing = asyncio.create_task(crowd.play(lines(4, "STALL"), limit_s=300.0))
            await until(lambda: gateway.gateway.scheduler.running >= 2)  # of each process one
            os.kill(crowd.pids[1], signal.SIGKILL)
            with pytest.raises(LoadtestError, match="A client process ended before its time"):
                await playing
            pids = crowd.pids
    assert not any(map(alive, pids))


@pytest.mark.slow
async def test_where_nothing_listens_there_is_one_sentence() -> None:
    with pytest.raises(LoadtestError, match="No gateway answers at"):
        async with driver(WebSocketGateway("http://127.0.0.1:9"), Closed(2), processes=1, say=quiet):
            pass


PARENT = """
import asyncio, sys
from loadtest.driving.driver import driver
from loadtest.trial.values import Closed, Line, WebSocketGateway

async def main():
    lines = [Line(str(n), "STALL", "en", ("de",)) for n in range(4)]
    async with driver(WebSocketGateway(sys.argv[1]), Closed(4), processes=2, say=lambda _: None) as crowd:
        print(*crowd.pids, flush=True)
        await crowd.play(lines, limit_s=300.0)

asyncio.run(main())
"""


@pytest.mark.slow
async def test_client_processes_end_with_their_parent() -> None:
    async with running() as gateway:
        parent = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PARENT, f"http://127.0.0.1:{gateway.port}"), stdout=subprocess.PIPE, cwd=ROOT
        )
        assert parent.stdout is not None
        pids = [int(pid) for pid in (await parent.stdout.readline()).split()]
        assert len(pids) == 2
        assert all(map(alive, pids))
        await until(lambda: gateway.gateway.scheduler.running >= 4)  # all that is said
        parent.kill()
        await parent.wait()
        while any(map(alive, pids)):
            await asyncio.sleep(0.05)

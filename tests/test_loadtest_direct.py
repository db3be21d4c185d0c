"""The whole measurement in seconds: the simulated engine, a real socket, a real client process."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loadtest.direct import Plan, measure
from loadtest.results import LoadtestError, Route
from loadtest.speakers import speakers

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SMALL = Plan(engine="simulated", in_flight=(2,), utterances=4, repetitions=3)


async def test_both_routes_translate_the_same_list_in_turn() -> None:
    said: list[str] = []
    result = await measure(SMALL, "a command", said.append)
    direct, websocket = Route.DIRECT, Route.WEBSOCKET
    assert [each.route for each in result.rounds] == [direct, websocket, websocket, direct, direct, websocket]
    assert [each.repetition for each in result.rounds] == [1, 1, 2, 2, 3, 3]
    assert {each.failed for each in result.rounds} == {0}
    # One word is one token of the simulated engine, on either route.
    assert len({each.tokens for each in result.rounds}) == 1
    assert {len(each.first_token_ms) for each in result.rounds} == {32}
    (level,) = result.levels
    assert level.same_text == 1.0
    assert level.direct.client_cpu_s_per_1000_tokens.high == 0
    assert level.websocket.client_cpu_s_per_1000_tokens.low > 0
    stages = [line.partition(",")[2] for line, _ in itertools.groupby(said)]
    assert any("websocket" in stage for stage in stages)


async def test_a_model_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(LoadtestError, match="no model at"):
        await measure(Plan(model="./nowhere"), "a command", lambda _line: None)


async def test_what_takes_too_long_is_given_up() -> None:
    plan = Plan(engine="simulated", in_flight=(1,), utterances=1_000, time_limit_s=2.0)
    with pytest.raises(LoadtestError, match="time limit"):
        await measure(plan, "a command", lambda _line: None)


async def test_a_client_process_that_finds_no_gateway_says_so() -> None:
    with pytest.raises(LoadtestError, match="No gateway answers"):
        async with speakers("http://127.0.0.1:9", 1, "en", "de"):
            pass


async def test_the_command_writes_a_report(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "loadtest", "direct", "--engine", "simulated", "--out", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--in-flight", "2", "--repetitions", "1"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    stdout, stderr = await process.communicate()
    assert process.returncode == 0, stderr.decode()
    assert stdout.decode().startswith((tmp_path / "table.md").read_text())
    assert "repetition 1 of 1" in stderr.decode()
    assert json.loads((tmp_path / "result.json").read_text())["levels"][0]["in_flight"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_and_its_client_process(number: signal.Signals, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "loadtest", "direct", "--engine", "simulated", "--out", str(tmp_path)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert process.stdout is not None
    while b"websocket" not in await process.stderr.readline():
        pass
    process.send_signal(number)
    # The client process has the same standard error: its end is the end of both.
    assert b"interrupted" in await process.stderr.read()
    assert await process.wait() == 130
    assert not os.listdir(tmp_path)


def test_a_wrong_option_is_answered_with_the_range() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loadtest", "direct", "--out", "nowhere", "--in-flight", "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "between 1 and 1024" in done.stderr

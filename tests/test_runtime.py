"""How a process of the gateway runs: short pauses, a log that says what is worth it, and how late it is."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime import (
    EventLoopLag,
    LogStyle,
    cancelled,
    log_style,
    log_to,
    settle_interpreter,
    style_for,
    within,
)


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    thresholds, interval_s = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval_s)


def test_threads_switch_within_a_millisecond() -> None:
    settle_interpreter()
    assert sys.getswitchinterval() == pytest.approx(0.001)


def test_garbage_collection_passes_are_short() -> None:
    settle_interpreter()
    first, second, _ = gc.get_threshold()
    assert first * second <= 50_000


def test_log_has_a_line_for_each_event() -> None:
    terminal = io.StringIO()
    log_to(terminal, LogStyle("INFO"))
    log_to(terminal, LogStyle("INFO"))
    logging.getLogger("gateway.sessions").info("session %s started", "a")
    logging.getLogger("gateway.sessions").debug("nobody asked")
    assert [line.partition(" INFO ")[2] for line in terminal.getvalue().splitlines()] == [
        "gateway.sessions: session a started"
    ]


def test_json_log_has_an_object_a_line() -> None:
    terminal = io.StringIO()
    said = log_to(terminal, LogStyle("INFO", "json"), who="worker 2")
    assert log_style() == (logging.INFO, "json")
    logging.getLogger("gateway.x").info("%d ended", 3, extra={"fields": {"event": "websocket"}})
    try:
        raise ValueError("a bug")
    except ValueError:
        logging.getLogger("gateway.x").exception("it failed")
    said.write("Loading; ")
    said.write("wait.\nReady: http://127.0.0.1\n")
    ended, failed, *told = [json.loads(line) for line in terminal.getvalue().splitlines()]
    assert datetime.fromisoformat(ended.pop("time")).tzinfo is not None
    assert ended == {
        "level": "info",
        "logger": "gateway.x",
        "process": "worker 2",
        "message": "3 ended",
        "event": "websocket",
    }
    assert failed["level"] == "error"
    assert failed["exception"].endswith("ValueError: a bug")
    assert [line["message"] for line in told] == ["Loading; wait.", "Ready: http://127.0.0.1"]
    assert said.isatty() is False
    assert log_to(terminal, LogStyle("INFO")) is terminal
    assert log_style() == (logging.INFO, "text")


@pytest.mark.parametrize(
    "line",
    [
        "Invalid HTTP request received.",
        "Invalid UTF-8 sequence received from client.",
        "Unsupported upgrade request.",
    ],
)
def test_clients_cannot_fill_the_log(line: str) -> None:
    terminal = io.StringIO()
    log_to(terminal, LogStyle("INFO"))
    logging.getLogger("uvicorn.error").warning(line)
    assert terminal.getvalue() == ""


def test_file_limit_is_raised() -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128));"
        "from gateway.runtime import raise_file_limit;"
        "print(raise_file_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["128", "128", "128"]


def test_refused_handshakes_are_not_logged() -> None:
    terminal, server = io.StringIO(), logging.getLogger("uvicorn.error")
    server.setLevel("INFO")
    log_to(terminal, LogStyle("INFO"))
    server.info("Started server process")
    server.error("ASGI callable returned without completing handshake.")
    server.error("something else")
    assert [line.partition(" ERROR ")[2] for line in terminal.getvalue().splitlines()] == [
        "uvicorn.error: something else"
    ]


# How late the event loop is


@given(late_s=st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_the_mean_lies_between_none_and_the_greatest(late_s: list[float]) -> None:
    lag = EventLoopLag()
    for each_s in late_s:
        lag.late(each_s)
        assert 0 <= lag.mean_s <= max(late_s) * (1 + 1e-9)


def test_lag_follows_and_forgets() -> None:
    told: list[float] = []
    lag = EventLoopLag(told.append)
    for _ in range(100):
        lag.late(0.02)
    assert lag.mean_s == pytest.approx(0.02, rel=0.01)
    for _ in range(100):
        lag.late(0.0)
    assert lag.mean_s < 0.001
    assert told == [0.02] * 100 + [0.0] * 100


def test_standstill_of_a_second_weighs_a_second() -> None:
    lag = EventLoopLag()
    for _ in range(20):
        lag.late(0.0)
    lag.late(1.0)
    assert lag.mean_s > 0.5


async def test_blocked_loop_is_late() -> None:
    lag = EventLoopLag()
    with lag:
        await asyncio.sleep(0)
        time.sleep(0.3)  # noqa: ASYNC251 -- somebody's long computation
        while not lag.mean_s:
            await asyncio.sleep(0)
    assert lag.mean_s > 0.01


async def test_who_is_cancelled_has_ended_by_then() -> None:
    ended = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            ended.append(True)

    task = asyncio.create_task(slow())
    await asyncio.sleep(0)
    await cancelled(task)
    assert ended == [True]


async def test_it_looks_no_more_once_it_is_left() -> None:
    lag = EventLoopLag()
    with lag:
        pass
    time.sleep(0.1)  # noqa: ASYNC251 -- a look would be due
    for _ in range(3):
        await asyncio.sleep(0)
    assert lag.mean_s == 0


@pytest.mark.parametrize(
    ("given", "is_terminal", "format"),
    [("auto", True, "text"), ("auto", False, "json"), ("text", False, "text"), ("json", True, "json")],
)
def test_log_format_suits_the_terminal(
    given: Literal["auto", "text", "json"], is_terminal: bool, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: is_terminal)
    assert style_for(terminal, "info", given) == ("INFO", format)


async def test_within_waits_no_longer() -> None:
    assert await within(5, asyncio.sleep(0))
    assert not await within(0.01, asyncio.Event().wait())

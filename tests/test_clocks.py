"""Waiting takes no time, and keeps its order; sockets and threads are waited for."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests.clocks import run_swiftly, swiftly


def test_hours_pass_at_once_and_in_their_order() -> None:
    woken: list[str] = []

    async def sleeper(name: str, hours: int) -> None:
        await asyncio.sleep(hours * 3_600)
        woken.append(name)

    async def everybody() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.gather(sleeper("late", 3), sleeper("early", 1))
        assert time.monotonic() == loop.time()
        return began_s, loop.time()

    began_s, ended_s = run_swiftly(everybody())
    assert woken == ["early", "late"]
    assert ended_s - began_s == pytest.approx(3 * 3_600)
    assert time.monotonic() < ended_s


@swiftly
async def test_thread_is_waited_for() -> None:
    go_on = threading.Event()
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    loop.call_soon(go_on.set)
    async with asyncio.timeout(0.001):
        await asyncio.to_thread(go_on.wait)
    assert loop.time() == began_s


@swiftly
async def test_what_a_socket_brings_comes_before_any_timer() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server, asyncio.timeout(3_600):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()

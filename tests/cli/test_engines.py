"""`gateway engines`: a line for each engine, and an exit status that says whether all are ready."""

from __future__ import annotations

import asyncio

import pytest

from gateway.cli.main import main
from gateway.config import EngineSettings, LaneSettings, Settings
from gateway.domain.engine import EngineState
from gateway.engines.simulated import Script
from tests.gateways import running


def lane(name: str, pair: str) -> LaneSettings:
    return LaneSettings(name=name, kind="simulated", pairs=(pair,), script=Script())


async def engines(url: str) -> int:
    return await asyncio.to_thread(main, ["engines", "--url", url])


async def test_each_engine_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(engines=(lane("one", "en-ja"), lane("two", "en-de")))
    async with running(settings) as gateway:
        while gateway.gateway.engine.health().state is not EngineState.READY:
            await asyncio.sleep(0.001)
        assert await engines(f"http://127.0.0.1:{gateway.port}") == 0
        assert capsys.readouterr().out == "one\tready\ntwo\tready\n"


async def test_the_only_engine_is_the_default_and_says_why_it_is_not_ready(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = Settings(engine=EngineSettings(kind="simulated"))
    async with running(settings, script=Script(load_s=3_600)) as gateway:
        assert await engines(f"http://127.0.0.1:{gateway.port}") == 3
        assert capsys.readouterr().out == "default\tstarting\tthe simulated engine is loading\n"


async def test_something_else_answers(capsys: pytest.CaptureFixture[str]) -> None:
    async def say_something(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        writer.close()

    async with await asyncio.start_server(say_something, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await engines(f"http://127.0.0.1:{port}") == 1
    assert "Nothing usable answers at" in capsys.readouterr().err

"""Recognisers that are WebSocket servers, played."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

from gateway.client.recognisers.listening import RecogniserUnreachable, listen


@asynccontextmanager
async def recogniser(hear: Callable[[ServerConnection], Awaitable[None]]) -> AsyncGenerator[str, None]:
    async with serve(hear, "127.0.0.1", 0) as server:
        (socket,) = server.sockets
        yield f"ws://127.0.0.1:{socket.getsockname()[1]}"


async def audio() -> AsyncGenerator[bytes, None]:
    for chunk in (b"one", b"two"):
        yield chunk


async def vosk(connection: ServerConnection) -> None:
    heard = [await connection.recv() for _ in range(4)]
    assert [json.loads(heard[0]), json.loads(heard[3])] == [{"config": {"sample_rate": 8000}}, {"eof": 1}]
    await connection.send(b"".join(chunk for chunk in heard if isinstance(chunk, bytes)).decode())


async def whisper(connection: ServerConnection) -> None:
    heard = b""
    while isinstance(chunk := await connection.recv(), bytes) and chunk:
        heard += chunk
    await connection.send(heard)
    await connection.send('{"type": "ready_to_stop"}')
    await connection.wait_closed()


@pytest.mark.parametrize(
    ("server", "rate", "results"),
    [(vosk, 8_000, ["onetwo"]), (whisper, None, ["onetwo", '{"type": "ready_to_stop"}'])],
)
async def test_audio_goes_in_and_results_come_out(
    server: Callable[[ServerConnection], Awaitable[None]], rate: int | None, results: list[str]
) -> None:
    async with recogniser(server) as url:
        assert [each async for each in listen(url, audio(), sample_rate=rate, wait_s=0)] == results


async def test_a_connection_that_is_lost_is_opened_again() -> None:
    visits = 0

    async def hear(connection: ServerConnection) -> None:
        nonlocal visits
        visits += 1
        await connection.send(f"{visits}")
        await connection.close(1000 if visits == 2 else 1011)

    async with recogniser(hear) as url:
        assert [each async for each in listen(url, None, sample_rate=None, wait_s=0)] == ["1", None, "2"]


async def test_an_address_without_a_recogniser_is_told() -> None:
    with pytest.raises(RecogniserUnreachable, match=r"No recogniser answers at ws://127\.0\.0\.1:1\."):
        await anext(listen("ws://127.0.0.1:1", None, sample_rate=None, wait_s=0))

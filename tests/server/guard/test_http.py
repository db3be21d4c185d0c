"""Bounds of one HTTP connection, on real sockets: the head, the time, the number, what is pipelined."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from gateway.config import Settings
from gateway.engines.simulated import Script
from gateway.server.guard.http import HEAD_BYTES, HEAD_FIELDS
from tests.clocks import swiftly
from tests.gateways import Running, running

HOST = b"Host: 127.0.0.1\r\n"
JSON = b"Content-Type: application/json\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"


class Line:
    """A client that writes bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()

    async def answer(self) -> bytes:
        """One whole answer."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return head + await self._reader.readexactly(int(length.split(b":")[1]))

    async def rest(self) -> bytes:
        """All that comes until the gateway closes."""
        received = b""
        with contextlib.suppress(ConnectionError):
            while more := await self._reader.read(65_536):
                received += more
        return received


@contextlib.asynccontextmanager
async def line(gateway: Running) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        yield Line(reader, writer)
    finally:
        writer.transport.abort()


ENDLESS = [
    pytest.param(b"GET /", b"a" * 1_000, b"HTTP/1.1 414 ", id="address"),
    pytest.param(b"GET / HTTP/1.1\r\n" + HOST + b"x: ", b"a" * 1_000, b"HTTP/1.1 431 ", id="field"),
    pytest.param(b"GET / HTTP/1.1\r\n" + HOST, b"a: b\r\n" * 100, b"HTTP/1.1 431 ", id="fields"),
    pytest.param(
        b"POST /v1/translate HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
        b"t: " + b"a" * 1_000 + b"\r\n",
        b"",
        id="trailers",
    ),
    pytest.param(
        b"POST /v1/translate HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1;",
        b"a" * 1_000,
        b"",
        id="chunk extension",
    ),
]


@pytest.mark.parametrize(("begin", "more", "status"), ENDLESS)
async def test_endless_head_is_refused_without_memory(begin: bytes, more: bytes, status: bytes) -> None:
    async with running() as gateway, line(gateway) as client:
        await client.send(begin)
        for _ in range(10 * HEAD_BYTES // len(more)):
            await client.send(more)
        assert (await client.rest()).startswith(status)
        async with line(gateway) as other:
            await other.send(HEALTH)
            assert b" 200 " in await other.answer()


async def test_a_head_within_the_bounds_is_taken() -> None:
    fields = b"".join(b"x%d: %s\r\n" % (n, b"a" * 400) for n in range(HEAD_FIELDS - 1))
    async with running() as gateway, line(gateway) as client:
        for _ in range(3):
            await client.send(b"GET /healthz HTTP/1.1\r\n" + HOST + fields + b"\r\n")
            assert b" 200 " in await client.answer()
        await client.send(b"GET /healthz HTTP/1.1\r\n" + HOST + fields + b"one: more\r\n\r\n")
        assert b" 431 " in await client.rest()


@swiftly
async def test_who_is_refused_and_stays_is_closed() -> None:
    fields = b"".join(b"x%d: y\r\n" % n for n in range(2 * HEAD_FIELDS))
    async with running() as gateway, line(gateway) as client:
        await client.send(b"GET /healthz HTTP/1.1\r\n" + HOST + fields + b"\r\n")
        assert b" 431 " in await client.answer()
        # It does not close its side.
        while gateway.server.server_state.connections:
            await asyncio.sleep(0.1)


@swiftly
async def test_request_behind_a_long_one_is_not_late() -> None:
    script = Script(first_token_s=40)
    body = b'{"text": "Good morning.", "source_lang": "en", "target_lang": "ja"}'
    head = b"POST /v1/translate HTTP/1.1\r\n" + HOST
    head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    async with running(script=script) as gateway, line(gateway) as client:
        for _ in range(2):
            await client.send(head % len(body) + body)
        for _ in range(2):
            assert b" 200 " in await client.answer()


@swiftly
async def test_who_asks_nothing_is_closed() -> None:
    async with running() as gateway, line(gateway) as client:
        assert await client.rest() == b""


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /healthz HT",
        b"GET /healthz HTTP/1.1\r\n" + HOST,
        b"POST /v1/translate HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n{",
    ],
)
@pytest.mark.parametrize("earlier", [0, 1])
@swiftly
async def test_a_request_that_never_ends_is_closed(begin: bytes, earlier: int) -> None:
    async with running() as gateway, line(gateway) as client:
        for _ in range(earlier):
            await client.send(HEALTH)
            await client.answer()
        await client.send(begin)
        answer = await client.rest()
    assert answer.startswith(b"HTTP/1.1 408 ") or b"Content-Length" in begin


@pytest.mark.parametrize("length", [1, 7, 100, 10_000])
async def test_requests_in_any_chunks_are_all_answered_in_order(length: int) -> None:
    body = b'{"text": "x", "source_lang": "zz", "target_lang": "ja"}'
    post = b"POST /v1/translate HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    stream = (HEALTH + post) * (20 if length < 100 else 300)
    async with running() as gateway, line(gateway) as client:
        sending = asyncio.create_task(_send_in_pieces(client, stream, length))
        for _ in range(stream.count(HEALTH)):
            assert b" 200 " in await client.answer()
            assert b" 422 " in await client.answer()
        await sending


async def _send_in_pieces(client: Line, data: bytes, length: int) -> None:
    for start in range(0, len(data), length):
        await client.send(data[start : start + length])


async def test_long_body_at_once_is_read_whole() -> None:
    body = b'{"text": "' + b"x" * 200_000 + b'"}'
    async with running() as gateway, line(gateway) as client:
        await client.send(
            b"POST /v1/translate HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        assert (await client.answer())[9:12] in {b"413", b"422", b"400"}


async def test_address_has_its_share_and_health_answers() -> None:
    async with running(Settings(max_connections_per_address=3)) as gateway, contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            busy = await stack.enter_async_context(gateway.peer())
        async with line(gateway) as late:
            await late.send(b"GET /v1/info HTTP/1.1\r\n" + HOST + b"\r\n")
            assert (await late.rest()).startswith(b"HTTP/1.1 503 ")
        async with line(gateway) as late:
            await late.send(
                b"GET /v1/stream HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            answer = await late.rest()
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert answer.count(b"HTTP/1.1") == 1
        async with line(gateway) as check:
            await check.send(HEALTH)
            assert b" 200 " in await check.answer()
        await busy.connection.close()
        async with gateway.peer():
            pass


async def test_idle_connections_lock_nobody_out() -> None:
    async with running(Settings(max_connections_per_address=3)) as gateway, contextlib.AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(line(gateway)) for _ in range(3)]
        async with gateway.peer():
            assert await idle[0].rest() == b""

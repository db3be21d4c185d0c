"""The relay against a server that echoes: it passes on, and breaks in the ways it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest
import uvloop

from loadtest.soak.relay import Relay, reset


class Echo:
    """Sends back what it gets. ends: how each of its connections ended, `end` or the error."""

    def __init__(self) -> None:
        self.ends: asyncio.Queue[str] = asyncio.Queue()
        self.gone = asyncio.Event()
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        self.gone.clear()
        try:
            while data := await reader.read(1_024):
                writer.write(data)
            self.ends.put_nowait("end")
        except ConnectionError as error:
            self.ends.put_nowait(type(error).__name__)
        await closed(writer)
        self._open -= 1
        if not self._open:
            self.gone.set()


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def relayed(*, thin: bool = False) -> AsyncIterator[tuple[Echo, Relay, int]]:
    echo = Echo()
    async with await asyncio.start_server(echo.serve, "127.0.0.1", 0) as server:
        async with Relay(server.sockets[0].getsockname()[1], thin=thin) as relay:
            yield echo, relay, urlsplit(relay.url).port or 0
        await echo.gone.wait()


async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, text: bytes) -> bytes:
    writer.write(text)
    return await reader.readexactly(len(text))


@pytest.mark.parametrize("thin", [False, True])
async def test_the_relay_passes_everything_on(thin: bool) -> None:
    async with relayed(thin=thin) as (echo, _, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await said(reader, writer, b"hello") == b"hello"
        assert await said(reader, writer, b"x" * 200_000) == b"x" * 200_000
        await closed(writer)
        assert await echo.ends.get() == "end"


async def test_a_cut_resets_both_sides() -> None:
    async with relayed() as (echo, relay, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await said(reader, writer, b"hello")
        relay.cut()
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        assert await echo.ends.get() == "ConnectionResetError"
        await closed(writer)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await said(reader, writer, b"again") == b"again"
        await closed(writer)


async def test_a_frozen_connection_is_silent() -> None:
    async with relayed() as (echo, relay, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await said(reader, writer, b"hello")
        relay.freeze()
        writer.write(b"lost")
        answer = asyncio.ensure_future(reader.readexactly(1))
        relay.strand()
        with pytest.raises(ConnectionResetError):
            await answer
        await closed(writer)
        # The server was told nothing, and goes on with others.
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await said(reader, writer, b"again") == b"again"
        assert echo.ends.empty()
        await closed(writer)


async def test_who_is_refused_is_reset_at_once() -> None:
    async with relayed() as (_, relay, port):
        relay.refuse(True)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(ConnectionResetError):
            await said(reader, writer, b"hello")
        await closed(writer)
        relay.refuse(False)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await said(reader, writer, b"hello") == b"hello"
        await closed(writer)


async def test_without_a_gateway_connections_reset() -> None:
    async with await asyncio.start_server(Echo().serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
    async with Relay(port) as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(relay.url).port)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await said(reader, writer, b"hello")
        await closed(writer)


def test_a_connection_may_be_reset_twice() -> None:
    async def reset_twice() -> None:
        accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        async with await asyncio.start_server(lambda _, near: accepted.put_nowait(near), "127.0.0.1", 0) as server:
            _, far = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
            near = await accepted.get()
            reset(near.transport)
            await closed(near)
            reset(near.transport)
            await closed(far)

    # Its transports have a socket of their own, which raises where that of asyncio does not.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(reset_twice())

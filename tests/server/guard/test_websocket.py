"""The budget of one WebSocket, on real sockets: what is within it is answered, what is past it harms nobody."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from gateway.config import Settings
from gateway.protocol.codec import JSON
from gateway.protocol.limits import Limits
from gateway.protocol.messages import Ping, Pong, SessionStarted, TranslationFinal, UtteranceAccepted
from gateway.server.guard.websocket import WRITE_NOW, FrameBudget, GuardedWebSocket, framed
from tests.clocks import run_swiftly, swiftly
from tests.frames import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, UPGRADE, frame
from tests.gateways import Running, running
from tests.meetings import START, joined, say

PAST_THE_BUDGET = struct.pack("!H", 4511) + b"rate_limited"


class Wire:
    """The bytes of one WebSocket after its handshake."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def frame(self) -> tuple[int, bytes]:
        opcode, length = await self.reader.readexactly(2)
        if length == 126:
            (length,) = struct.unpack("!H", await self.reader.readexactly(2))
        return opcode & 15, await self.reader.readexactly(length)

    async def closed(self) -> bytes:
        """What the close frame says; the frames before it are skipped."""
        while True:
            opcode, data = await self.frame()
            if opcode == CLOSE:
                return data


@contextlib.asynccontextmanager
async def wire(gateway: Running) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        writer.write(UPGRADE)
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()


def guarded(gateway: Running) -> GuardedWebSocket:
    """The newest WebSocket."""
    found = [each for each in gateway.server.server_state.connections if isinstance(each, GuardedWebSocket)]
    return found[-1]


@swiftly
async def test_a_handshake_that_is_refused_leaves_nothing_behind() -> None:
    async with running() as gateway, joined(gateway) as honest:
        state = gateway.server.server_state
        before = len(state.connections)
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(UPGRADE.replace(b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Version: 12"))
            assert b" 400 " in await reader.readuntil(b"\r\n\r\n")
            # Until the gateway has closed it.
            await reader.read()
            writer.close()
        await honest.peer.send(Ping("still here"))
        await honest.until(Pong)
        assert len(state.connections) == before


@swiftly
async def test_a_connection_that_is_gone_keeps_nothing_alive() -> None:
    async with running() as gateway:
        async with wire(gateway) as client:
            await client.send(frame(PING))
            await client.frame()
            protocol = guarded(gateway)
            assert protocol.scope["extensions"].keys() >= {WRITE_NOW}
            assert not hasattr(protocol, "request")
            assert not hasattr(protocol, "response")
        while protocol in gateway.server.server_state.connections:
            await asyncio.sleep(0)
        assert WRITE_NOW not in protocol.scope["extensions"]


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
@pytest.mark.parametrize("binary", [False, True])
def test_a_frame_is_the_one_that_websockets_makes(size: int, binary: bool) -> None:
    opcode = Opcode.BINARY if binary else Opcode.TEXT
    assert framed(b"x" * size, binary) == Frame(opcode, b"x" * size).serialize(mask=False)


FLOODS = {
    "pings": frame(PING),
    "pongs": frame(PONG),
    "fragments": frame(TEXT, fin=False) + frame(CONTINUATION, fin=False) * 1_000,
    "messages": frame(TEXT, b"{}"),
    "long pings": frame(PING, b"x" * 125),
    "bytes": frame(TEXT, b" " * 60_000),
}


@pytest.mark.parametrize("flood", FLOODS)
@swiftly
async def test_endless_sender_is_slowed_and_closed_others_served(flood: str) -> None:
    async with running() as gateway, joined(gateway) as honest, wire(gateway) as rude:
        # Fragments of one message go on after its first one.
        more = FLOODS[flood] if flood != "fragments" else frame(CONTINUATION, fin=False)
        await rude.send(FLOODS[flood])

        async def attack() -> None:
            with contextlib.suppress(ConnectionError):
                while True:
                    await rude.send(more * 1_000)

        attacking = asyncio.create_task(attack())
        for _ in range(20):
            await honest.peer.send(Ping("still here"))
            await honest.until(Pong)
        assert await rude.closed() == PAST_THE_BUDGET
        attacking.cancel()
        await honest.peer.send(Ping("afterwards"))
        await honest.until(Pong)


@swiftly
async def test_endless_fragments_are_closed_however_slow() -> None:
    async with running() as gateway, wire(gateway) as client:
        await client.send(frame(TEXT, b"x", fin=False))
        sending = True

        async def send() -> None:
            with contextlib.suppress(ConnectionError):
                while sending:
                    await client.send(frame(CONTINUATION, b"x", fin=False) * 10)
                    await asyncio.sleep(0.1)

        attack = asyncio.create_task(send())
        assert await client.closed() == PAST_THE_BUDGET
        sending = False
        await attack


@swiftly
async def test_a_burst_within_the_budget_is_answered() -> None:
    async with running() as gateway, wire(gateway) as client:
        await client.send(frame(PING, b"1") * 300)
        for _ in range(300):
            assert await client.frame() == (PONG, b"1")


@swiftly
async def test_who_is_slowed_for_a_while_loses_nothing() -> None:
    async with running() as gateway, wire(gateway) as client:
        # Five times the burst, in pieces that each wait until what came before is through.
        for _ in range(5):
            await client.send(frame(PING, b"1") * 400)
            for _ in range(400):
                assert await client.frame() == (PONG, b"1")
        await client.send(frame(TEXT, JSON.encode(START).encode()))  # type: ignore[union-attr]
        opcode, data = await client.frame()
        assert opcode == TEXT
        assert isinstance(JSON.decode_server(data.decode()), SessionStarted)


async def test_pongs_that_nobody_reads_do_not_pile_up() -> None:
    limits = Limits(messages_per_s=10**6, messages_burst=10**6, message_bytes=2**20)
    async with running(Settings(limits=limits)) as gateway, wire(gateway) as client:
        protocol = guarded(gateway)
        handled = 0

        def count(original: Callable[[], None] = protocol.handle_ping) -> None:
            nonlocal handled
            handled += 1
            original()

        protocol.handle_ping = count  # type: ignore[method-assign]
        sent = 0
        # More than the kernel holds for both sides.
        while protocol.writable.is_set() or handled < 2 * sent // 3:
            await client.send(frame(PING, b"x" * 125) * 1_000)
            sent += 1_000
            await asyncio.sleep(0)
        assert not protocol.writable.is_set()
        assert protocol.transport.get_write_buffer_size() < 2**17


@settings(max_examples=25)
@given(st.lists(st.integers(1, 3_000), min_size=1, max_size=6), st.integers(0, 3))
def test_messages_in_any_chunks_arrive_whole_and_in_order(lengths: list[int], fragments: int) -> None:
    text = "x" * 1_500
    messages = [JSON.encode(START), *(JSON.encode(say(f"u{n}", text)) for n in range(4)), JSON.encode(Ping("end"))]
    stream = b"".join(_in_fragments(message.encode(), fragments) + frame(PING) for message in messages)  # type: ignore[union-attr]

    async def check() -> None:
        settings = Settings(segment_chars=1_500, limits=Limits(text_chars=3_000))
        async with running(settings) as gateway, wire(gateway) as client:
            start = n = 0
            while start < len(stream):
                await client.send(stream[start : (start := start + lengths[n % len(lengths)])])
                await asyncio.sleep(0)
                n += 1
            accepted: list[str] = []
            finals: set[tuple[str, str]] = set()
            pongs = 0
            while len(finals) < 4 or pongs < len(messages):
                opcode, data = await client.frame()
                pongs += opcode == PONG
                message = JSON.decode_server(data.decode()) if opcode == TEXT else None
                if isinstance(message, UtteranceAccepted):
                    accepted.append(message.id)
                elif isinstance(message, TranslationFinal):
                    finals.add((message.utterance, message.text))
            assert accepted == ["u0", "u1", "u2", "u3"]
            assert finals == {(id, f"[ja] {text}") for id in accepted}  # whichever is done first

    run_swiftly(check())


def _in_fragments(data: bytes, count: int) -> bytes:
    """A message in `count` + 1 frames, with a ping between them."""
    if not count:
        return frame(TEXT, data)
    step = len(data) // count
    parts = [data[n * step : (n + 1) * step] for n in range(count)] + [data[count * step :]]
    frames = [frame(CONTINUATION if n else TEXT, part, fin=n == count) for n, part in enumerate(parts)]
    return frame(PONG).join(frames)


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
async def test_huge_frame_is_closed_by_its_size(opcode: int) -> None:
    async with running(Settings(limits=Limits(message_bytes=1_024))) as gateway, wire(gateway) as client:
        await client.send(frame(opcode, os.urandom(5_000)))
        assert (await client.closed())[:2] == struct.pack("!H", 1009)


@pytest.mark.parametrize("limits", [Limits(), Limits(messages_per_s=100_000, messages_burst=100_000)])
def test_every_client_within_the_limits_is_within_the_budget(limits: Limits) -> None:
    budget = FrameBudget.from_limits(limits, frame_bytes=4 * limits.message_bytes)
    assert budget.frames_per_s > limits.messages_per_s
    assert budget.frames_burst > limits.messages_burst
    longest = len(("𝒳" * limits.text_chars).encode())
    assert budget.bytes_per_s > limits.messages_per_s * longest
    assert budget.bytes_burst > limits.messages_burst * longest
    assert budget.bytes_burst >= 4 * limits.message_bytes


# ---------------------------------------------------------------- one that starts nothing


@contextlib.asynccontextmanager
async def line(gateway: Running) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """One connection, on which nothing was said."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("says", [b"", frame(PING)], ids=["nothing", "pings"])
@swiftly
async def test_silent_client_is_gone_within_its_time(says: bytes) -> None:
    """From the connection to its end, whatever the time was spent on; it answers no close frame."""
    clock = asyncio.get_running_loop().time
    async with running() as gateway:
        begun_s = clock()
        async with line(gateway) as (reader, writer):
            for at in range(0, len(UPGRADE), 20):
                await asyncio.sleep(1)
                writer.write(UPGRADE[at : at + 20])
            await reader.readuntil(b"\r\n\r\n")
            writer.write(says)
            assert b"start_timeout" in await reader.read()
            assert clock() - begun_s < Limits().start_timeout_s + 1


@swiftly
async def test_start_has_its_time_on_an_old_connection() -> None:
    async with running() as gateway, line(gateway) as (reader, writer):
        for _ in range(5):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b'{"status":"alive"}')
            await asyncio.sleep(4)
        writer.write(UPGRADE)
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(Limits().start_timeout_s - 1)
        start = JSON.encode(START)
        assert isinstance(start, str)
        writer.write(frame(TEXT, start.encode()))
        assert b"session.started" in await reader.readuntil(b"}")

"""HTTP/1.1 and server-sent events, cut anywhere."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.driving.http1 import BrokenResponse, Connection, Connections
from loadtest.driving.sse import Events
from loadtest.results import LoadtestError

BODIES = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
CUTS = st.lists(st.integers(0, 400), max_size=12)


class Transport(asyncio.Transport):
    """Takes what is written. closed: by the client."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def abort(self) -> None:
        self.closed = True


def cut(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({0, len(data), *(place for place in cuts if place < len(data))})
    return (data[start:end] for start, end in itertools.pairwise(places))


def chunked(parts: list[bytes]) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def plain(parts: list[bytes]) -> bytes:
    body = b"".join(parts)
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def connected() -> tuple[Connection, Transport]:
    connection, transport = Connection(), Transport()
    connection.connection_made(transport)
    return connection, transport


async def answered(connection: Connection, pieces: Iterator[bytes]) -> bytes:
    """What the body was, when the response comes in these pieces."""
    body = bytearray()
    asking = asyncio.create_task(connection.post(b"POST", body.extend))
    await asyncio.sleep(0)
    for piece in pieces:
        connection.data_received(piece)
    await asking
    return bytes(body)


@given(st.lists(st.tuples(st.sampled_from([chunked, plain]), BODIES, CUTS), min_size=1, max_size=3))
def test_bodies_are_whole_wherever_they_are_cut(responses: list[Any]) -> None:
    async def ask() -> None:
        connection, transport = connected()
        for write, parts, cuts in responses:
            assert await answered(connection, cut(write(parts), cuts)) == b"".join(parts)
            assert connection.status == 200
            assert connection.usable
        assert transport.written == b"POST" * len(responses)

    asyncio.run(ask())


@given(st.sampled_from([chunked, plain]), BODIES, st.data())
def test_a_response_that_is_cut_short_is_broken(write: Any, parts: list[bytes], data: Any) -> None:
    whole = write(parts)
    kept = data.draw(st.integers(0, len(whole) - 1))

    async def ask() -> None:
        connection, _ = connected()
        asking = asyncio.create_task(connection.post(b"POST", lambda _: None))
        await asyncio.sleep(0)
        if kept:
            connection.data_received(whole[:kept])
        connection.connection_lost(None)
        with pytest.raises(BrokenResponse) as raised:
            await asking
        assert raised.value.unheard == (kept == 0)
        assert not connection.usable

    asyncio.run(ask())


async def test_what_is_no_http_is_broken_and_closed() -> None:
    connection, transport = connected()
    with pytest.raises(BrokenResponse, match="no HTTP"):
        await answered(connection, iter([b"220 mail.example.com ESMTP\r\n"]))
    assert transport.closed
    assert not connection.usable


async def test_a_server_that_speaks_unasked_is_left() -> None:
    connection, transport = connected()
    connection.data_received(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert transport.closed
    with pytest.raises(BrokenResponse) as raised:
        await connection.post(b"POST", lambda _: None)
    assert raised.value.unheard


async def test_a_connection_that_was_never_made_is_tried_once() -> None:
    connection = Connection()
    with pytest.raises(BrokenResponse) as raised:
        await connection.post(b"POST", lambda _: None)
    assert raised.value.unheard
    assert not connection.usable


async def test_a_connection_that_the_server_ends_is_not_used_again() -> None:
    connection, _ = connected()
    response = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
    assert await answered(connection, iter([response])) == b"ok"
    assert not connection.usable


async def test_what_comes_before_the_response_is_passed_over() -> None:
    connection, _ = connected()
    pieces = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\nno"]
    assert await answered(connection, iter(pieces)) == b"no"
    assert connection.status == 503


def test_requests_as_they_go_over_the_wire() -> None:
    connections = Connections("http://localhost:8123/base/")
    assert connections.request("/v1/x", b"{}") == (
        b"POST /base/v1/x HTTP/1.1\r\nhost: localhost:8123\r\ncontent-type: application/json\r\n"
        b"accept: */*\r\ncontent-length: 2\r\n\r\n{}"
    )
    with pytest.raises(LoadtestError, match="http only"):
        Connections("https://localhost")


@given(
    st.lists(
        st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), min_size=1)
    ),
    CUTS,
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_events_are_whole_wherever_they_are_cut(events: list[list[bytes]], cuts: list[int], end: bytes) -> None:
    stream = b""
    for lines in events:
        stream += b": a comment" + end + b"event: x" + end
        stream += b"".join(b"data: " + line + end for line in lines) + end
    taken: list[bytes] = []
    reader = Events(taken.append)
    for piece in cut(stream, cuts):
        reader.feed(piece)
    assert taken == [b"\n".join(lines) for lines in events]


def test_an_event_without_its_empty_line_is_not_told_of() -> None:
    taken: list[bytes] = []
    reader = Events(taken.append)
    reader.feed(b"data:one\n\ndata: two\n")
    assert taken == [b"one"]

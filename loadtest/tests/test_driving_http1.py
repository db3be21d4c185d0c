"""HTTP/1.1 and streamed completions, cut anywhere."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.driving.http1 import BrokenResponse, Connections
from loadtest.driving.requests import Answer
from loadtest.driving.sse import Completion
from loadtest.results import LoadtestError

CUTS = st.lists(st.integers(0, 400), max_size=12)

BODY = [b"one", b"two", b"three" * 9]
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    + b"".join(b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in BODY)
    + b"0\r\n\r\n"
)
PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(b"".join(BODY)), b"".join(BODY))


def cut(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({0, len(data), *(place for place in cuts if place < len(data))})
    return (data[start:end] for start, end in itertools.pairwise(places))


@asynccontextmanager
async def server(*answers: list[bytes]) -> AsyncIterator[tuple[Connections, list[int]]]:
    """Answers each request with the next of these, piece by piece; an empty piece closes the connection.

    Also the number of requests on each connection, in the order of the connections.
    """
    left = iter(answers)
    asked: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(asked)
        asked.append(0)
        try:
            while await reader.read(2**16):
                asked[number] += 1
                for piece in next(left):
                    if not piece:
                        return
                    writer.write(piece)
                    await asyncio.sleep(0)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        connections = Connections(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        try:
            yield connections, asked
        finally:
            connections.close()


async def posted(connections: Connections) -> tuple[int, bytes]:
    body = bytearray()
    return await connections.post(connections.request("/", b"{}"), body.extend), bytes(body)


@pytest.mark.parametrize("response", [CHUNKED, PLAIN])
@pytest.mark.parametrize("cuts", [[], [1, 20, 60], list(range(200))])
async def test_bodies_are_whole_wherever_they_are_cut(response: bytes, cuts: list[int]) -> None:
    pieces = list(cut(response, cuts))
    async with server(pieces, pieces, pieces) as (connections, asked):
        for _ in range(3):
            assert await posted(connections) == (200, b"".join(BODY))
    assert asked == [3]


@pytest.mark.parametrize("response", [CHUNKED, PLAIN])
@pytest.mark.parametrize("kept", [0, 20, -1])
async def test_a_response_that_is_cut_short_is_broken(response: bytes, kept: int) -> None:
    async with server([response[:kept], b""]) as (connections, _):
        with pytest.raises(BrokenResponse, match="the connection was lost"):
            await posted(connections)


async def test_what_is_no_http_is_broken() -> None:
    async with server([b"220 mail.example.com ESMTP\r\n"]) as (connections, _):
        with pytest.raises(BrokenResponse, match="not HTTP"):
            await posted(connections)


async def test_a_connection_that_the_server_ends_is_not_used_again() -> None:
    ending = [b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"]
    async with server(ending, ending) as (connections, asked):
        for _ in range(2):
            assert await posted(connections) == (200, b"ok")
    assert asked == [1, 1]


async def test_a_kept_connection_that_is_closed_just_when_it_is_used_is_replaced() -> None:
    async with server([PLAIN], [b""], [PLAIN]) as (connections, asked):
        for _ in range(2):
            assert await posted(connections) == (200, b"".join(BODY))
    assert asked == [2, 1]


async def test_what_comes_before_the_response_is_passed_over() -> None:
    pieces = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\nno"]
    async with server(pieces) as (connections, _):
        assert await posted(connections) == (503, b"no")


async def test_where_nobody_answers_there_is_one_sentence() -> None:
    async with server() as (connections, _):
        pass
    with pytest.raises(LoadtestError, match="Nothing answers at 127"):
        await connections.open(1)
    with pytest.raises(BrokenResponse, match="no connection"):
        await posted(connections)


def test_requests_as_they_go_over_the_wire() -> None:
    connections = Connections("http://localhost:8123/base/")
    assert connections.request("/v1/x", b"{}") == (
        b"POST /base/v1/x HTTP/1.1\r\nhost: localhost:8123\r\ncontent-type: application/json\r\n"
        b"accept: */*\r\ncontent-length: 2\r\n\r\n{}"
    )
    with pytest.raises(LoadtestError, match="http only"):
        Connections("https://localhost")


@given(st.lists(st.text(max_size=10), max_size=6), CUTS, st.sampled_from([b"\n", b"\r\n"]))
def test_completions_are_whole_wherever_their_events_are_cut(
    texts: list[str], cuts: list[int], end: bytes
) -> None:
    events = [msgspec.json.encode({"choices": [{"text": text}]}) for text in texts]
    stream = b"".join(
        b": a comment" + end + b"data: " + event + end + end for event in (*events, b'{"choices": []}', b"[DONE]")
    )
    answer = Answer()
    completion = Completion(answer)
    for piece in cut(stream, cuts):
        completion.take(piece)
    completion.end(200)
    assert (answer.text, answer.failed) == ("".join(texts).strip(), None)
    assert (completion.frames, completion.bytes) == (len(texts) + 2, len(stream))


def test_a_completion_whose_last_event_is_not_whole_has_failed() -> None:
    answer = Answer()
    completion = Completion(answer)
    completion.take(b"data: {}\n\ndata: [DON")
    completion.end(200)
    assert answer.failed == "the stream ended before its time"

"""Each client against its system: over WebSockets against the real gateway, over HTTP against small servers."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_model import SMALL_MODEL
from gateway.config import Settings
from gateway.domain.errors import EngineFailed
from gateway.engines.prompting.completions import OnNews, Prompt, Sampling
from gateway.engines.prompting.encoding import EncodedPrompt
from gateway.engines.simulated import SimulatedEngine
from gateway.protocol.limits import Limits
from loadtest.driving import engine, http, websocket
from loadtest.driving.exchange import Client, Share
from loadtest.driving.http import BrokenResponse, Completion, Connections
from loadtest.driving.requests import Answer, Tally
from loadtest.results import LoadtestError, first_error
from loadtest.systems import processes
from loadtest.systems.prompting import Prompts, gateway_settings, prompts
from loadtest.systems.server import free_port
from loadtest.trial.values import Closed, EngineInProcess, Http, Line, Open, OpenAiServer, Record, WebSocketGateway
from tests.clocks import swiftly
from tests.gateways import Running, running
from tests.processes import alive

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


Reply = Callable[[str, bytes, Callable[[bytes], Awaitable[None]]], Awaitable[None]]


class Server:
    """Answers POST requests. requests: how many came on each connection. keeps: whether more than one may."""

    def __init__(self, reply: Reply, *, keeps: bool = True) -> None:
        self.requests: list[int] = []
        self.asked: list[Any] = []
        self.port = 0
        self._reply = reply
        self._keeps = keeps

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Server]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.requests)
        self.requests.append(0)

        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()
            # What follows comes in another piece.
            await asyncio.sleep(0)

        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                fields = dict(row.split(": ", 1) for row in head.split("\r\n")[1:] if row)
                body = await reader.readexactly(int(fields["content-length"]))
                self.asked.append(json.loads(body))
                self.requests[number] += 1
                await self._reply(head.split()[1], body, write)
                if not self._keeps:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def server(*answers: list[bytes]) -> AsyncIterator[tuple[Connections, list[int]]]:
    """Answers each request with the next of these, piece by piece; an empty piece closes the connection.

    Also the number of requests on each connection, in the order of the connections.
    """
    left = iter(answers)

    async def reply(_path: str, _body: bytes, write: Callable[[bytes], Awaitable[None]]) -> None:
        for piece in next(left):
            if not piece:
                raise ConnectionError
            await write(piece)

    async with Server(reply).serving() as served:
        connections = Connections(served.url)
        try:
            yield connections, served.requests
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
async def test_a_truncated_response_is_broken(response: bytes, kept: int) -> None:
    async with server([response[:kept], b""]) as (connections, _):
        with pytest.raises(BrokenResponse, match="the connection was lost"):
            await posted(connections)


async def test_what_is_no_http_is_broken() -> None:
    async with server([b"220 mail.example.com ESMTP\r\n"]) as (connections, _):
        with pytest.raises(BrokenResponse, match="not HTTP"):
            await posted(connections)


ENDING = [b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (2, b"ok")]


@pytest.mark.parametrize(
    ("answers", "requests"),
    [
        # One that the server ends is not used again.
        ([ENDING, ENDING], [1, 1]),
        # One that is closed just when it is used is replaced.
        ([[PLAIN], [b""], [PLAIN]], [2, 1]),
    ],
)
async def test_a_connection_is_reused_while_open(answers: list[list[bytes]], requests: list[int]) -> None:
    async with server(*answers) as (connections, asked):
        for _ in range(2):
            assert (await posted(connections))[0] == 200
    assert asked == requests


async def test_interim_responses_are_passed_over() -> None:
    pieces = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\nno"]
    async with server(pieces) as (connections, _):
        assert await posted(connections) == (503, b"no")


async def test_a_missing_server_is_one_sentence() -> None:
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
def test_completions_survive_any_cut(texts: list[str], cuts: list[int], end: bytes) -> None:
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


def test_a_truncated_completion_has_failed() -> None:
    answer = Answer()
    completion = Completion(answer)
    completion.take(b"data: {}\n\ndata: [DON")
    completion.end(200)
    assert answer.failed == "the stream ended before its time"


ALONE = Share(0, 1, "alone")


def line(id: str, text: str = "one two", target: str = "de", due_s: float = 0.0) -> Line:
    return Line(id, text, "en", (target,), due_s)


async def play(client: Client, lines: Sequence[Line], *, keep_text: bool = True) -> Tally:
    await client.prepare(lines)
    tally = Tally(time.monotonic() + 0.01, keep_text=keep_text, processes=1)
    async with asyncio.timeout(120):
        await client.play(tally)
    return tally


def by_line(tally: Tally) -> dict[str, Record]:
    assert len({record.line for record in tally.records}) == len(tally.records)
    return {record.line: record for record in tally.records}


# ---------------------------------------------------------------- the gateway over WebSockets


def address(gateway: Running) -> WebSocketGateway:
    return WebSocketGateway(f"http://127.0.0.1:{gateway.port}")


async def test_closed_loop_lines_follow_each_other() -> None:
    async with running() as gateway, websocket.client(address(gateway), Closed(1), ALONE) as client:
        tally = await play(client, [line("a"), line("b", "three"), line("c", "four")])
        assert gateway.gateway.stream.open_sessions == 1
    first, second, third = tally.records
    assert [record.line for record in tally.records] == ["a", "b", "c"]
    assert [record.text for record in tally.records] == ["[de] one two", "[de] three", "[de] four"]
    assert first.due_s == first.sent_s
    assert first.done_s is not None
    assert second.done_s is not None
    assert first.done_s <= second.sent_s
    assert second.done_s <= third.sent_s
    delivered = tally.delivered()
    assert delivered.finals == 3
    assert delivered.final_ms[0] == pytest.approx((first.done_s - first.sent_s) * 1000, abs=0.01)


async def test_the_last_segment_completes_a_line() -> None:
    async with running() as gateway, websocket.client(address(gateway), Closed(1), ALONE) as client:
        tally = await play(
            client, [line("a", "It is late. We go now. SLOW it was."), line("b", "Yes. It FAIL now.")]
        )
    whole, broken = tally.records
    assert whole.text == "[de] It is late. [de] We go now. [de] SLOW it was."
    assert (whole.tokens, broken.failed) == (len(whole.text.split()), "engine_failed")


async def test_as_many_are_in_flight_as_asked() -> None:
    most = 0

    async def look(gateway: Running) -> None:
        nonlocal most
        while True:
            most = max(most, gateway.gateway.scheduler.running)
            await asyncio.sleep(0.001)

    async with running() as gateway, websocket.client(address(gateway), Closed(5), ALONE) as client:
        looking = asyncio.create_task(look(gateway))
        tally = await play(client, [line(str(n), "one two three four") for n in range(50)])
        looking.cancel()
        assert gateway.gateway.stream.open_sessions == 5
    assert most == 5
    assert len(by_line(tally)) == 50


@swiftly
async def test_open_loop_lines_are_said_when_due() -> None:
    said = [
        line("late", "quick", due_s=0.3),
        line("slow", "SLOW SLOW", due_s=0.0),
        line("mid", "quick", due_s=0.15),
    ]
    async with running() as gateway, websocket.client(address(gateway), Open(10.0), ALONE) as client:
        tally = await play(client, said)
    records = by_line(tally)
    assert {id: record.due_s for id, record in records.items()} == {"late": 0.3, "slow": 0.0, "mid": 0.15}
    for record in records.values():
        assert record.failed is None
        assert record.due_s <= record.sent_s < record.due_s + 0.001
    slow, mid = records["slow"], records["mid"]
    assert slow.done_s is not None
    assert mid.done_s is not None
    # The slow line held no other line up.
    assert mid.done_s < slow.done_s


async def test_latency_counts_from_the_due_time() -> None:
    async with running() as gateway, websocket.client(address(gateway), Open(10.0), ALONE) as client:
        await client.prepare([line("a", due_s=-0.5)])
        tally = Tally(time.monotonic(), keep_text=False, processes=1)
        await client.play(tally)
    (record,) = tally.records
    assert record.due_s == -0.5
    assert record.sent_s >= 0
    assert tally.delivered().final_ms[0] > 500
    assert record.text == ""
    assert tally.lag.use(0.0, 1.0).lag_max_ms >= 500


async def test_every_pair_has_sessions_of_its_own() -> None:
    targets = ["de", "fr", "ja"]
    said = [line(f"{n}", f"word{n}", targets[n % 3]) for n in range(30)]
    async with running() as gateway, websocket.client(address(gateway), Closed(6), ALONE) as client:
        tally = await play(client, said)
        assert gateway.gateway.stream.open_sessions == 12
        again = await play(client, said)
        # They stay.
        assert gateway.gateway.stream.open_sessions == 12
    for one in (tally, again):
        assert {r.line: r.text for r in one.records} == {
            each.id: f"[{each.targets[0]}] {each.text}" for each in said
        }


async def test_refusals_and_failures_are_failed_records() -> None:
    settings = Settings()
    async with running(settings) as gateway, websocket.client(address(gateway), Closed(1), ALONE) as client:
        tally = await play(client, [line("empty", " "), line("broken", "one FAIL"), line("good")])
    records = by_line(tally)
    assert {id: record.failed for id, record in records.items()} == {
        "empty": "cancelled",
        "broken": "engine_failed",
        "good": None,
    }
    assert records["empty"].first_s is records["empty"].done_s is records["broken"].done_s is None
    assert tally.failed == 2
    assert tally.delivered().finals == 1


@swiftly
@pytest.mark.parametrize("retries", [False, True])
async def test_overload_refusals_are_retried_if_asked(retries: bool) -> None:
    # The last is due so late that all others have had their turn before.
    said = [*(line(str(n), "SLOW") for n in range(40)), line("last", due_s=60.0)]
    settings = Settings(max_waiting=4)
    async with (
        running(settings) as gateway,
        websocket.client(address(gateway), Open(1.0, retries), ALONE) as client,
    ):
        tally = await play(client, said)
    records = by_line(tally)
    assert len(records) == len(said)
    if not retries:
        assert {record.failed for record in tally.records} == {None, "overloaded"}
        assert not any(record.retries or record.again_s is not None for record in tally.records)
        return
    assert {record.failed for record in tally.records} == {None}
    again = [record for record in tally.records if record.retries]
    assert again
    for record in again:
        assert record.again_s is not None
        assert record.first_s is not None
        # Sent when it was due, and again no sooner than it was told.
        assert record.sent_s < 1.0 <= record.again_s < record.first_s


@swiftly
async def test_refusals_at_the_end_are_final() -> None:
    said = [line(str(n), "SLOW") for n in range(40)]
    settings = Settings(max_waiting=4)
    async with running(settings) as gateway, websocket.client(address(gateway), Open(1.0, True), ALONE) as client:
        tally = await play(client, said)
    assert {record.failed for record in tally.records} == {None, "overloaded"}
    assert not any(record.retries for record in tally.records)


async def test_an_overrun_reaches_no_session_limit() -> None:
    # More at once than the few sessions of a slow load are allowed to hold.
    said = [line(str(n), "one", due_s=0.0) for n in range(600)]
    settings = Settings(limits=Limits(utterances_in_flight=3))
    async with running(settings) as gateway, websocket.client(address(gateway), Open(300.0), ALONE) as client:
        tally = await play(client, said)
        assert gateway.gateway.stream.open_sessions == 282
    assert {record.failed for record in tally.records} == {None}


async def test_a_lost_session_fails_and_is_replaced() -> None:
    async with running() as gateway, websocket.client(address(gateway), Closed(1), ALONE) as client:
        playing = asyncio.create_task(play(client, [line("a", "STALL"), line("b")]))
        while not gateway.gateway.scheduler.running:
            await asyncio.sleep(0.001)
        await gateway.gateway.stream.close_all(1.0)
        with pytest.raises(ExceptionGroup) as raised:
            await playing
        error = first_error(raised.value)
        assert isinstance(error, LoadtestError)
        assert "ended all sessions of a client: closed with 1012" in str(error)
        tally = await play(client, [line("c")])
        assert [record.failed for record in tally.records] == [None]


async def test_an_unknown_language_is_one_sentence() -> None:
    async with running() as gateway, websocket.client(address(gateway), Closed(2), ALONE) as client:
        with pytest.raises(LoadtestError, match="does not know the language 'it'"):
            await client.prepare([line("a", target="it")])


def whole(status: str, body: bytes) -> bytes:
    return (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        + body
    )


# ---------------------------------------------------------------- a baseline


async def translate(path: str, body: bytes, write: Callable[[bytes], Awaitable[None]]) -> None:
    assert path == "/translate"
    asked = json.loads(body)
    if "FAIL" in asked["text"]:
        await write(whole("503 Busy", b'{"text":"the queue is full","tokens":0}'))
    elif "GARBAGE" in asked["text"]:
        await write(whole("200 OK", b"[]"))
    else:
        await asyncio.sleep(0.02)
        text = f"[{asked['target']}] {asked['text']}"
        answer = {"text": text, "tokens": 3, "first_token_s": 0.001, "queue_s": 0.0, "total_s": 0.02}
        await write(whole("200 OK", json.dumps(answer).encode()))


async def test_a_baselines_first_text_is_its_last() -> None:
    async with Server(translate).serving() as server, http.client(Http(server.url), Closed(2), ALONE) as client:
        tally = await play(client, [line(str(n)) for n in range(6)])
        await play(client, [line(str(n)) for n in range(6)])
    assert len(server.requests) == 2
    assert server.asked[0] == {"text": "one two", "source": "en", "target": "de"}
    for record in tally.records:
        assert (record.text, record.tokens, record.failed) == ("[de] one two", 3, None)
        assert record.first_s == record.done_s
        assert record.done_s is not None
        assert record.done_s - record.sent_s >= 0.019
    assert tally.frames == 6


async def test_baseline_refusals_are_failed_records() -> None:
    async with Server(translate).serving() as server, http.client(Http(server.url), Closed(1), ALONE) as client:
        tally = await play(client, [line("a", "FAIL"), line("b", "GARBAGE"), line("c")])
    assert [record.failed for record in tally.records] == [
        'HTTP 503: {"text":"the queue is full","tokens":0}',
        "HTTP 200: []",
        None,
    ]
    assert tally.records[0].first_s is None


async def test_an_open_loop_opens_more_connections() -> None:
    asked, all_of_them = 0, asyncio.Event()

    async def wait(_path: str, _body: bytes, write: Callable[[bytes], Awaitable[None]]) -> None:
        nonlocal asked
        asked += 1
        if asked == 100:
            all_of_them.set()
        await all_of_them.wait()
        await write(whole("200 OK", b'{"text":"x","tokens":1}'))

    async with Server(wait).serving() as server, http.client(Http(server.url), Open(500.0), ALONE) as client:
        tally = await play(client, [line(str(n), due_s=n / 1_000) for n in range(100)])
    assert len(server.requests) == 100
    assert {record.failed for record in tally.records} == {None}


async def test_a_broken_response_is_a_failed_record() -> None:
    async def break_off(_path: str, _body: bytes, write: Callable[[bytes], Awaitable[None]]) -> None:
        await write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")

    server = Server(break_off, keeps=False)
    async with server.serving(), http.client(Http(server.url), Closed(1), ALONE) as client:
        tally = await play(client, [line("a")])
    assert [record.failed for record in tally.records] == ["the connection was lost"]


# ---------------------------------------------------------------- an OpenAI-compatible server


class Encoder:
    """Prompts without a model."""

    stop_token_ids = (7,)

    async def encode(self, request: Any) -> EncodedPrompt:
        if request.text == "TOO LONG":
            raise EngineFailed("The window does not hold it.")
        text = f"<{request.source}>{request.text}"
        return EncodedPrompt(list(text.encode()), 40, 100, text, add_special_tokens=False)


@pytest.fixture
def simple_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    how: Any = Prompts(Encoder(), Sampling())  # type: ignore[arg-type]
    monkeypatch.setattr(http, "prompts", lambda _settings: how)


def event(data: object) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


async def complete(path: str, body: bytes, write: Callable[[bytes], Awaitable[None]]) -> None:
    assert path == "/v1/completions"
    prompt = bytes(json.loads(body)["prompt"]).decode()
    if "REFUSED" in prompt:
        await write(whole("400 Bad Request", b'{"error":{"message":"no"}}'))
        return
    await write(STREAM)
    for word in (" ", "Gu", "ten Tag", "!"):
        await asyncio.sleep(0.01)
        await write(chunk(event({"choices": [{"index": 0, "text": word}], "usage": None})))
    if "BROKEN" in prompt:
        await write(chunk(event({"error": {"message": "the engine died", "code": 500}})))
    elif "SHORT" not in prompt:
        await write(chunk(event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})))
        await write(chunk(b"data: [DONE]\n\n"))
    await write(b"0\r\n\r\n")


@pytest.mark.usefixtures("simple_prompts")
async def test_completions_are_read_as_they_are_streamed() -> None:
    server = Server(complete)
    async with server.serving():
        asked = OpenAiServer(server.url, "a-model", {})
        async with http.completions_client(asked, Closed(2), ALONE) as client:
            tally = await play(client, [line(str(n), "good day") for n in range(6)])
    assert len(server.requests) == 2
    assert server.asked[0] == {
        "model": "a-model",
        "prompt": list(b"<en>good day"),
        "max_tokens": 40,
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "repetition_penalty": 1.0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "stop_token_ids": [7],
    }
    for record in tally.records:
        assert (record.text, record.tokens, record.failed) == ("Guten Tag!", 4, None)
        assert record.first_s is not None
        assert record.done_s is not None
        # A space is nothing to read. A busy machine may read the words after it late, and together.
        assert record.first_s - record.sent_s >= 0.019
        assert record.first_s <= record.done_s
    assert tally.frames == 6 * 6


@pytest.mark.usefixtures("simple_prompts")
async def test_stream_errors_are_failed_records() -> None:
    server = Server(complete)
    said = [line(text, text) for text in ("REFUSED", "BROKEN", "SHORT", "TOO LONG", "good day")]
    async with (
        server.serving(),
        http.completions_client(OpenAiServer(server.url, "m", {}), Closed(1), ALONE) as client,
    ):
        tally = await play(client, said)
    assert {record.line: record.failed for record in tally.records} == {
        "REFUSED": 'HTTP 400: {"error":{"message":"no"}}',
        "BROKEN": "the engine died",
        "SHORT": "the stream ended before its time",
        "TOO LONG": "engine_failed",
        "good day": None,
    }
    assert [record.done_s for record in tally.records[:4]] == [None] * 4


@pytest.mark.slow
async def test_prompts_are_those_of_the_gateway() -> None:
    how = prompts(gateway_settings({"engine": {"model": str(SMALL_MODEL), "max_model_len": 200}}))
    prompt = await how.encode(line("a", "Good morning."))
    assert prompt.text == "<s><en><de><final>Good morning.<to>"
    assert not prompt.add_special_tokens
    assert 32 < prompt.max_tokens < 60
    with pytest.raises(EngineFailed):
        await how.encode(line("b", "Good morning. " * 100))


# ---------------------------------------------------------------- the engine itself


async def test_the_simulated_engine_is_called_straight() -> None:
    script = {"first_token_s": 0.01, "token_s": 0.01, "rules": [{"match": "FAIL", "fail_after": 1}]}
    settings = {"engine": {"kind": "simulated", "script": script}}
    async with engine.client(EngineInProcess(settings), Closed(2), ALONE) as client:
        tally = await play(client, [line("a", "one two three"), line("b", "FAIL"), line("c", "four")])
    records = by_line(tally)
    assert {id: record.failed for id, record in records.items()} == {"a": None, "b": "engine_failed", "c": None}
    first = records["a"]
    assert (first.text, first.tokens) == ("[de] one two three", 4)
    assert first.first_s is not None
    assert first.done_s is not None
    assert first.sent_s + 0.009 < first.first_s < first.done_s


async def test_the_prefix_cache_waits_for_idle() -> None:
    class Llm:
        def __init__(self, *answers: bool | Exception) -> None:
            self.left = list(answers)

        async def reset_prefix_cache(self) -> bool:
            answer = self.left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    busy = Llm(False, False, True)
    await engine._VllmClient(SimpleNamespace(llm=busy), Closed(1)).reset_prefix_cache()
    assert busy.left == []
    with pytest.raises(LoadtestError, match=r"cannot empty its prefix cache \(OSError\)"):
        await engine._VllmClient(SimpleNamespace(llm=Llm(OSError())), Closed(1)).reset_prefix_cache()


@pytest.mark.slow
async def test_a_gateway_beside_the_engine_shares_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Prompt] = []
    complete = SimulatedEngine.complete

    async def noted(self: SimulatedEngine, prompt: Prompt, on_news: OnNews) -> None:
        asked.append(prompt)
        await complete(self, prompt, on_news)

    monkeypatch.setattr(SimulatedEngine, "complete", noted)
    settings = {"engine": {"kind": "simulated", "script": {"first_token_s": 0.01, "token_s": 0.0}}}
    beside = re.compile(f"^{processes.BESIDE_ITS_ENGINE}")
    place = EngineInProcess(settings, port := free_port())
    async with engine.client(place, Closed(1), ALONE) as client:
        (pid,) = processes.named_below(os.getpid(), beside)
        served = WebSocketGateway(f"http://127.0.0.1:{port}")
        async with websocket.client(served, Closed(1), ALONE) as through:
            told = by_line(await play(through, [line("a", "one two")]))["a"]
            assert len(asked) == 1
        direct = by_line(await play(client, [line("a", "one two")]))["a"]
        assert (told.text, told.tokens) == (direct.text, direct.tokens) == ("[de] one two", 3)
    assert not alive(pid)

    # It is gone for good when it is killed; the engine is none the worse for that.
    async with engine.client(place, Closed(1), ALONE) as client:
        (pid,) = processes.named_below(os.getpid(), beside)
        os.kill(pid, signal.SIGKILL)
        assert by_line(await play(client, [line("b", "one")]))["b"].text == "[de] one"

    # Also when what uses them goes wrong.
    async def go_wrong() -> None:
        async with engine.client(place, Closed(1), ALONE):
            pids.extend(processes.named_below(os.getpid(), beside))
            raise LoadtestError("Something went wrong.")

    pids: list[int] = []
    with pytest.raises(LoadtestError, match="Something went wrong"):
        await go_wrong()
    assert list(map(alive, pids)) == [False]


@pytest.mark.slow
async def test_a_gateway_beside_the_engine_explains_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = EngineInProcess({"engine": {"kind": "simulated"}}, port := taken.getsockname()[1])
        with pytest.raises(
            LoadtestError, match=f"The gateway ended with status 1.*Port {port} on 127.0.0.1 is taken"
        ):
            async with engine.client(place, Closed(1), ALONE):
                pass
    assert processes.named_below(os.getpid(), re.compile("loadtest.systems.gateway")) == []


async def test_an_unbuildable_engine_is_one_sentence() -> None:
    with pytest.raises(LoadtestError, match="There is no model at /nowhere"):
        async with engine.client(EngineInProcess({"engine": {"model": "/nowhere"}}), Closed(1), ALONE):
            pass

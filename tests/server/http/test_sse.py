"""The event stream: what a client that reads slowly, or for long, is sent."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.protocol.messages import Timings
from gateway.server.http.bodies import DeltaEvent, DoneEvent, FailedEvent, FinalEvent
from gateway.server.http.sse import KEEP_ALIVE, EventStream, encode

FINAL = FinalEvent(0, "a b c", 3, False, Timings(0.0, 1.0, 2.0))
DONE = DoneEvent(source_lang="en", target_lang="ja", warnings=[])


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb\rc", "\x00\u2028\x85", 'data: "x"\n\nevent: done\n\n', "🙂"])
def test_event_is_one_line_of_data(text: str) -> None:
    head, data, *rest = encode(DeltaEvent(0, text)).split(b"\n")
    assert (head, rest) == (b"event: translation.delta", [b"", b""])
    assert data.startswith(b'data: {"index":0,"committed":')
    assert b"\r" not in data


async def test_deltas_merge_while_the_client_does_not_read() -> None:
    stream = EventStream()
    chunks: list[bytes] = []

    async def send(message: Any) -> None:
        chunks.append(message["body"])
        match len(chunks):
            case 1:  # while the first chunk is being written, much happens
                stream.delta(0, " b")
                stream.delta(1, "x")
                stream.delta(0, " c")
                stream.end(FINAL)
                stream.delta(1, " y")
            case 2:
                stream.end(FailedEvent(1, "engine_failed", "no"))
                stream.done(DONE)

    stream.delta(0, "a")
    await stream.write(send)
    assert chunks == [
        encode(DeltaEvent(0, "a")),
        encode(DeltaEvent(0, " b c")) + encode(FINAL) + encode(DeltaEvent(1, "x y")),
        encode(FailedEvent(1, "engine_failed", "no")) + encode(DONE),
    ]


async def test_silent_stream_is_kept_alive() -> None:
    stream = EventStream(keep_alive_s=0)
    chunks: list[bytes] = []

    async def send(message: Any) -> None:
        assert message["more_body"]
        chunks.append(message["body"])
        if len(chunks) == 3:
            stream.done(DONE)

    await stream.write(send)
    assert chunks == [KEEP_ALIVE, KEEP_ALIVE, KEEP_ALIVE, encode(DONE)]
    # Some clients take an empty line for an event without data.
    assert KEEP_ALIVE.startswith(b":")
    assert b"\n\n" not in KEEP_ALIVE


async def test_start_and_finish_frame_the_body() -> None:
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    stream = EventStream()
    await stream.start(send)
    stream.done(DONE)
    await stream.write(send)
    await stream.finish(send)
    assert [(m["type"], m.get("more_body")) for m in messages] == [
        ("http.response.start", None),
        ("http.response.body", True),
        ("http.response.body", False),
    ]

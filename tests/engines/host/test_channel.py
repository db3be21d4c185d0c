"""The channel between a gateway and its engine's process: everything, in order, however it is cut up."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engines.host.channel import Channel
from gateway.ownership import Peer


class End:
    """One end of a channel that says and hears strings."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.lost = asyncio.Event()
        self.channel: Channel[str, str] = Channel(str, self.heard.append, self.lost.set)


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return False


@given(messages=st.lists(st.text(), max_size=60), size=st.integers(1, 40))
async def test_any_chunking_gives_the_same_messages(messages: list[str], size: int) -> None:
    wire, speaker, listener = Wire(), End(), End()
    speaker.channel.connection_made(wire)
    for message in messages:
        speaker.channel.say(message)
    sent = b"".join(wire.written)
    for begin in range(0, len(sent), size):
        listener.channel.data_received(sent[begin : begin + size])
    assert listener.heard == messages


async def test_close_sends_what_was_said_and_ends_once() -> None:
    ours, theirs = socket.socketpair()
    first, second = End(), End()
    await first.channel.open(ours)
    await second.channel.open(theirs)
    large = "x" * 1_000_000
    for message in ("a", large, "b"):
        first.channel.say(message)
    first.channel.close()
    await second.lost.wait()
    assert second.heard == ["a", large, "b"]
    await first.lost.wait()
    # Nobody is there any more: nothing happens.
    second.channel.say("late")
    await asyncio.sleep(0)
    second.channel.close()


async def test_message_that_raises_costs_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    ours, theirs = socket.socketpair()
    first, heard, lost = End(), list[str](), asyncio.Event()

    def hear(message: str) -> None:
        heard.append(message)
        if message == "a":
            raise OSError(9, "Bad file descriptor")

    second: Channel[str, str] = Channel(str, hear, lost.set)
    await first.channel.open(ours)
    await second.open(theirs)
    for message in ("a", "b"):
        first.channel.say(message)
    first.channel.close()
    await lost.wait()
    assert heard == ["a", "b"]
    assert "a message of another process had no effect (str)" in caplog.text
    assert "Bad file descriptor" in caplog.text


async def test_a_message_that_cannot_be_sent_fails_alone() -> None:
    wire, speaker, listener = Wire(), End(), End()
    speaker.channel.connection_made(wire)
    speaker.channel.say("before")
    with pytest.raises(UnicodeEncodeError):
        speaker.channel.say("\ud800")
    speaker.channel.say("behind")
    listener.channel.data_received(b"".join(wire.written))
    assert listener.heard == ["before", "behind"]


@pytest.mark.parametrize("message", [1, None])
async def test_unknown_message_ends_the_channel(message: Any) -> None:
    ours, theirs = socket.socketpair()
    speaker: Channel[Any, str] = Channel(str, lambda _: None, lambda: None)
    listener = End()
    await speaker.open(ours)
    await listener.channel.open(theirs)
    speaker.say(message)
    await listener.lost.wait()
    assert listener.heard == []
    speaker.close()


async def test_one_that_does_not_read_loses_the_connection() -> None:
    ours, theirs = socket.socketpair()
    lost = asyncio.Event()
    speaker: Channel[str, str] = Channel(str, lambda _: None, lost.set)
    await speaker.open(ours)
    speaker.bound_unread(1_000_000)
    speaker.say("x" * 1_000)
    await asyncio.sleep(0)
    assert not lost.is_set()
    speaker.say("x" * 10_000_000)
    await lost.wait()
    theirs.close()


async def test_is_open_needs_no_turn_of_the_loop() -> None:
    ours, theirs = socket.socketpair()
    end = End()
    assert not end.channel.is_open
    await end.channel.open(ours)
    assert end.channel.is_open
    theirs.send(b"not read yet")
    theirs.close()
    assert not end.channel.is_open
    assert not end.lost.is_set(), "the event loop does not know it yet"
    await end.lost.wait()
    assert not end.channel.is_open


def test_closed_socket_is_not_open() -> None:
    ours, theirs = socket.socketpair()
    end = End()
    end.channel.connection_made(asyncio.Transport(extra={"socket": ours}))
    assert end.channel.is_open
    ours.close()
    assert not end.channel.is_open
    theirs.close()


async def test_process_of_another_user_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = socket.socketpair()
    end = End()
    monkeypatch.setattr("gateway.engines.host.channel.peer_of", lambda _: Peer(1, 65_534))
    await end.channel.open(ours)
    end.channel.say("a text")
    await end.lost.wait()
    assert not end.channel.is_open
    assert theirs.recv(1) == b""
    theirs.close()
    assert "uid 65534" in caplog.text

"""Lines on a reader's screen. The transcripts of lines.json are played in the JavaScript client, too."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gateway.client import Line, MessageRefused, Reconnected
from gateway.client.lines import Lines
from gateway.protocol.messages import (
    MeetingEnd,
    Participant,
    ParticipantLeft,
    ParticipantRemove,
    ServerMessage,
    SessionStart,
    TranslationDelta,
)
from tests.client.reading import everything, session_of
from tests.scripted_gateway import STARTED, Peer, delta, failed, refused, resumed, translated

TRANSCRIPTS = json.loads(Path(__file__).with_name("lines.json").read_text())
KEN = replace(STARTED, participants=[Participant("p2", "Ken", "en", [])])


def shown(line: Line) -> dict[str, Any]:
    fields = ("key", "speaker", "lang", "committed", "tentative", "final", "failure", "gone")
    return {
        name: value
        for name in fields
        if (value := getattr(line, name)) or name not in ("final", "failure", "gone")
    }


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda transcript: transcript["name"])
def test_transcript(transcript: dict[str, Any]) -> None:
    start = SessionStart(transcript["reads"], name="Ana", originals=transcript.get("originals", False))
    lines = Lines(start, KEN)
    for message, expected in transcript["steps"]:
        event = Reconnected(KEN) if message == "reconnected" else msgspec.convert(message, ServerMessage)
        assert [shown(line) for line in lines.apply(event)] == expected


def test_a_line_is_printed_as_it_is_read() -> None:
    line = Line(key="k", participant="p", utterance="u", speaker="Ana", lang="ja", committed="お", tentative="は")
    assert str(line) == "Ana: おは"
    assert str(replace(line, speaker="")) == "おは"
    assert str(replace(line, committed="", tentative="", failure="It failed.")) == "Ana: (It failed.)"


async def test_lines_and_finals_of_a_session() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        one, two = await peer.take(), await peer.take()
        await peer.say(
            delta(one, "ja", "[ja]"), translated(one, "ja", "[ja] One."), failed(two, "ja", "It failed.")
        )
        await peer.end()

    async with session_of(script, speaks="en") as session:
        await session.final("One.", "1")
        await session.final("Two.", "2")
        growing = session.lines()
        assert [(await anext(growing)).text for _ in range(2)] == ["[ja]", "[ja] One."]
        await growing.aclose()
        await session.end()
        (line,) = [line async for line in session.finals()]
    assert (line.key, line.final, line.failure is None) == ("p1/2/ja", True, False)


async def refusing(peer: Peer) -> None:
    await peer.start()
    utterance = await peer.take()
    await peer.say(
        refused("unsupported_option", "The model takes no context.", field="context"),
        refused("rate_limited", "Slower.", retry_after_ms=1, utterance="9"),
        refused("invalid_value", "No language.", utterance=utterance.id, field="lang"),
        translated(utterance, "ja", "[ja] One."),
    )
    await peer.end()


async def test_what_is_refused_is_raised_and_the_session_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "gateway.client")
    async with session_of(refusing) as session:
        await session.final("One.", "1")
        await session.end()
        with pytest.raises(MessageRefused, match=r"^No language\.$") as caught:
            await anext(session.finals())
        assert caught.value.error.utterance == "1"
        assert [str(line) async for line in session.finals()] == ["[ja] One."]
    assert [record.getMessage() for record in caplog.records] == ["The model takes no context."]


async def test_a_wait_that_times_out_ends_no_loop() -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.start()
        one = await peer.take()
        await go_on.wait()
        await peer.say(translated(one, "ja", "[ja] One."))
        await peer.leave(1000)

    async with session_of(script) as session:
        await session.final("One.", "1")
        for lines in (session.lines(), session.finals()):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(lines), 0.01)
        go_on.set()
        assert [str(line) async for line in lines] == ["[ja] One."]


async def test_another_loop_goes_on_with_what_grows() -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(KEN)
        one, two, three = await peer.take(), await peer.take(), await peer.take()
        kens = [replace(delta(one, "ja", text), participant="p2") for text in ("a", "b", "c")]
        await peer.say(kens[0], refused("invalid_value", "No.", two.id, field="lang"))
        await peer.say(kens[1], replace(translated(three, "ja", "[ja] Three."), participant="p2"), kens[2])
        await peer.leave(1000)

    async with session_of(script) as session:
        for id in ("1", "2", "3"):
            await session.final("Text.", id)
        lines = session.lines()
        assert str(await anext(lines)) == "Ken: a"
        with pytest.raises(MessageRefused):
            await anext(lines)
        async for event in session:  # events may be read between the loops
            if isinstance(event, TranslationDelta):
                break
        assert [line.text async for line in session.lines()] == ["[ja] Three.", "abc"]


async def test_lines_of_one_event_wait_for_the_next_loop() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        one, two = await peer.take(), await peer.take()
        await peer.say(delta(one, "ja", "a"), delta(two, "ja", "b"))
        await peer.say(ParticipantLeft("p1", "", None, []))
        await peer.leave(1000)

    async with session_of(script) as session:
        await session.final("One.", "1")
        await session.final("Two.", "2")
        async for line in session.lines():
            if line.gone:
                break
        assert [(line.utterance, line.gone) async for line in session.lines()] == [("2", True)]


async def test_a_refused_command_of_a_host_is_logged_and_ends_no_loop(caplog: pytest.LogCaptureFixture) -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.expect(ParticipantRemove)
        await peer.say(refused("invalid_value", "Nobody.", field="participant"))
        await peer.expect(MeetingEnd)
        await peer.say(refused("forbidden", "Only a host."))
        one = await peer.take()
        await peer.say(translated(one, "ja", "[ja] One."), refused("forbidden", "Not again."))
        await peer.leave(1000)

    caplog.set_level(logging.WARNING, "gateway.client")
    async with session_of(script) as session:
        await session.remove("gone")
        await session.end_meeting()
        await session.final("One.", "1")
        assert str(await anext(session.lines())) == "[ja] One."
        await everything(session)
    assert [record.getMessage().partition("): ")[2] for record in caplog.records] == [
        "Nobody.",
        "Only a host.",
        "Not again.",
    ]


async def test_a_command_of_a_host_that_is_refused_for_the_moment_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.expect(ParticipantRemove)
        # The second answers something else.
        await peer.say(*2 * [refused("rate_limited", "Too many messages.", retry_after_ms=10)])
        await peer.leave(1000)

    caplog.set_level(logging.WARNING, "gateway.client")
    async with session_of(script) as session:
        await session.remove("bo")
        assert [line async for line in session.lines()] == []
    assert [record.getMessage().partition("): ")[2] for record in caplog.records] == ["Too many messages."]


async def test_a_refusal_is_logged_where_events_are_read(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "gateway.client")
    async with session_of(refusing) as session:
        await session.final("One.", "1")
        await session.end()
        await everything(session)
    assert [record.getMessage() for record in caplog.records] == [
        "The gateway refused what was sent (unsupported_option): The model takes no context.",
        "The gateway refused what was sent (invalid_value): No language.",
    ]


async def test_a_lost_connection_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def script(peer: Peer) -> None:
        start = await peer.expect(SessionStart)
        await peer.say(KEN if start.resume is None else resumed(start))
        if peer.visit == 1:
            peer.drop()
        await peer.leave(1000)

    caplog.set_level(logging.WARNING, "gateway.client")
    async with session_of(script) as session:
        assert [line async for line in session.lines()] == []
    (record,) = caplog.records
    assert record.getMessage().endswith("was lost. Trying again.")

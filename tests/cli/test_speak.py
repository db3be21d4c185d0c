"""`gateway speak`: what is typed or piped in is said, at its pace, and none of it is lost."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from gateway.cli.flags.parser import parser
from gateway.cli.speak import Speech, growing
from gateway.client import ClientSession
from gateway.protocol.messages import (
    Error,
    SessionDraining,
    SessionEnd,
    SessionStart,
    UtteranceAccepted,
    UtteranceFinal,
    UtterancePartial,
)
from tests.cli.commands import on_a_terminal, run, run_against
from tests.cli.meetings import caption, command, interrupted, lines, started, taking_everything
from tests.scripted_gateway import Peer, scripted_gateway


@pytest.mark.parametrize(
    ("text", "grows"),
    [
        ("Good morning, all.", ["Good", "Good morning,", "Good morning, all."]),
        ("Ja", ["Ja"]),
        ("会議を始めます", ["会議", "会議を始", "会議を始めま", "会議を始めます"]),
        ("Das ist 会議です。", ["Das", "Das ist", "Das ist 会議", "Das ist 会議です", "Das ist 会議です。"]),
    ],
)
def test_a_text_grows_word_by_word(text: str, grows: list[str]) -> None:
    assert growing(text) == grows


async def test_lines_are_said() -> None:
    said: list[UtteranceFinal] = []

    async def script(peer: Peer) -> None:
        assert await peer.expect(SessionStart) == SessionStart(
            reads=[], speaks="de", meeting="standup", name="Ben"
        )
        await peer.say(started())
        while isinstance(message := await peer.receive(), UtteranceFinal):
            said.append(message)
            await peer.say(UtteranceAccepted(message.id, message.rev, len(said)))
            await peer.say(caption(message.text, by="c0c0c0c0"))
        assert isinstance(message, SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        argv = ["speak", "--meeting", "standup", "--lang", "de-AT", "--name", "Ben", "--url"]
        ran = await run(*argv, url, stdin="Guten Morgen.\n\n  Fangen wir an?\r\n" + "x" * 99)
    assert ran == (
        0,
        "",
        f"✓ Guten Morgen.\n✓ Fangen wir an?\n✓ {'x' * 71}…\ngateway: 3 said, 3 accepted, 0 refused.\n",
    )
    assert [(each.id, each.text) for each in said] == [
        ("1", "Guten Morgen."),
        ("3", "Fangen wir an?"),
        ("4", "x" * 99),
    ]


class Taken:
    """A session that takes everything and answers nothing by itself."""

    def __init__(self) -> None:
        self.started = started()
        self.said: list[str] = []
        self.ended = False

    async def final(self, text: str, _id: str) -> None:
        if len(text) > 1_000:
            raise ValueError("The message is too long.")
        self.said.append(text)

    async def end(self) -> None:
        self.ended = True


async def as_far_as_it_goes() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_few_lines_are_on_their_way_at_once() -> None:
    session = Taken()
    speech = Speech(cast(ClientSession, session), None)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(speech.say(lines(*(f"line {number}" for number in range(1, 11))), None))
        await as_far_as_it_goes()
        assert len(session.said) == 8
        speech.note_event(UtteranceAccepted("3", 1, 1))
        speech.note_event(UtteranceAccepted("7", 1, 2))
        await as_far_as_it_goes()
        assert len(session.said) == 10
        # The gateway takes nothing after the end: it comes when everything has an answer.
        for number in (1, 2, 4, 5, 6, 8, 9):
            speech.note_event(UtteranceAccepted(str(number), 1, 3))
        await as_far_as_it_goes()
        assert not session.ended
        speech.note_event(UtteranceAccepted("10", 1, 3))
    assert session.ended
    assert speech.status == 0


async def test_a_line_too_long_to_be_sent_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    session = Taken()
    speech = Speech(cast(ClientSession, session), None)
    await speech.say(lines("x" * 2_000), None)
    speech.sum_up()
    assert speech.status == 3
    assert capsys.readouterr().err == (
        "gateway: line 1: The message is too long.\ngateway: 1 said, 0 accepted, 1 refused.\n"
    )


async def test_a_refused_line_is_named_and_harms_no_other() -> None:
    async def script(peer: Peer) -> None:
        await peer.start(started())
        first, second = await peer.expect(UtteranceFinal), await peer.expect(UtteranceFinal)
        # One that is refused for the moment is the client's business, which sends it again.
        await peer.say(Error("overloaded", "Full.", retryable=True, retry_after_ms=1, utterance=second.id))
        await peer.say(Error("limit_exceeded", "Too long.", utterance=first.id))
        again = await peer.expect(UtteranceFinal)
        assert again.id == second.id
        await peer.say(UtteranceAccepted(again.id, again.rev, 1))
        await peer.end()

    ran = await run_against(script, "speak", "--meeting", "m", stdin="\nlong\nshort\n")
    assert ran == (3, "", "gateway: line 2: Too long.\n✓ short\ngateway: 2 said, 1 accepted, 1 refused.\n")


@pytest.mark.parametrize(
    ("flags", "pace"),
    [
        ([], None),
        (["--words-per-minute"], 150.0),
        (["--words-per-minute", "90.5"], 90.5),
        (["--words-per-minute", "--name", "Ana"], 150.0),
    ],
)
def test_the_pace_of_a_speech(flags: list[str], pace: float | None) -> None:
    assert parser().parse_args(["speak", "--meeting", "m", *flags]).words_per_minute == pace


async def test_lines_are_said_word_by_word() -> None:
    received: list[UtterancePartial | UtteranceFinal] = []

    async def script(peer: Peer) -> None:
        await peer.start(started())
        while not isinstance(message := await peer.receive(), SessionEnd):
            assert isinstance(message, UtterancePartial | UtteranceFinal)
            received.append(message)
            if isinstance(message, UtteranceFinal):
                await peer.say(UtteranceAccepted(message.id, message.rev, 1))
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        argv = ["speak", "--meeting", "m", "--words-per-minute", "6000"]
        ran = await run(*argv, "--url", url, stdin="Good morning, all.\nYes.\n")
    assert ran.status == 0
    assert [(type(each), each.id, each.rev, each.text) for each in received] == [
        (UtterancePartial, "1", 1, "Good"),
        (UtterancePartial, "1", 2, "Good morning,"),
        (UtteranceFinal, "1", 3, "Good morning, all."),
        (UtteranceFinal, "2", 1, "Yes."),
    ]
    # A word takes 10 ms at this pace, at least, and the lines follow each other.
    times = [(each.start_ms or 0, each.end_ms or 0) for each in received]
    assert len({start for start, _ in times[:3]}) == 1
    assert times[2][1] - times[2][0] >= 29
    assert times[3][0] >= times[2][1]


async def test_a_gateway_that_ends_the_session() -> None:
    async def script(peer: Peer) -> None:
        await peer.start(started())
        await peer.expect(UtteranceFinal)
        await peer.leave(1000)

    ran = await run_against(script, "speak", "--meeting", "m", stdin="Hello.\n")
    assert ran.status == 1
    summary, closed = ran.err.splitlines()
    assert summary == "gateway: 1 said, 0 accepted, 0 refused, 1 without an answer."
    assert closed.startswith("gateway: The gateway at ")


async def test_nothing_on_stdin_is_nothing_said() -> None:
    ran = await run_against(taking_everything, "speak", "--meeting", "m")
    assert ran == (0, "", "gateway: 0 said, 0 accepted, 0 refused.\n")


@pytest.mark.parametrize(
    ("answers", "status", "summary"),
    [
        (True, 0, "1 said, 1 accepted, 0 refused."),
        (False, 1, "1 said, 0 accepted, 0 refused, 1 without an answer."),
    ],
)
async def test_ctrl_c_ends_a_speech_at_once(answers: bool, status: int, summary: str) -> None:
    reached = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.start(started())
        utterance = await peer.expect(UtteranceFinal)
        if answers:
            await peer.say(UtteranceAccepted(utterance.id, utterance.rev, 1))
        reached.set()
        await peer.connection.wait_closed()
        assert peer.connection.close_code == 1000

    async with scripted_gateway(script) as url, command("speak", "--meeting", "m", "--url", url) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"Hello.\n")
        if answers:
            assert await process.stderr.readline() == "✓ Hello.\n".encode()
        await reached.wait()
        assert await interrupted(process) == (status, "", f"gateway: {summary}\n")


async def test_speaking_on_a_terminal() -> None:
    async def script(peer: Peer) -> None:
        await peer.start(started())
        first = await peer.expect(UtteranceFinal)
        assert first.text == "Good morning."
        await peer.say(UtteranceAccepted(first.id, first.rev, 1))
        second = await peer.expect(UtteranceFinal)
        assert second.text == "Hm."  # the arrow key is no part of it
        await peer.say(Error("limit_exceeded", "Too\x1b[2J long.", utterance=second.id))
        await typing.wait()
        await peer.say(SessionDraining(1_000))
        await peer.end()

    typing = asyncio.Event()
    async with (
        scripted_gateway(script) as url,
        on_a_terminal("speak", "--meeting", "m", "--lang", "en", "--url", url) as terminal,
    ):
        await terminal.until("Speaking en in m: each line is an utterance; Ctrl-D ends.\r\nen> ")
        terminal.type("Good morning.\n")
        await terminal.until("en ✓> ")
        terminal.type("Hm.\x1b[D\n")
        await terminal.until("gateway: Too [2J long.\r\nen ✗> ")
        typing.set()
        told = await terminal.until("the meeting goes on in a moment.\r\nen ✗> ")
        assert told.startswith("\r\ngateway: The gateway is restarting; ")  # below what is being typed
        terminal.type("\x04")
        assert await terminal.rest() == "\r\ngateway: 2 said, 1 accepted, 1 refused.\r\n"
        assert await terminal.process.wait() == 3

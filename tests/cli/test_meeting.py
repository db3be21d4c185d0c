"""`gateway speak` and `gateway read`: what a meeting looks like from terminals and pipes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast, get_args

import pytest

from gateway.cli.flags import parser
from gateway.cli.main import main
from gateway.cli.meeting import Interruptible, MeetingOptions
from gateway.cli.read import Board
from gateway.cli.speak import _Speech, growing
from gateway.cli.terminal import Row
from gateway.cli.transcript import transcript_url
from gateway.client import ClientSession, Reconnected
from gateway.domain.sessions import Stability
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Error,
    Participant,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    Ping,
    Pong,
    Resume,
    ServerMessage,
    SessionDraining,
    SessionEnd,
    SessionStart,
    SessionStarted,
    Timings,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancelled,
    UtteranceFinal,
    UtterancePartial,
)
from tests.cli.test_main import COMMAND, ROOT, Ran, on_a_terminal, run
from tests.gateways import running
from tests.scripted_gateway import Peer, scripted_gateway

ANA, BEN = "a0a0a0a0", "b0b0b0b0"
NAMES = {ANA: "Ana", BEN: "Ben"}
OFFSETS = iter(range(1, 1_000_000))


def started(
    *, offset: int = 0, recovered: bool | None = None, participants: list[Participant] | None = None
) -> SessionStarted:
    return SessionStarted(
        session="secret",
        participant="c0c0c0c0",
        meeting="standup",
        epoch="e1",
        offset=offset,
        recovered=recovered,
        languages=["en", "ja", "de", "fr"],
        participants=participants or [],
        options=[],
        limits=Limits(),
    )


def caption(text: str, utterance: str = "1", *, by: str = ANA, lang: str = "en", final: bool = True) -> Caption:
    offset = next(OFFSETS) if final else None
    return Caption(by, utterance, NAMES.get(by, ""), lang, 1, text, final, offset)


def delta(
    committed: str, tentative: str = "", utterance: str = "1", *, by: str = ANA, lang: str = "ja"
) -> TranslationDelta:
    return TranslationDelta(by, utterance, lang, 1, committed, tentative)


def final(text: str, utterance: str = "1", *, by: str = ANA, lang: str = "ja") -> TranslationFinal:
    return TranslationFinal(
        by, utterance, NAMES.get(by, ""), lang, 1, text, next(OFFSETS), Timings(1.0, 2.0, 3.0), 4
    )


def failed(message: str, utterance: str = "1", *, by: str = ANA, lang: str = "ja") -> TranslationFailed:
    return TranslationFailed(by, utterance, NAMES.get(by, ""), lang, 1, "engine_failed", message, next(OFFSETS))


# ---------------------------------------------------------------- usage


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["speak"], "the following arguments are required: --meeting"),
        (
            ["speak", "--meeting", "stand up"],
            "'stand up' is not a meeting id (letters, digits and . _ ~ -, but not only dots)",
        ),
        (["speak", "--meeting", "a/../b"], "'a/../b' is not a meeting id"),
        (
            ["speak", "--meeting", ".."],
            "'..' is not a meeting id (letters, digits and . _ ~ -, but not only dots)",
        ),
        (["speak", "--meeting", "m", "--words-per-minute", "0"], "'0' is not a number of words"),
        (["speak", "--meeting", "m", "--words-per-minute", "nan"], "'nan' is not a number of words"),
        (["speak", "--meeting", "m", "--url", "ftp://x"], "'ftp://x' is not the address of a gateway"),
        (["read", "ja"], "the following arguments are required: --meeting"),
        (["read", "--meeting", "m"], "give a language to read, such as ja"),
        (["read", "--meeting", "m", ","], "give languages such as ja,de"),
        (["read", "--meeting", "", "ja"], "'' is not a meeting"),
        (["read", "--meeting", "m", "--json", "--transcript", "srt"], "not allowed with argument --json"),
        (["read", "--meeting", "m", "--transcript", "doc"], "invalid choice: 'doc'"),
        (["read", "--meeting", "m", "ja", "--stability", "early"], "invalid choice: 'early'"),
        (["read", "--meeting", "m", "ja", "--url", "ftp://x"], "'ftp://x' is not the address of a gateway"),
        (["read", "--meeting", "m", "--transcript", "srt", "--url", ""], "'' is not the address of a gateway"),
    ],
)
def test_wrong_usage(argv: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["speak"], ["read", "ja"]])
async def test_no_gateway_is_one_sentence(argv: list[str]) -> None:
    async with scripted_gateway(silent) as url:
        pass  # and now nobody listens there
    ran = await run(*argv, "--meeting", "standup", "--url", url)
    address = url.replace("http:", "ws:")
    assert ran == (1, "", f"gateway: No gateway answers at {address}: start one with `gateway serve`.\n")


async def silent(peer: Peer) -> None:
    await peer.connection.wait_closed()


@pytest.mark.parametrize("argv", [["speak", "--lang", "xx"], ["read", "xx"]])
async def test_an_unknown_language_is_one_sentence(argv: list[str]) -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(
            Error("unsupported_language", "The model does not know the language 'xx'; it knows en, ja.")
        )
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        ran = await run(*argv, "--meeting", "standup", "--url", url)
    assert ran == (3, "", "gateway: The model does not know the language 'xx'; it knows en, ja.\n")


@pytest.mark.parametrize("argv", [["speak"], ["read", "ja"]])
async def test_an_engine_that_loads_is_waited_for(argv: list[str]) -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(Error("engine_unavailable", "It loads.", retryable=True, retry_after_ms=1))
        await peer.expect(SessionStart)
        await peer.say(Error("invalid_value", "No."))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        ran = await run(*argv, "--meeting", "standup", "--url", url)
    assert ran == (3, "", "gateway: The gateway's engine is not ready yet; waiting for it.\ngateway: No.\n")


# ---------------------------------------------------------------- speak


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


async def taking_everything(peer: Peer) -> None:
    """A gateway that accepts whatever is said, until the end."""
    await peer.expect(SessionStart)
    await peer.say(started())
    while isinstance(message := await peer.receive(), UtteranceFinal):
        await peer.say(UtteranceAccepted(message.id, message.rev, next(OFFSETS)))
    assert isinstance(message, SessionEnd), message
    await peer.leave(1000)


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


async def lines(*texts: str) -> AsyncGenerator[str, None]:
    for text in texts:
        yield text


async def as_far_as_it_goes() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_few_lines_are_on_their_way_at_once() -> None:
    session = Taken()
    speech = _Speech(cast(ClientSession, session), None)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(speech.say(lines(*(f"line {number}" for number in range(1, 11))), None))
        await as_far_as_it_goes()
        assert len(session.said) == 8
        speech.take(UtteranceAccepted("3", 1, 1))
        speech.take(UtteranceAccepted("7", 1, 2))
        await as_far_as_it_goes()
        assert len(session.said) == 10
        # The gateway takes nothing after the end: it comes when everything has an answer.
        for number in (1, 2, 4, 5, 6, 8, 9):
            speech.take(UtteranceAccepted(str(number), 1, 3))
        await as_far_as_it_goes()
        assert not session.ended
        speech.take(UtteranceAccepted("10", 1, 3))
    assert session.ended
    assert speech.status == 0


async def test_a_line_too_long_to_be_sent_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    session = Taken()
    speech = _Speech(cast(ClientSession, session), None)
    await speech.say(lines("x" * 2_000), None)
    speech.sum_up()
    assert speech.status == 3
    assert capsys.readouterr().err == (
        "gateway: line 1: The message is too long.\ngateway: 1 said, 0 accepted, 1 refused.\n"
    )


async def test_a_refused_line_is_named_and_harms_no_other() -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(started())
        first, second = await peer.expect(UtteranceFinal), await peer.expect(UtteranceFinal)
        # One that is refused for the moment is the client's business, which sends it again.
        await peer.say(Error("overloaded", "Full.", retryable=True, retry_after_ms=1, utterance=second.id))
        await peer.say(Error("limit_exceeded", "Too long.", utterance=first.id))
        again = await peer.expect(UtteranceFinal)
        assert again.id == second.id
        await peer.say(UtteranceAccepted(again.id, again.rev, 1))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("speak", "--meeting", "m", "--url", url, stdin="\nlong\nshort\n")
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


async def test_lines_typed_on_a_terminal_are_said_word_by_word() -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(started())
        for id in ("1", "2"):
            texts = [(await peer.expect(UtterancePartial)).text for _ in range(2)]
            utterance = await peer.expect(UtteranceFinal)
            assert (*texts, utterance.text) == ("Good", "Good morning,", "Good morning, all.")
            assert (utterance.id, utterance.rev) == (id, 3)
            await peer.say(UtteranceAccepted(utterance.id, utterance.rev, 1))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    argv = ("speak", "--meeting", "m", "--words-per-minute", "6000", "--url")
    async with scripted_gateway(script) as url, on_a_terminal(*argv, url) as terminal:
        await terminal.until("en> ")
        terminal.type("Good morning, all.\n")
        await terminal.until("en ✓> ")
        terminal.type("Good morning, all.\n")
        await terminal.until("en ✓> ")
        terminal.type("\x04")
        assert await terminal.rest() == "\r\ngateway: 2 said, 2 accepted, 0 refused.\r\n"
        assert await terminal.process.wait() == 0


async def test_lines_are_said_word_by_word() -> None:
    received: list[UtterancePartial | UtteranceFinal] = []

    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(started())
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


def losing(
    first: Callable[[Peer], Awaitable[None]], second: Callable[[Peer], Awaitable[None]]
) -> Callable[[Peer], Awaitable[None]]:
    """A gateway whose first connection breaks after its script; the second one is for who comes back."""
    connections = 0

    async def script(peer: Peer) -> None:
        nonlocal connections
        connections += 1
        if connections > 1:
            await second(peer)
            return
        await first(peer)
        peer.connection.transport.abort()

    return script


async def test_a_lost_connection_is_told_and_nothing_said_is_lost() -> None:
    async def first(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(started())
        await peer.expect(UtteranceFinal)

    async def second(peer: Peer) -> None:
        start = await peer.expect(SessionStart)
        assert start.resume == Resume("secret", "e1", 0)
        await peer.say(started(recovered=True))
        utterance = await peer.expect(UtteranceFinal)
        assert (utterance.id, utterance.text) == ("1", "Hello.")
        await peer.say(UtteranceAccepted(utterance.id, utterance.rev, 1))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(losing(first, second)) as url:
        ran = await run("speak", "--meeting", "m", "--url", url, stdin="Hello.\n")
    assert ran.status == 0
    address = url.replace("http:", "ws:")
    assert ran.err.splitlines() == [
        f"gateway: The connection to the gateway at {address} was lost. Trying again.",
        "gateway: The connection is back.",
        "✓ Hello.",
        "gateway: 1 said, 1 accepted, 0 refused.",
    ]


async def test_a_gateway_that_ends_the_session() -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(started())
        await peer.expect(UtteranceFinal)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("speak", "--meeting", "m", "--url", url, stdin="Hello.\n")
    assert ran.status == 1
    summary, closed = ran.err.splitlines()
    assert summary == "gateway: 1 said, 0 accepted, 0 refused, 1 without an answer."
    assert closed.startswith("gateway: The gateway at ")


async def test_nothing_on_stdin_is_nothing_said() -> None:
    async with scripted_gateway(taking_everything) as url:
        ran = await run("speak", "--meeting", "m", "--url", url)
    assert ran == (0, "", "gateway: 0 said, 0 accepted, 0 refused.\n")


@contextlib.asynccontextmanager
async def command(*argv: str) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """A running command on pipes."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*COMMAND, *argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def interrupted(process: asyncio.subprocess.Process) -> Ran:
    """What is still to come after Ctrl-C; stdin stays open until then."""
    assert process.stdout is not None
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
    return Ran(await process.wait(), out.decode(), err.decode())


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
        await peer.expect(SessionStart)
        await peer.say(started())
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
        await peer.expect(SessionStart)
        await peer.say(started())
        first = await peer.expect(UtteranceFinal)
        assert first.text == "Good morning."
        await peer.say(UtteranceAccepted(first.id, first.rev, 1))
        second = await peer.expect(UtteranceFinal)
        assert second.text == "Hm."  # the arrow key is no part of it
        await peer.say(Error("limit_exceeded", "Too\x1b[2J long.", utterance=second.id))
        await typing.wait()
        await peer.say(SessionDraining(1_000))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

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


# ---------------------------------------------------------------- what a reader sees


def board(*langs: str, participants: list[Participant] | None = None) -> Board:
    """Of a meeting that was joined, with nothing said before."""
    shown = Board(langs or ("ja",))
    assert shown.take(started(participants=participants)) == []
    shown.live = True
    return shown


def plain(rows: list[Row]) -> list[str]:
    """Rows as somebody reads them; what may still change in brackets."""
    return [row.label + row.text + (f"[{row.tentative}]" if row.tentative else "") for row in rows]


def test_a_translation_grows_and_is_finished() -> None:
    shown = board(participants=[Participant(ANA, "Ana", "en", [])])
    assert shown.take(delta("こん")) == []
    assert plain(shown.unfinished(6)) == ["Ana: こん"]
    shown.take(delta("にち", "わ"))
    assert plain(shown.unfinished(6)) == ["Ana: こんにち[わ]"]
    shown.take(delta("は"))
    assert plain(shown.unfinished(6)) == ["Ana: こんにちは"]
    assert plain(shown.take(final("こんにちは。"))) == ["Ana: こんにちは。"]
    assert shown.unfinished(6) == []


def test_a_caption_that_may_change_is_replaced() -> None:
    shown = board("en")
    shown.take(caption("Good mourning", final=False))
    shown.take(caption("Good morning, every", final=False))
    assert plain(shown.unfinished(6)) == ["Ana: [Good morning, every]"]
    assert plain(shown.take(caption("Good morning, everyone."))) == ["Ana: Good morning, everyone."]
    assert shown.unfinished(6) == []


def test_a_translation_grows_while_its_utterance_is_being_said() -> None:
    # One column for each language: what was said, and its translations, in the order in which they were asked for.
    shown = board("en", "ja", "de", participants=[Participant(ANA, "Ana", "en", [])])
    shown.take(caption("Good", final=False))
    shown.take(delta("", "Gute", lang="de"))
    shown.take(delta("", "いい"))
    assert plain(shown.unfinished(6)) == ["en  Ana: [Good]", "ja  Ana: [いい]", "de  Ana: [Gute]"]
    # The tentative text is replaced, the committed text stays; a delta may bring only one of them.
    shown.take(caption("Good morning", final=False))
    shown.take(delta("Gut", "en Mor", lang="de"))
    shown.take(delta("", "おはよ"))
    assert plain(shown.unfinished(6)) == [
        "en  Ana: [Good morning]",
        "ja  Ana: [おはよ]",
        "de  Ana: Gut[en Mor]",
    ]
    # What was said is final; the translations go on where they were, and each is replaced once.
    assert plain(shown.take(caption("Good morning, all."))) == ["en  Ana: Good morning, all."]
    shown.take(delta("en Morgen", "", lang="de"))
    assert plain(shown.unfinished(6)) == ["ja  Ana: [おはよ]", "de  Ana: Guten Morgen"]
    assert plain(shown.take(final("Einen guten Morgen.", lang="de"))) == ["de  Ana: Einen guten Morgen."]
    assert plain(shown.take(final("おはよう"))) == ["ja  Ana: おはよう"]
    assert shown.unfinished(6) == []


def test_only_committed_text_is_there_for_good() -> None:
    shown = board()
    shown.take(delta("", "Gute"))
    shown.take(delta("", ""))
    assert plain(shown.unfinished(6)) == [""]
    shown.take(delta("Hallo", ""))
    assert plain(shown.unfinished(6)) == ["Hallo"]


def test_a_recogniser_that_finds_out_late_which_language_it_hears() -> None:
    shown = board("en", "de")
    shown.take(caption("Goo tin", lang="en", final=False))
    shown.take(delta("Guh", "tin", lang="de"))
    assert plain(shown.unfinished(6)) == ["en  Ana: [Goo tin]", "de  Ana: Guh[tin]"]
    # What was a translation is what was said, and the other way round: neither is shown behind the other.
    shown.take(caption("Guten Tag", lang="de", final=False))
    shown.take(delta("Good ", "day", lang="en"))
    assert plain(shown.unfinished(6)) == ["en  Ana: Good [day]", "de  Ana: [Guten Tag]"]


def test_several_languages_have_tags_and_several_speakers_lines() -> None:
    shown = board("ja", "zh-hant")
    shown.take(ParticipantJoined(BEN, "Ben", "de", []))
    # The same id of two speakers is two utterances.
    shown.take(delta("会", by=BEN))
    shown.take(delta("開", by=BEN, lang="zh-hant"))
    shown.take(delta("お"))
    shown.take(delta("議", by=BEN))
    assert plain(shown.unfinished(6)) == ["ja       Ben: 会議", "zh-hant  Ben: 開", "ja       お"]
    assert plain(shown.take(final("おはよう"))) == ["ja       Ana: おはよう"]
    assert plain(shown.unfinished(6)) == ["ja       Ben: 会議", "zh-hant  Ben: 開"]


def test_a_few_unfinished_lines_are_shown_those_that_moved_last() -> None:
    shown = board()
    for number in range(8):
        shown.take(delta(f"{number}", utterance=str(number)))
    shown.take(delta("!", utterance="2"))
    assert plain(shown.unfinished(3)) == ["2!", "6", "7"]


def test_lines_that_grow_together_do_not_take_turns() -> None:
    shown = board()
    for number in range(4):
        shown.take(delta(f"{number}", utterance=str(number)))
    assert plain(shown.unfinished(3)) == ["1", "2", "3"]
    for _ in range(5):
        for number in range(4):
            shown.take(delta("+", utterance=str(number)))
            assert [row.label + row.text[:1] for row in shown.unfinished(3)] == ["1", "2", "3"]
    # One that stands still gives way in the end, and a finished one at once.
    for _ in range(6):
        shown.take(delta("+", utterance="0"))
    assert [row.text[:1] for row in shown.unfinished(3)] == ["0", "2", "3"]
    shown.take(final("2", utterance="2"))
    assert [row.text[:1] for row in shown.unfinished(3)] == ["0", "1", "3"]


def test_what_is_never_finished_does_not_pile_up() -> None:
    shown = board()
    for number in range(10_000):
        shown.take(delta("x", utterance=str(number), by=f"{number:08x}"))
        shown.take(ParticipantJoined(f"{number:08x}", f"P{number}", None, []))
    assert len(shown.unfinished(10_000)) == 200
    assert len(shown._names) == 1_000


def test_what_was_said_before_is_dimmed() -> None:
    shown = Board(["ja"])
    shown.take(started())
    (before,) = shown.take(final("前", "1"))
    shown.live = True
    (now,) = shown.take(final("今", "2"))
    assert (before.dim, now.dim) == (True, False)


def test_what_was_missed_is_news() -> None:
    shown = Board(["ja"])
    shown.take(started())
    shown.take(Reconnected(started(recovered=True)))
    (row,) = shown.take(final("逃した"))
    assert not row.dim


def test_a_failure_is_told_in_place_of_the_translation() -> None:
    shown = board()
    shown.take(delta("こ"))
    (row,) = shown.take(failed("The engine failed."))
    assert (row.label, row.text, row.dim) == ("Ana: ", "(not translated: The engine failed.)", True)
    assert shown.unfinished(6) == []


def test_what_is_given_up_goes_with_its_translations_and_nothing_else_does() -> None:
    shown = board("ja", "en")
    shown.take(caption("We should", "1", final=False))
    shown.take(delta("すべ", utterance="1"))
    shown.take(delta("Ja", by=BEN))
    assert shown.take(UtteranceCancelled(ANA, "1")) == []
    assert plain(shown.unfinished(6)) == ["ja  Ja"]


def test_who_comes_and_goes() -> None:
    shown = board("ja", "en")
    assert plain(shown.take(ParticipantJoined(ANA, "Ana", "en", ["de"]))) == ["— Ana joined, speaking en"]
    assert plain(shown.take(ParticipantJoined("d0", "", None, ["de"]))) == ["— Somebody joined"]
    shown.take(caption("I have to le", "1", final=False))
    shown.take(delta("行か", "なけ", utterance="1"))
    shown.take(delta("こんにち", utterance="0"))
    shown.take(delta("Ja", by=BEN))
    assert plain(shown.take(ParticipantLeft(ANA, "Ana", "en", ["de"]))) == ["— Ana left"]
    # The sentence in the middle of which she left is never finished, neither what was said nor its translation.
    assert plain(shown.unfinished(6)) == ["ja  Ja"]
    # What she had said before is translated on, and begins with what was shown of it.
    shown.take(delta("は", utterance="0"))
    assert plain(shown.unfinished(6)) == ["ja  Ana: こんにちは", "ja  Ja"]
    assert plain(shown.take(final("こんにちは。", utterance="0"))) == ["ja  Ana: こんにちは。"]
    assert plain(shown.unfinished(6)) == ["ja  Ja"]


def test_a_new_name_is_used() -> None:
    shown = board(participants=[Participant(ANA, "Ana", "en", [])])
    shown.take(ParticipantUpdated(ANA, "Dr. Ana", "de", []))
    shown.take(delta("お"))
    assert plain(shown.unfinished(6)) == ["Dr. Ana: お"]


@pytest.mark.parametrize("again", [started(), Reconnected(started())])
def test_what_was_unfinished_is_void_after_a_restart(again: SessionStarted | Reconnected) -> None:
    shown = board()
    shown.take(delta("こん"))
    assert shown.take(again) == []
    assert shown.unfinished(6) == []
    shown.take(delta("こんにちは"))
    assert plain(shown.unfinished(6)) == ["こんにちは"]


def test_nobody_drives_the_terminal_of_a_reader() -> None:
    evil = "\x1b]0;owned\x07\r\n\u202e"
    shown = board("ja", "en")
    NAMES["evil"] = evil
    rows = shown.take(ParticipantJoined("evil", evil, evil, [evil]))
    shown.take(delta(evil, evil, by="evil"))
    shown.take(caption(evil, "2", by="evil", lang=evil, final=False))
    rows += shown.unfinished(6)
    rows += shown.take(final(evil, by="evil", lang=evil)) + shown.take(failed(evil, by="evil"))
    rows += shown.take(caption(evil, "2", by="evil", lang=evil)) + shown.take(
        ParticipantLeft("evil", evil, None, [])
    )
    text = "".join(plain(rows))
    assert text.count("]0;owned") >= 10
    assert set(text) & set("\x1b\x07\r\n\u202e") == set()


# ---------------------------------------------------------------- read


async def joined(peer: Peer, *before: ServerMessage, stability: Stability = "live") -> None:
    """The reader's start, with what was said before they came."""
    start = await peer.expect(SessionStart)
    assert start == SessionStart(reads=["ja", "de"], meeting="standup", stability=stability)
    await peer.say(started(participants=[Participant(ANA, "Ana", "en", []), Participant("d0", "", None, ["de"])]))
    await peer.say(*before)
    ping = await peer.expect(Ping)
    await peer.say(Pong(ping.nonce))


READ = ("read", "--meeting", "standup", "ja", "de", "--url")


@pytest.mark.parametrize("langs", [["ja", "de"], ["ja,de-AT", "ja"], ["--lang", "ja,de"], ["ja", "--lang", "de"]])
async def test_captions_in_a_pipe(langs: list[str]) -> None:
    async def script(peer: Peer) -> None:
        # Where only finished texts are printed, none but those are asked for.
        await joined(peer, final("前", "0"), stability="final")
        await peer.say(ParticipantJoined(BEN, "Ben", "de", []))
        await peer.say(
            delta("お", "は"), final("お\tは\nよう"), caption("Mo", "1", by=BEN, lang="de", final=False)
        )
        await peer.say(caption("Morgen", "1", by=BEN, lang="de"), failed("The engine failed."))
        await peer.say(SessionDraining(1_000), Error("invalid_value", "Something is odd."))
        await peer.connection.wait_closed()
        assert peer.connection.close_code == 1000

    argv = ("read", "--meeting", "standup", *langs, "--url")
    async with scripted_gateway(script) as url, command(*argv, url) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [(await process.stdout.readline()).decode() for _ in range(3)]
        notes = [(await process.stderr.readline()).decode() for _ in range(3)]
        ran = await interrupted(process)
    assert lines == ["ja\tAna\t前\n", "ja\tAna\tお は よう\n", "de\tBen\tMorgen\n"]
    assert notes == [
        "gateway: ja: Ana: The engine failed.\n",
        "gateway: The gateway is restarting; the meeting goes on in a moment.\n",
        "gateway: Something is odd.\n",
    ]
    assert ran == (0, "", "")


async def test_captions_as_json() -> None:
    async def script(peer: Peer) -> None:
        await joined(peer)
        await peer.say(delta("お", "は"), final("おはよう"), ParticipantLeft(BEN, "Ben", "de", []))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url, command(*READ, url, "--json") as process:
        assert process.stdout is not None
        messages = [json.loads(await process.stdout.readline()) for _ in range(4)]
        assert await interrupted(process) == (0, "", "")
    assert [message["type"] for message in messages] == [
        "session.started",
        "translation.delta",
        "translation.final",
        "participant.left",
    ]
    assert messages[0]["session"] == ""  # whoever reads the output could take the session otherwise
    assert messages[0]["meeting"] == "standup"
    assert messages[1]["tentative"] == "は"


@pytest.mark.parametrize(
    ("recovered", "sentence"),
    [
        (True, "The connection is back."),
        (False, "The connection is back; unfinished translations may be missing."),
    ],
)
@pytest.mark.parametrize("flags", [[], ["--json"]])
async def test_a_reader_comes_back(recovered: bool, sentence: str, flags: list[str]) -> None:
    async def first(peer: Peer) -> None:
        await joined(peer, stability="live" if flags else "final")
        await peer.say(final("一"))
        await seen.wait()

    async def second(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(started(recovered=recovered), final("二", "2"))
        await peer.connection.wait_closed()

    seen = asyncio.Event()
    async with scripted_gateway(losing(first, second)) as url, command(*READ, url, *flags) as process:
        assert process.stdout is not None
        while "一" not in (await process.stdout.readline()).decode():
            pass
        seen.set()
        while "二" not in (await process.stdout.readline()).decode():
            pass
        ran = await interrupted(process)
    assert ran.status == 0
    address = url.replace("http:", "ws:")
    assert ran.err.splitlines() == [
        f"gateway: The connection to the gateway at {address} was lost. Trying again.",
        f"gateway: {sentence}",
    ]


async def test_a_gateway_that_sends_a_reader_away() -> None:
    async def script(peer: Peer) -> None:
        await joined(peer, stability="final")
        await peer.leave(4510, Error("session_replaced", "Another connection took over."))

    async with scripted_gateway(script) as url:
        ran = await run(*READ, url)
    assert ran == (1, "", "gateway: The gateway closed the session: Another connection took over.\n")


@pytest.mark.parametrize("stability", get_args(Stability))
async def test_a_reader_chooses_what_they_see_of_the_unfinished(stability: Stability) -> None:
    async def script(peer: Peer) -> None:
        await joined(peer, stability=stability)
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        async with on_a_terminal(*READ, url, "--stability", stability) as terminal:
            await terminal.until("Ctrl-C ends.")
            terminal.process.send_signal(signal.SIGINT)
            await terminal.rest()
        async with command(*READ, url, "--stability", stability, "--json") as process:
            assert process.stdout is not None
            await process.stdout.readline()
            assert await interrupted(process) == (0, "", "")


async def test_a_sentence_that_is_being_said_on_a_terminal() -> None:
    steps = {name: asyncio.Event() for name in ("grown", "committed", "final")}

    async def script(peer: Peer) -> None:
        await joined(peer)
        await peer.say(caption("Guten", by=BEN, lang="de", final=False), delta("", "いい", by=BEN))
        await steps["grown"].wait()
        await peer.say(caption("Guten Tag", by=BEN, lang="de", final=False), delta("こん", "ばんは", by=BEN))
        await steps["committed"].wait()
        await peer.say(caption("Guten Tag.", by=BEN, lang="de"), delta("にちは", by=BEN))
        await steps["final"].wait()
        await peer.say(final("こんにちは。", by=BEN))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url, on_a_terminal(*READ, url) as terminal:
        dim, plain = "\x1b[2m", "\x1b[0m"
        await terminal.until(f"ja  Ben: {plain}{dim}いい{plain}\r\n")
        await terminal.until(f"de  Ben: {plain}{dim}Guten{plain}")
        steps["grown"].set()
        await terminal.until(f"ja  Ben: {plain}こん{dim}ばんは{plain}\r\n")
        await terminal.until(f"de  Ben: {plain}{dim}Guten Tag{plain}")
        steps["committed"].set()
        await terminal.until("\r\x1b[1A\x1b[J")
        await terminal.until(f"de  Ben: {plain}Guten Tag.\r\n")
        await terminal.until(f"ja  Ben: {plain}こんにちは")
        steps["final"].set()
        shown = await terminal.until(f"ja  Ben: {plain}こんにちは。\r\n")
        assert shown.count("\r\x1b[J") == 1
        assert "ばんは" not in shown
        terminal.process.send_signal(signal.SIGINT)
        await terminal.rest()
        assert await terminal.process.wait() == 0


async def test_reading_on_a_terminal() -> None:
    steps = {name: asyncio.Event() for name in ("grown", "both", "told")}

    async def script(peer: Peer) -> None:
        await joined(peer, final("まえ", "0"))
        await peer.say(delta("おは", "よ"))
        await steps["grown"].wait()
        await peer.say(delta("Guten ", by=BEN, lang="de"), ParticipantJoined(BEN, "Ben", "de", []))
        await steps["both"].wait()
        await peer.say(SessionDraining(1_000))
        await steps["told"].wait()
        await peer.say(final("おはよう"))
        await peer.connection.wait_closed()
        assert peer.connection.close_code == 1000

    async with scripted_gateway(script) as url, on_a_terminal(*READ, url) as terminal:
        dim, plain, green = "\x1b[2m", "\x1b[0m", "\x1b[3"
        await terminal.until(f"{dim}— Reading standup in ja, de; Ctrl-C ends.{plain}\r\n")
        await terminal.until(f"{dim}— with Ana (en){plain}\r\n")
        await terminal.until(f"{dim}ja  Ana: まえ{plain}\r\n")
        await terminal.until(f"{dim}— now{plain}\r\n")
        assert green in await terminal.until(f"ja  Ana: {plain}おは{dim}よ{plain}")
        steps["grown"].set()
        await terminal.until(f"\r\x1b[J{dim}— Ben joined, speaking de{plain}\r\n")
        await terminal.until(f"ja  Ana: {plain}おは{dim}よ{plain}\r\n")
        await terminal.until("Guten ")
        steps["both"].set()
        await terminal.until(
            "\r\x1b[1A\x1b[Jgateway: The gateway is restarting; the meeting goes on in a moment.\r\n"
        )
        await terminal.until("Guten ")
        steps["told"].set()
        await terminal.until("\r\x1b[1A\x1b[J")
        await terminal.until(f"ja  Ana: {plain}おはよう\r\n")
        await terminal.until("Guten ")
        terminal.process.send_signal(signal.SIGINT)
        assert await terminal.rest() == "\r\x1b[J"  # what is not finished is gone, and the line is free
        assert await terminal.process.wait() == 0


# ---------------------------------------------------------------- a real meeting


async def test_a_meeting_between_two_terminals() -> None:
    async with running() as gateway:
        url = f"http://127.0.0.1:{gateway.port}"
        seat = ("--meeting", "standup", "--url", url)
        said = await run("speak", *seat, "--name", "Ana", stdin="Good morning.\n")
        assert said == (0, "", "✓ Good morning.\ngateway: 1 said, 1 accepted, 0 refused.\n")
        async with command("read", *seat, "ja", "de") as piped:
            assert piped.stdout is not None
            # What was said before somebody came is translated for them.
            before = {(await piped.stdout.readline()).decode() for _ in range(2)}
            assert before == {"ja\tAna\t[ja] Good morning.\n", "de\tAna\t[de] Good morning.\n"}
            async with on_a_terminal("read", *seat, "ja") as terminal:
                await terminal.until("\x1b[2mAna: [ja] Good morning.\x1b[0m\r\n")
                await terminal.until("— now")
                argv = ("speak", *seat, "--name", "Ben", "--lang", "de", "--words-per-minute", "6000")
                said = await run(*argv, stdin="Fangen wir an.\nFAIL please\n")
                assert said.status == 0, said.err
                await terminal.until("— Ben joined, speaking de")
                shown = await terminal.until("— Ben left")
                assert "Ben: \x1b[0m[ja] Fangen wir an.\r\n" in shown
                assert "Ben: (not translated: The script says that this text fails.)" in shown
                terminal.process.send_signal(signal.SIGINT)
                await terminal.rest()
                assert await terminal.process.wait() == 0
            ran = await interrupted(piped)
    assert set(ran.out.splitlines()) == {
        "de\tBen\tFangen wir an.",
        "ja\tBen\t[ja] Fangen wir an.",
        "de\tBen\tFAIL please",
    }
    assert ran.err == "gateway: ja: Ben: The script says that this text fails.\n"
    assert ran.status == 0


async def test_a_sentence_in_the_middle_of_which_its_speaker_leaves() -> None:
    async with running() as gateway:
        seat = ("--meeting", "standup", "--url", f"http://127.0.0.1:{gateway.port}")
        argv = ("speak", *seat, "--name", "Ana", "--words-per-minute", "300")
        async with on_a_terminal("read", *seat, "ja") as terminal, command(*argv) as speaker:
            await terminal.until("Ctrl-C ends.")
            assert speaker.stdin is not None
            speaker.stdin.write(b"Good morning, " * 100 + b"\n")
            await terminal.until("[ja] Good morning,")  # it is translated while it is being said
            assert await interrupted(speaker) == (0, "", "gateway: 0 said, 0 accepted, 0 refused.\n")
            await terminal.until("— Ana left")
            terminal.process.send_signal(signal.SIGINT)
            assert "morning" not in await terminal.rest()


async def test_a_meeting_with_a_bad_language() -> None:
    async with running() as gateway:
        url = f"http://127.0.0.1:{gateway.port}"
        ran = await run("read", "--meeting", "standup", "tlh", "--url", url)
    assert ran.status == 3
    assert ran.err.startswith("gateway: The model does not know the language 'tlh'; it knows en, ja, ")


# ---------------------------------------------------------------- documentation


@pytest.mark.parametrize("name", ["speak", "read"])
def test_every_flag_is_documented(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    shown = capsys.readouterr().out
    assert f"examples:\n  gateway {name}" in shown
    offered = set(re.findall(r"^ +(--[a-z-]+)", shown, re.MULTILINE))
    text = (ROOT / "docs" / "cli.md").read_text()
    section = text.partition(f"\n## `gateway {name}`")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(--[a-z-]+)", section)) == offered


@pytest.mark.parametrize("name", ["speak", "read"])
def test_help_loads_nothing_heavy(name: str) -> None:
    code = (
        "import sys, gateway.cli.main\n"
        "try: gateway.cli.main.main()\n"
        "finally: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    argv = [sys.executable, "-c", code, name, "--help"]
    ran = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=True)
    assert {"vllm", "websockets", "msgspec", "asyncio"} & set(ran.stderr.split()) == set()


# ---------------------------------------------------------------- Ctrl-C


async def test_ctrl_c_ends_the_block_and_nothing_else() -> None:
    # A shell that started the tests in its background had it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Interruptible() as ctrl_c:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ctrl_c.interrupted
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_somebody_elses_cancellation_is_not_swallowed() -> None:
    inside = asyncio.Event()

    async def work() -> None:
        with Interruptible():
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_ignored_ctrl_c_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruptible():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


# ---------------------------------------------------------------- the transcript


Answer = tuple[int, str, bytes]


@pytest.fixture
def transcripts() -> Iterator[tuple[str, list[str], list[Answer]]]:
    """The address of something that answers with what is put into the list; and the paths asked for."""
    asked: list[str] = []
    answers: list[Answer] = []

    class Requests(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, kind, body = answers.pop()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked, answers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


Transcripts = tuple[str, list[str], list[Answer]]


def transcript(url: str, *argv: str) -> int:
    return main(["read", "--meeting", "standup", *argv, "--url", url])


def test_a_transcript_is_printed_as_it_is(transcripts: Transcripts, capsys: pytest.CaptureFixture[str]) -> None:
    url, asked, answers = transcripts
    srt = "1\n00:00:00,000 --> 00:00:01,400\nおはよう\n"
    answers.append((200, "application/x-subrip", srt.encode()))
    assert transcript(url, "--transcript", "srt", "ja", "en") == 0
    assert capsys.readouterr() == (srt, "")
    assert asked == ["/v1/meetings/standup/transcript.srt?lang=ja,en"]


def test_a_transcript_cannot_drive_the_terminal(
    transcripts: Transcripts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked, answers = transcripts
    answers.append((200, "text/plain", b"Ana: a\x1b[2J\r\nBen: b\n"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert transcript(url, "--transcript", "txt") == 0
    assert capsys.readouterr().out == "Ana: a [2J\nBen: b\n"
    assert asked == ["/v1/meetings/standup/transcript.txt"]


@pytest.mark.parametrize(
    ("answer", "status", "sentence"),
    [
        (
            (404, "application/problem+json", b'{"code":"unknown_meeting","detail":"No meeting.","status":404}'),
            3,
            "There is no transcript of standup: nothing was said there, or it has expired.",
        ),
        (
            (422, "application/problem+json", b'{"code":"unsupported_language","detail":"No xx."}'),
            3,
            "No xx.",
        ),
        (
            (404, "text/plain", b"Not Found"),
            1,
            "The server at {url} refused the transcript with HTTP status 404; is it a gateway?",
        ),
    ],
)
def test_no_transcript_is_one_sentence(
    answer: Answer, status: int, sentence: str, transcripts: Transcripts, capsys: pytest.CaptureFixture[str]
) -> None:
    url, _, answers = transcripts
    answers.append(answer)
    assert transcript(url, "--transcript", "vtt", "ja") == status
    assert capsys.readouterr() == ("", f"gateway: {sentence.format(url=url)}\n")


async def test_no_gateway_for_a_transcript(capsys: pytest.CaptureFixture[str]) -> None:
    async with scripted_gateway(silent) as url:
        pass
    assert transcript(url, "--transcript", "json", "ja") == 1
    assert capsys.readouterr().err == f"gateway: No gateway answers at {url}: start one with `gateway serve`.\n"


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/meetings/m/transcript.srt?lang=ja"),
        ("wss://ws.example/deep/v1/stream", "https://ws.example/deep/v1/meetings/m/transcript.srt?lang=ja"),
        ("example:80", "http://example:80/v1/meetings/m/transcript.srt?lang=ja"),
    ],
)
def test_the_address_of_a_transcript(address: str, url: str) -> None:
    assert transcript_url(MeetingOptions(address, "m"), ["ja"], "srt") == url

"""`gateway read`: what a reader sees of a meeting, on a terminal and in a pipe."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import get_args

import pytest
from msgspec.structs import replace

from gateway.cli.read import Board, _Lines
from gateway.cli.terminal.drawing import Row
from gateway.client import Reconnected
from gateway.domain.sessions import Stability
from gateway.protocol.messages import (
    Error,
    Participant,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    Ping,
    Pong,
    ServerMessage,
    SessionDraining,
    SessionStart,
    SessionStarted,
    UtteranceCancelled,
    UtteranceReplaced,
)
from tests.cli.commands import on_a_terminal, run
from tests.cli.meetings import ANA, BEN, NAMES, caption, command, delta, failed, final, interrupted, started
from tests.scripted_gateway import Peer, scripted_gateway

# ---------------------------------------------------------------- what a reader sees


def board(*langs: str, participants: list[Participant] | None = None) -> Board:
    """A meeting that was joined, with nothing said before."""
    shown = Board(langs or ("ja",))
    assert shown.apply_event(started(participants=participants)) == []
    shown.live = True
    return shown


def plain(rows: list[Row]) -> list[str]:
    """Rows as a person reads them; what may still change in brackets."""
    return [row.label + row.text + (f"[{row.tentative}]" if row.tentative else "") for row in rows]


def test_a_translation_grows_and_is_finished() -> None:
    shown = board(participants=[Participant(ANA, "Ana", "en", [])])
    assert shown.apply_event(delta("", "こん")) == []
    shown.apply_event(delta("", ""))
    assert plain(shown.unfinished(6)) == ["Ana: "]
    shown.apply_event(delta("こん"))
    shown.apply_event(delta("にち", "わ"))
    assert plain(shown.unfinished(6)) == ["Ana: こんにち[わ]"]
    shown.apply_event(delta("は"))
    assert plain(shown.unfinished(6)) == ["Ana: こんにちは"]
    assert plain(shown.apply_event(final("こんにちは。"))) == ["Ana: こんにちは。"]
    assert shown.unfinished(6) == []


def test_a_translation_grows_while_its_utterance_is_being_said() -> None:
    # One column for each language: what was said, and its translations, in the order in which they were asked for.
    shown = board("en", "ja", "de", participants=[Participant(ANA, "Ana", "en", [])])
    shown.apply_event(caption("Good", final=False))
    shown.apply_event(delta("", "Gute", lang="de"))
    shown.apply_event(delta("", "いい"))
    assert plain(shown.unfinished(6)) == ["en  Ana: [Good]", "ja  Ana: [いい]", "de  Ana: [Gute]"]
    # The tentative text is replaced, the committed text stays; a delta may bring only one of them.
    shown.apply_event(caption("Good morning", final=False))
    shown.apply_event(delta("Gut", "en Mor", lang="de"))
    shown.apply_event(delta("", "おはよ"))
    assert plain(shown.unfinished(6)) == [
        "en  Ana: [Good morning]",
        "ja  Ana: [おはよ]",
        "de  Ana: Gut[en Mor]",
    ]
    # What was said is final; the translations go on where they were, and each is replaced once.
    assert plain(shown.apply_event(caption("Good morning, all."))) == ["en  Ana: Good morning, all."]
    shown.apply_event(delta("en Morgen", "", lang="de"))
    assert plain(shown.unfinished(6)) == ["ja  Ana: [おはよ]", "de  Ana: Guten Morgen"]
    assert plain(shown.apply_event(final("Einen guten Morgen.", lang="de"))) == ["de  Ana: Einen guten Morgen."]
    assert plain(shown.apply_event(final("おはよう"))) == ["ja  Ana: おはよう"]
    assert shown.unfinished(6) == []


def test_late_language_detection() -> None:
    shown = board("en", "de")
    shown.apply_event(caption("Goo tin", lang="en", final=False))
    shown.apply_event(delta("Guh", "tin", lang="de"))
    assert plain(shown.unfinished(6)) == ["en  Ana: [Goo tin]", "de  Ana: Guh[tin]"]
    # What was a translation is what was said, and the other way round: neither is shown behind the other.
    shown.apply_event(caption("Guten Tag", lang="de", final=False))
    shown.apply_event(delta("Good ", "day", lang="en"))
    assert plain(shown.unfinished(6)) == ["en  Ana: Good [day]", "de  Ana: [Guten Tag]"]


def test_several_languages_have_tags_and_several_speakers_lines() -> None:
    shown = board("ja", "zh-hant")
    shown.apply_event(ParticipantJoined(BEN, "Ben", "de", []))
    # The same id of two speakers is two utterances.
    shown.apply_event(delta("会", by=BEN))
    shown.apply_event(delta("開", by=BEN, lang="zh-hant"))
    shown.apply_event(delta("お"))
    shown.apply_event(delta("議", by=BEN))
    assert plain(shown.unfinished(6)) == ["ja       Ben: 会議", "zh-hant  Ben: 開", "ja       お"]
    assert plain(shown.apply_event(final("おはよう"))) == ["ja       Ana: おはよう"]
    assert plain(shown.unfinished(6)) == ["ja       Ben: 会議", "zh-hant  Ben: 開"]


def test_newest_unfinished_lines_are_shown() -> None:
    shown = board()
    for number in range(8):
        shown.apply_event(delta(f"{number}", utterance=str(number)))
    shown.apply_event(delta("!", utterance="2"))
    assert plain(shown.unfinished(3)) == ["2!", "6", "7"]


def test_lines_that_grow_together_do_not_take_turns() -> None:
    shown = board()
    for number in range(4):
        shown.apply_event(delta(f"{number}", utterance=str(number)))
    assert plain(shown.unfinished(3)) == ["1", "2", "3"]
    for _ in range(5):
        for number in range(4):
            shown.apply_event(delta("+", utterance=str(number)))
            assert [row.label + row.text[:1] for row in shown.unfinished(3)] == ["1", "2", "3"]
    # One that stands still gives way in the end, and a finished one at once.
    for _ in range(6):
        shown.apply_event(delta("+", utterance="0"))
    assert [row.text[:1] for row in shown.unfinished(3)] == ["0", "2", "3"]
    shown.apply_event(final("2", utterance="2"))
    assert [row.text[:1] for row in shown.unfinished(3)] == ["0", "1", "3"]


def test_what_is_never_finished_does_not_pile_up() -> None:
    shown = board()
    for number in range(10_000):
        shown.apply_event(delta("x", utterance=str(number), by=f"{number:08x}"))
        shown.apply_event(ParticipantJoined(f"{number:08x}", f"P{number}", None, []))
    assert len(shown.unfinished(10_000)) == 200
    assert len(shown._names) == 1_000


def test_what_was_said_before_is_dimmed() -> None:
    shown = Board(["ja"])
    shown.apply_event(started())
    (before,) = shown.apply_event(final("前", "1"))
    shown.live = True
    (now,) = shown.apply_event(final("今", "2"))
    assert (before.dim, now.dim) == (True, False)


def test_what_was_missed_is_news() -> None:
    shown = Board(["ja"])
    shown.apply_event(started())
    shown.apply_event(Reconnected(started(recovered=True)))
    (row,) = shown.apply_event(final("逃した"))
    assert not row.dim


def test_a_failure_is_told_in_place_of_the_translation() -> None:
    shown = board()
    shown.apply_event(delta("こ"))
    (row,) = shown.apply_event(failed("The engine failed."))
    assert (row.label, row.text, row.dim) == ("Ana: ", "(not translated: The engine failed.)", True)
    assert shown.unfinished(6) == []


def test_corrected_utterance_takes_its_translations() -> None:
    shown = board("ja", "en")
    shown.apply_event(ParticipantJoined(ANA, "Ana", "en", []))
    shown.apply_event(delta("すべ", utterance="1"))
    assert plain(shown.apply_event(UtteranceReplaced(ANA, ["1"], "2"))) == ["— Ana corrects what they said"]
    assert plain(shown.apply_event(UtteranceReplaced(BEN, ["9"], None)))[0].endswith("took back what they said")
    assert shown.unfinished(6) == []


def test_cancelled_utterance_takes_its_translations() -> None:
    shown = board("ja", "en")
    shown.apply_event(caption("We should", "1", final=False))
    shown.apply_event(delta("すべ", utterance="1"))
    shown.apply_event(delta("Ja", by=BEN))
    assert shown.apply_event(UtteranceCancelled(ANA, "1")) == []
    assert plain(shown.unfinished(6)) == ["ja  Ja"]


def test_who_comes_and_goes() -> None:
    shown = board("ja", "en")
    assert plain(shown.apply_event(ParticipantJoined(ANA, "Ana", "en", ["de"]))) == ["— Ana joined, speaking en"]
    assert plain(shown.apply_event(ParticipantJoined("d0", "", None, ["de"]))) == ["— Somebody joined"]
    shown.apply_event(caption("I have to le", "1", final=False))
    shown.apply_event(delta("行か", "なけ", utterance="1"))
    shown.apply_event(delta("こんにち", utterance="0"))
    shown.apply_event(delta("Ja", by=BEN))
    assert plain(shown.apply_event(ParticipantLeft(ANA, "Ana", "en", ["de"]))) == ["— Ana left"]
    # The sentence in the middle of which she left is never finished, neither what was said nor its translation.
    assert plain(shown.unfinished(6)) == ["ja  Ja"]
    # What she had said before is translated on, and begins with what was shown of it.
    shown.apply_event(delta("は", utterance="0"))
    assert plain(shown.unfinished(6)) == ["ja  Ana: こんにちは", "ja  Ja"]
    assert plain(shown.apply_event(final("こんにちは。", utterance="0"))) == ["ja  Ana: こんにちは。"]
    assert plain(shown.unfinished(6)) == ["ja  Ja"]


def test_a_new_name_is_used() -> None:
    shown = board(participants=[Participant(ANA, "Ana", "en", [])])
    shown.apply_event(ParticipantUpdated(ANA, "Dr. Ana", "de", []))
    shown.apply_event(delta("お"))
    assert plain(shown.unfinished(6)) == ["Dr. Ana: お"]


@pytest.mark.parametrize("again", [started(), Reconnected(started())])
def test_what_was_unfinished_is_void_after_a_restart(again: SessionStarted | Reconnected) -> None:
    shown = board()
    shown.apply_event(delta("こん"))
    assert shown.apply_event(again) == []
    assert shown.unfinished(6) == []
    shown.apply_event(delta("こんにちは"))
    assert plain(shown.unfinished(6)) == ["こんにちは"]


def test_nobody_drives_the_terminal_of_a_reader() -> None:
    evil = "\x1b]0;owned\x07\r\n\u202e"
    shown = board("ja", "en")
    NAMES["evil"] = evil
    rows = shown.apply_event(ParticipantJoined("evil", evil, evil, [evil]))
    shown.apply_event(delta(evil, evil, by="evil"))
    shown.apply_event(caption(evil, "2", by="evil", lang=evil, final=False))
    rows += shown.unfinished(6)
    rows += shown.apply_event(final(evil, by="evil", lang=evil)) + shown.apply_event(failed(evil, by="evil"))
    rows += shown.apply_event(caption(evil, "2", by="evil", lang=evil)) + shown.apply_event(
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


def test_an_unsure_translation_has_a_sign(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = board("ja").apply_event(replace(final("??"), unsure=True))
    assert row.text == "(?) ??"
    _Lines().show(replace(final("??"), unsure=True))
    assert capsys.readouterr().out == "ja\tAna\t(?) ??\n"


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
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await joined(peer, stability="live" if flags else "final")
            await peer.say(final("一"))
            await seen.wait()
            peer.drop()
        else:
            await peer.start(started(recovered=recovered))
            await peer.say(final("二", "2"))
            await peer.connection.wait_closed()

    seen = asyncio.Event()
    async with scripted_gateway(script) as url, command(*READ, url, *flags) as process:
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


@pytest.mark.parametrize(
    ("close", "code"), [(4510, "session_replaced"), (4503, "token_revoked"), (4505, "meeting_ended")]
)
async def test_a_gateway_that_sends_a_reader_away(close: int, code: str) -> None:
    async def script(peer: Peer) -> None:
        await joined(peer, stability="final")
        await peer.leave(close, Error(code, "It is over."))

    async with scripted_gateway(script) as url:
        ran = await run(*READ, url)
    assert ran == (1, "", "gateway: The gateway closed the session: It is over.\n")


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

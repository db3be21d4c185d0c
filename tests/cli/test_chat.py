"""`gateway chat`: on a terminal, from a pipe, and when the gateway leaves."""

from __future__ import annotations

import asyncio
import signal

import pytest

from gateway.protocol.messages import Error, SessionUpdate, SessionUpdated, UtteranceFinal
from tests.cli.commands import FOUND, _others_ignore_interrupts, chat, on_a_terminal
from tests.scripted_gateway import (
    ANOTHER,
    STARTED,
    Peer,
    accepted,
    delta,
    failed,
    refused,
    scripted_gateway,
    translated,
)

# ---------------------------------------------------------------- on a terminal


async def test_chat_on_a_terminal() -> None:
    pytest.importorskip("readline")

    async def script(peer: Peer) -> None:
        assert (await peer.start()).stability == "live"
        utterance = await peer.take()
        assert utterance.text == "Good morning"
        await peer.say(delta(utterance, "ja", "おは"), translated(utterance, "ja", "おはよう"))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url, on_a_terminal("chat", "--to", "ja", "--url", url) as terminal:
        await terminal.until("en → ja. Type a sentence; /help lists the commands.")
        await terminal.until("en> ")
        terminal.type("morning\x01Good \r")  # Ctrl-A goes to the beginning of the line
        await terminal.until("ja  おはよう\r\n")
        await terminal.until("en> ")
        terminal.type("\x04")
        await terminal.rest()
        assert await terminal.process.wait() == 0


@pytest.mark.parametrize("where", ["at the prompt", "in a translation"])
async def test_chat_interrupted(where: str) -> None:
    reached = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.expect(UtteranceFinal)
        reached.set()
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url, on_a_terminal("chat", "--to", "ja", "--url", url) as terminal:
        await terminal.until("en> ")
        if where == "in a translation":
            terminal.type("Hello\r")
            await reached.wait()
        await terminal.asleep()
        # Only the thread that waits for keys may get the signal, or it would go on waiting.
        assert _others_ignore_interrupts(terminal.process.pid)
        terminal.process.send_signal(signal.SIGINT)
        assert "Traceback" not in await terminal.rest()
        assert await terminal.process.wait() == 130


# ---------------------------------------------------------------- chat, from a pipe


async def updating(peer: Peer) -> None:
    """A gateway that knows four languages and translates everything."""
    start = await peer.start()
    reads, speaks = start.reads, start.speaks
    while True:
        match await peer.receive():
            case SessionUpdate() as update if unknown := set(update.reads or ()) - set(STARTED.languages):
                await peer.say(refused("unsupported_language", f"The model does not know {unknown.pop()}."))
            case SessionUpdate() as update:
                reads = reads if update.reads is None else update.reads
                speaks = update.speaks or speaks
                await peer.say(SessionUpdated(reads, speaks, start.stability))
            case UtteranceFinal() as utterance:
                await peer.say(accepted(utterance))
                await peer.say(*(translated(utterance, lang, f"{speaks}-{lang}") for lang in reads))


async def test_chat_changes_languages() -> None:
    async with scripted_gateway(updating) as url:
        ran = await chat(
            url, "one", "/from de", "two", "/to ja, fr,de", "three", "/from ja", "four", "/quit", "never"
        )
    assert ran == (
        0,
        "ja\ten-ja\nde\ten-de\nfr\ten-fr\n"
        "de → en, ja, fr\n"
        "en\tde-en\nja\tde-ja\nfr\tde-fr\n"
        "de → ja, fr\n"
        "ja\tde-ja\nfr\tde-fr\n"
        "ja → fr, de\n"
        "fr\tja-fr\nde\tja-de\n",
        "",
    )


async def test_chat_refuses_in_sentences_and_goes_on() -> None:
    async with scripted_gateway(updating) as url:
        ran = await chat(
            url, "/to xx", "/from", "/to ,", "/dance", "/from ja", "said", "/to de", "said", argv=("--to", "ja")
        )
    assert ran.status == 0
    assert ran.err.splitlines() == [
        "gateway: The model does not know xx.",
        "gateway: /from needs a language, such as /from ja; /languages lists them.",
        "gateway: /to needs a language, such as /to ja; /languages lists them.",
        "gateway: There is no command /dance; /help lists them.",
        "gateway: There is no language to translate into; choose one with /to.",
    ]
    assert ran.out == "ja → nothing\nja → de\nde\tja-de\n"


async def test_chat_explains_itself() -> None:
    async with scripted_gateway(updating) as url:
        ran = await chat(url, "/help", "/languages", "/quit")
    assert "/to LANG,LANG" in ran.out
    assert ran.out.endswith("  en      English\n  ja      Japanese\n  de      German\n  fr      French\n")


async def test_chat_tells_of_a_failure_and_goes_on() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.take()
        await peer.say(refused("unsupported_option", "The model takes no context; it is left out."))
        await peer.say(failed(utterance, "ja", "The engine failed."))
        utterance = await peer.expect(UtteranceFinal)
        await peer.say(refused("limit_exceeded", "Too long.", utterance.id))
        utterance = await peer.expect(UtteranceFinal)
        await peer.say(refused("overloaded", "Full.", utterance.id, retry_after_ms=1))
        utterance = await peer.take()
        await peer.say(translated(utterance, "ja", "OK"))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        ran = await chat(url, "a", "b", "c", argv=("--to", "ja"))
    assert ran == (
        0,
        "ja\tOK\n",
        "gateway: The model takes no context; it is left out.\n"
        "gateway: ja: The engine failed.\n"
        "gateway: Too long.\n",
    )


async def test_chat_goes_on_when_the_gateway_is_back() -> None:
    async def script(peer: Peer) -> None:
        start = await peer.start(None if peer.visit < 3 else ANOTHER)
        assert start.stability == "final"  # nobody sees a translation grow in a pipe
        if peer.visit == 1:
            await peer.take()
            peer.drop()
        elif peer.visit == 2:
            await peer.say(translated(UtteranceFinal("1", 1, "one"), "ja", "ONE"))
            await peer.expect(SessionUpdate)
            await peer.leave(4010)
        else:
            assert (await peer.expect(SessionUpdate)).reads == ["de"]
            await peer.say(SessionUpdated(["de"], "en", "final"))
            utterance = await peer.take()
            await peer.say(translated(utterance, "de", "ZWEI"))
            await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        ran = await chat(url, "one", "/to de", "two", argv=("--to", "ja"))
        address = url.replace("http:", "ws:")
    assert ran == (
        0,
        "ja\tONE\nen → de\nde\tZWEI\n",
        f"gateway: The connection to the gateway at {address} was lost. Trying to reach it again.\n{FOUND}"
        f"gateway: The gateway at {address} closed the session with code 4010. Trying to reach it again.\n{FOUND}",
    )


@pytest.mark.parametrize("line", ["hello", "/to de"])
@pytest.mark.parametrize(
    ("code", "last_words", "sentence"),
    [
        (
            4012,
            [refused("draining", "The gateway restarts.")],
            "The gateway closed the session: The gateway restarts.",
        ),
        (1000, [], "The gateway at {address} closed the session with code 1000."),
    ],
)
async def test_chat_with_a_gateway_that_left(line: str, code: int, last_words: list[Error], sentence: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.leave(code, *last_words)

    async with scripted_gateway(script) as url:
        ran = await chat(url, line, argv=("--to", "ja", "--wait", "0"))
    assert ran == (1, "", f"gateway: {sentence.format(address=url.replace('http:', 'ws:'))}\n")

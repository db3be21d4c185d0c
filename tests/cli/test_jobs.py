"""One text on its way: what it asks of the gateway, when it is sent again, and when it is given up."""

from __future__ import annotations

import re

from gateway.cli import jobs
from gateway.protocol.messages import SessionUpdate, SessionUpdated, UtteranceFinal
from tests.cli.commands import chat, echo, on_a_terminal, run, run_against
from tests.scripted_gateway import Peer, delta, refused, scripted_gateway, translated


async def test_without_to_every_other_language_is_read() -> None:
    async def script(peer: Peer) -> None:
        start = await peer.start()
        assert start.reads == []
        await peer.say(refused("unsupported_option", "The model m takes no context; it is left out."))
        update = await peer.expect(SessionUpdate)
        assert update.reads == ["en", "ja", "fr"]
        assert update.glossary == {lang: {"Haus": "house"} for lang in update.reads}
        await peer.say(SessionUpdated(update.reads, "de", start.stability))
        utterance = await peer.take()
        await peer.say(*(translated(utterance, lang, lang.upper()) for lang in ("ja", "fr", "en")))
        await peer.end()

    ran = await run_against(script, "translate", "Haus", "--from", "de", "--glossary", "Haus=house")
    assert ran == (0, "en\tEN\nja\tJA\nfr\tFR\n", "gateway: The model m takes no context; it is left out.\n")


async def test_a_refused_glossary_ends_the_command() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.expect(SessionUpdate)
        await peer.say(refused("limit_exceeded", "The term is too long."))
        await peer.connection.wait_closed()

    ran = await run_against(script, "translate", "Haus", "--from", "de")
    assert ran == (3, "", "gateway: The term is too long.\n")


async def test_a_text_is_not_sent_again_for_ever() -> None:
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.start()
        while isinstance(message := await peer.receive(), UtteranceFinal):
            sent += 1
            await peer.say(refused("overloaded", "Full.", message.id, retry_after_ms=0))
        await peer.leave(1000)

    ran = await run_against(script, "translate", "yes", "--to", "ja")
    assert ran == (3, "", "gateway: Full.\n")
    assert sent == jobs._ATTEMPTS


async def test_text_is_drawn_again_after_a_loss() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            await peer.say(delta(await peer.take(), "ja", "Guten Ta"))
            await peer.connection.close(4008)
            return
        utterance = UtteranceFinal("1", 1, "hi")
        await peer.say(delta(utterance, "ja", "Guten Morgen"), translated(utterance, "ja", "Guten Morgen!"))
        await peer.end()

    async with (
        scripted_gateway(script) as url,
        on_a_terminal("translate", "hi", "--to", "ja", "--url", url, columns=200) as terminal,
    ):
        rest = await terminal.rest()
        assert await terminal.process.wait() == 0
    assert "Guten TaGuten" not in rest
    assert rest.endswith("Guten Morgen!\r\n")


async def test_a_text_that_no_gateway_would_read() -> None:
    async with scripted_gateway(echo) as url:
        ran = await run("translate", "--to", "ja", "--url", url, stdin="a" * 70_000 + "\nb\n")
        talk = await chat(url, "a" * 70_000, argv=("--to", "ja"))
    assert (ran.status, ran.out) == (3, "ja\tja: b\n")
    assert re.fullmatch(r"gateway: line 1: The message has \d+ bytes; the gateway takes 65536\.\n", ran.err)
    assert re.fullmatch(r"gateway: The message has \d+ bytes; the gateway takes 65536\.\n", talk.err)

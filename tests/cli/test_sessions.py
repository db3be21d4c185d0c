"""What commands with sessions have in common: waiting, refusals, notes, and a meeting of several commands."""

from __future__ import annotations

import signal

import pytest

from gateway.cli import jobs
from gateway.protocol.messages import Error, LanguagesChanged, Ping, SessionStart, UtteranceFinal
from tests.cli.commands import on_a_terminal, run, run_against
from tests.cli.meetings import command, interrupted, started
from tests.gateways import running
from tests.scripted_gateway import Peer, refused, scripted_gateway, translated

# ---------------------------------------------------------------- usage


@pytest.mark.parametrize("code", ["unsupported_language", "forbidden"])
@pytest.mark.parametrize(
    "argv",
    [
        ["speak", "--meeting", "standup", "--lang", "xx"],
        ["read", "--meeting", "standup", "xx"],
        ["translate", "hi", "--to", "xx"],
    ],
)
async def test_a_refused_start_is_one_sentence(argv: list[str], code: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.leave(4501, Error(code, "Not 'xx'."))

    assert await run_against(script, *argv, GATEWAY_TOKEN="a") == (3, "", "gateway: Not 'xx'.\n")


@pytest.mark.parametrize(
    "argv",
    [["speak", "--meeting", "standup"], ["read", "ja", "--meeting", "standup"], ["translate", "hi", "--to", "ja"]],
)
async def test_an_engine_that_loads_is_waited_for(argv: list[str]) -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(Error("engine_unavailable", "It loads.", retryable=True, retry_after_ms=1))
        await peer.expect(SessionStart)
        await peer.say(Error("invalid_value", "No."))
        await peer.connection.wait_closed()

    ran = await run_against(script, *argv)
    assert ran == (3, "", "gateway: The gateway's engine is not ready yet; waiting for it.\ngateway: No.\n")


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


async def test_speaker_leaves_in_mid_sentence() -> None:
    async with running() as gateway:
        seat = ("--meeting", "standup", "--url", f"http://127.0.0.1:{gateway.port}")
        argv = ("speak", *seat, "--name", "Ana", "--words-per-minute", "60")
        async with on_a_terminal("read", *seat, "ja") as terminal, command(*argv) as speaker:
            await terminal.until("Ctrl-C ends.")
            assert speaker.stdin is not None
            speaker.stdin.write(b"Good morning, " * 100 + b"\n")
            await terminal.until("[ja] Good morning,")  # it is translated while it is being said
            assert await interrupted(speaker) == (0, "", "gateway: 0 said, 0 accepted, 0 refused.\n")
            await terminal.until("— Ana left")
            terminal.process.send_signal(signal.SIGINT)
            assert "morning" not in await terminal.rest()


async def test_a_change_of_the_languages_is_a_sentence() -> None:
    async def script(peer: Peer) -> None:
        await peer.start(started())
        await peer.expect(Ping)
        await peer.say(LanguagesChanged(["en", "ja", "fr"], [], {"en": ["ja", "fr"], "ja": ["en"]}))
        await peer.say(LanguagesChanged(["en", "ja"], []))
        await peer.leave(4510)

    ran = await run_against(script, "read", "--meeting", "standup", "de")
    assert ran.err.splitlines()[:2] == [
        "gateway: From now on this is translated: en into ja, fr; ja into en.",
        "gateway: From now on this is translated: en, ja, each into every other.",
    ]


# ---------------------------------------------------------------- an engine that is not ready


async def test_an_engine_that_dies_is_waited_for_as_long() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        # More often than a text is sent again for other reasons, and said once for all texts.
        for _ in range(jobs._ATTEMPTS + 1):
            one, two = await peer.expect(UtteranceFinal), await peer.expect(UtteranceFinal)
            await peer.say(refused("engine_unavailable", "Restarting.", one.id, retry_after_ms=1))
            await peer.say(refused("engine_unavailable", "Restarting.", two.id, retry_after_ms=1))
        one, two = await peer.take(), await peer.take()
        await peer.say(translated(one, "ja", one.text), translated(two, "ja", two.text))
        await peer.end()

    ran = await run_against(script, "translate", "--to", "ja", stdin="a\nb\n")
    assert ran == (0, "ja\ta\nja\tb\n", "gateway: The gateway's engine is not ready yet; waiting for it.\n")


async def test_an_engine_that_stays_dead() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.expect(UtteranceFinal)
        await peer.say(refused("engine_unavailable", "The engine died.", utterance.id, retry_after_ms=1))
        await peer.end()

    ran = await run_against(script, "translate", "hi", "--to", "ja", "--wait", "0")
    assert ran == (3, "", "gateway: The engine died.\n")


async def test_wait_bounds_the_patience() -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(refused("engine_unavailable", "Loading.", retry_after_ms=2_000))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        ran = await run("translate", "hi", "--to", "ja", "--wait", "0", "--url", url)
        later = await run("translate", "hi", "--to", "ja", "--wait", "0.5", "--url", url)
    engine = f"gateway: The engine of the gateway at {url.replace('http:', 'ws:')}"
    assert ran == (1, "", f"{engine} is still loading (try --wait SECONDS).\n")
    assert later == (1, "", f"{engine} is not ready after 0.5 s.\n")

"""`gateway translate`, as people use it: into a pipe, on a terminal, and when it does not work."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gateway.engines.simulated import Script, SimulatedEngine
from gateway.protocol.messages import ServerMessage, SessionStart, UtteranceFinal
from tests.cli.commands import (
    COMMAND,
    FOUND,
    RESTARTS,
    ROOT,
    answering,
    echo,
    leaving,
    on_a_terminal,
    run,
    run_against,
    translate_everything,
)
from tests.cli.meetings import command, interrupted
from tests.gateways import running
from tests.scripted_gateway import ANOTHER, Peer, delta, failed, refused, scripted_gateway, translated

# ---------------------------------------------------------------- translate, into a pipe


async def test_one_line_per_language() -> None:
    starts: list[SessionStart] = []

    async def script(peer: Peer) -> None:
        async def start() -> SessionStart:
            starts.append(await Peer.start(peer))
            return starts[-1]

        peer.start = start  # type: ignore[method-assign, assignment]
        await echo(peer)

    async with scripted_gateway(script) as url:
        argv = "translate Good morning, --from en-US --to ja,zh-TW,ja,en --formality formal"
        ran = await run(
            *argv.split(),
            *("--url", url, "--context", "A stand-up."),
            *("--glossary", "ticket=Ticket", "--glossary", "ja:a:b = c=d", "--glossary", "x:y=z"),
        )
    assert ran == (0, "ja\tja: Good morning,\nzh-hant\tzh-hant: Good morning,\n", "")
    assert starts == [
        SessionStart(
            reads=["ja", "zh-hant"],
            speaks="en",
            stability="final",
            glossary={
                "ja": {"ticket": "Ticket", "a:b": "c=d", "x:y": "z"},
                "zh-hant": {"ticket": "Ticket", "x:y": "z"},
            },
            context="A stand-up.",
            formality="formal",
        )
    ]


async def test_a_file_is_read_too(tmp_path: Path) -> None:
    minutes = tmp_path / "minutes.txt"
    minutes.write_bytes("\ufeffeins\n".encode() + b"zw\xffei\n")  # a byte order mark, and a byte too many
    async with scripted_gateway(echo) as url:
        with minutes.open("rb") as file:
            process = await asyncio.create_subprocess_exec(
                *(*COMMAND, "translate", "--to", "ja", "--url", url),
                stdin=file,
                stdout=asyncio.subprocess.PIPE,
                cwd=ROOT,
            )
            out, _ = await process.communicate()
    assert process.returncode == 0
    assert out.decode() == "ja\tja: eins\nja\tja: zw\ufffdei\n"


async def test_a_translation_is_one_line_whatever_is_in_it() -> None:
    async def script(peer: Peer) -> None:
        await translate_everything(peer, lambda *_: "one\ntwo\t\x1b[2J")

    assert await run_against(script, "translate", "x", "--to", "ja") == (0, "ja\tone two  [2J\n", "")


async def test_json_is_the_gateways_own_messages() -> None:
    async def script(peer: Peer) -> None:
        assert (await peer.start()).stability == "final"
        utterance = await peer.take()
        await peer.say(delta(utterance, "ja", "は"), translated(utterance, "ja", "はい"))
        await peer.say(failed(utterance, "de", "The engine failed."))
        utterance = await peer.expect(UtteranceFinal)
        await peer.say(refused("limit_exceeded", "Too long.", utterance.id))
        await peer.end()

    ran = await run_against(script, "translate", "--to", "ja,de", "--json", stdin="yes\nno\n")
    assert ran.status == 3
    final, failure, refusal = map(json.loads, ran.out.splitlines())
    assert (final["type"], final["lang"], final["text"]) == ("translation.final", "ja", "はい")
    assert (failure["type"], failure["lang"], failure["code"]) == ("translation.failed", "de", "engine_failed")
    assert (refusal["type"], refusal["utterance"], refusal["code"]) == ("error", "2", "limit_exceeded")
    assert ran.err == "gateway: line 1: de: The engine failed.\ngateway: line 2: Too long.\n"


SAID = UtteranceFinal("1", 1, "yes")
UNSURE = (
    "gateway: ja: Unsure: the model may be wrong here. "
    "For meetings that matter, use a larger model: docs/models.md.\n"
)


@pytest.mark.parametrize(
    ("flags", "answers", "ran"),
    [
        (
            ["--timings"],
            [translated(SAID, "ja", "はい", truncated=True)],
            (
                0,
                "ja\tはい\n",
                "gateway: ja: The translation was cut short by the output limit.\n"
                "gateway: ja: first token after 20 ms, 9 tokens after 48 ms\n",
            ),
        ),
        ([], [translated(SAID, "ja", "はい", unsure=True)], (0, "ja\tはい\n", UNSURE)),
        (
            ["--to", "ja,de"],
            [failed(SAID, "ja", "The engine failed."), translated(SAID, "de", "Ja")],
            (3, "de\tJa\n", "gateway: ja: The engine failed.\n"),
        ),
        (
            [],
            [refused("invalid_value", "Something is odd."), translated(SAID, "ja", "OK")],
            (3, "ja\tOK\n", "gateway: Something is odd.\n"),
        ),
        (
            ["--context", "A game."],
            [refused("unsupported_option", "It takes no context."), translated(SAID, "ja", "OK")],
            (0, "ja\tOK\n", "gateway: It takes no context.\n"),
        ),
    ],
    ids=["cut short, timings", "unsure", "failed", "an error of the session", "an option that is left out"],
)
async def test_notes_of_a_translation(
    flags: list[str], answers: list[ServerMessage], ran: tuple[int, str, str]
) -> None:
    assert await run_against(answering(*answers), "translate", "yes", "--to", "ja", *flags) == ran


# ---------------------------------------------------------------- translate, when it does not work


@pytest.mark.parametrize(
    ("argv", "texts", "translates", "missing"),
    [
        ([], "a\nb\n", 1, "line 2 was not translated. Run it again for that one."),
        ([], "a\nb", 0, "lines 1 to 2 were not translated. Run it again for those."),
        ([], "a\n\nb\n\n", 1, "line 3 was not translated. Run it again for that one."),
        ([], "a\n" * 60, 17, "lines 18 to 60 were not translated. Run it again for those."),
        ([], "a\na\n", 2, ""),
        (["a"], "", 0, "the text was not translated. Run it again."),
    ],
)
async def test_restart_in_the_middle(argv: list[str], texts: str, translates: int, missing: str) -> None:
    script = leaving(1012, RESTARTS, translates=translates)
    ran = await run_against(script, "translate", *argv, "--to", "ja", "--wait", "0", stdin=texts)
    err = f"gateway: The gateway is restarting: {missing}\n" if missing else ""
    assert ran == (1 if missing else 0, "ja\ta\n" * translates, err)


async def test_goodbye_too_early() -> None:
    script = leaving(1000, translates=1)
    ran = await run_against(script, "translate", "--to", "ja", "--wait", "0", stdin="a\nb\n")
    sentence = "gateway: The gateway ended the session. Line 2 was not translated. Run it again for that one.\n"
    assert ran == (1, "ja\ta\n", sentence)


async def test_restart_names_lines_to_come() -> None:
    async with (
        scripted_gateway(leaving(1012, RESTARTS, translates=1)) as url,
        command("translate", "--to", "ja", "--wait", "0", "--url", url) as process,
    ):
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"a\n")  # and it stays open
        err = await process.stderr.read()
        assert await process.wait() == 1
    assert err == (
        b"gateway: The gateway is restarting: the lines from 2 on were not translated. Run it again for those.\n"
    )


async def test_what_a_restart_stopped_is_told_once() -> None:
    """Texts that the gateway gave up at its deadline are among the lines to run again, not a complaint each."""

    async def script(peer: Peer) -> None:
        await peer.start()
        first, second, third = [await peer.take() for _ in range(3)]
        gave_up = failed(second, "ja", "Stopped; send it again.", "draining")
        await peer.say(translated(first, "ja", "OK"), gave_up, translated(third, "ja", "unprinted"))
        await peer.leave(1012, RESTARTS)

    ran = await run_against(script, "translate", "--to", "ja", "--wait", "0", stdin="a\nb\nc\n")
    sentence = "gateway: The gateway is restarting: lines 2 to 3 were not translated. Run it again for those.\n"
    assert ran == (1, "ja\tOK\n", sentence)


async def test_what_a_restart_does_not_take_is_told_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        # Both are on their way before the first is refused; afterwards the client would keep the second.
        for utterance in [await peer.expect(UtteranceFinal) for _ in range(2)]:
            await peer.say(refused("draining", "Send it elsewhere.", utterance.id, retry_after_ms=0))
        await peer.leave(1012, RESTARTS)

    ran = await run_against(script, "translate", "--to", "ja", "--wait", "0", stdin="a\nb\n")
    sentence = "gateway: The gateway is restarting: lines 1 to 2 were not translated. Run it again for those.\n"
    assert ran == (1, "", sentence)


@pytest.mark.parametrize("recovered", [True, False])
async def test_a_gateway_that_comes_back_finishes_what_it_began(recovered: bool) -> None:
    """One line was translated, one stopped by the restart, one accepted only, one not taken."""
    again: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.start(None if peer.visit == 1 or recovered else ANOTHER)
        if peer.visit == 1:
            one, two, three = [await peer.take() for _ in range(3)]
            four = await peer.expect(UtteranceFinal)
            await peer.say(delta(three, "ja", "th"), translated(one, "ja", "1"))
            await peer.say(failed(two, "ja", "Stopped; send it again.", "draining"))
            await peer.say(refused("draining", "Send it elsewhere.", four.id, retry_after_ms=0))
            await peer.leave(1012, refused("draining", "The gateway restarts; reconnect.", retry_after_ms=1))
            return
        if recovered:
            await peer.say(translated(UtteranceFinal("3", 1, "c"), "ja", "3"))
        for _ in range(2 if recovered else 3):
            utterance = await peer.take()
            again.append(utterance.id)
            await peer.say(translated(utterance, "ja", utterance.id))
        await peer.end()

    ran = await run_against(script, "translate", "--to", "ja", stdin="a\nb\nc\nd\n")
    lost = "gateway: The gateway closed the session: The gateway restarts; reconnect. Trying to reach it again.\n"
    assert ran == (0, "ja\t1\nja\t2\nja\t3\nja\t4\n", lost + FOUND)
    # What the client sends again on its own goes first.
    assert again == (["4", "2"] if recovered else ["4", "2", "3"])


async def test_a_gateway_that_does_not_come_back() -> None:
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            await peer.take()
            peer.drop()
            return
        await peer.leave(4509, refused("too_many_sessions", "This gateway is full."))

    ran = await run_against(script, "translate", "--to", "ja", stdin="a\nb\n")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.endswith(
        "gateway: This gateway is full. Lines 1 to 2 were not translated. Run it again for those.\n"
    )


async def test_a_gateway_that_is_lost_in_the_middle() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.expect(UtteranceFinal)
        peer.connection.transport.abort()

    async with scripted_gateway(script) as url:
        ran = await run("translate", "--to", "ja", "--wait", "0", "--url", url, stdin="a\nb\n")
        one = await run("translate", "a", "--to", "ja", "--wait", "0", "--url", url)
    lost = f"gateway: The connection to the gateway at {url.replace('http:', 'ws:')} was lost."
    assert ran == (1, "", f"{lost} Lines 1 to 2 were not translated. Run it again for those.\n")
    assert one == (1, "", f"{lost} The text was not translated. Run it again.\n")


async def test_a_restart_on_a_terminal_leaves_what_was_shown() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.expect(UtteranceFinal)
        await peer.say(delta(utterance, "ja", "おは"))
        await peer.leave(1012, RESTARTS)

    async with (
        scripted_gateway(script) as url,
        on_a_terminal("translate", "hi", "--to", "ja", "--wait", "0", "--url", url, columns=120) as terminal,
    ):
        shown = await terminal.rest()
        assert shown.endswith(
            "ja  おは\r\ngateway: The gateway is restarting: the text was not translated. Run it again.\r\n"
        )
        assert await terminal.process.wait() == 1


@pytest.mark.parametrize("waiting_for", ["the gateway", "stdin"])
async def test_interrupted(waiting_for: str) -> None:
    reached = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.start()
        if waiting_for == "the gateway":
            await peer.expect(UtteranceFinal)
        reached.set()
        await peer.connection.wait_closed()

    text = ["hi"] if waiting_for == "the gateway" else []
    async with (
        scripted_gateway(script) as url,
        command("translate", "--to", "ja", "--url", url, *text) as process,
    ):
        await reached.wait()
        assert await interrupted(process) == (130, "", "")


# ---------------------------------------------------------------- on a terminal


async def test_translations_grow_in_place() -> None:
    shown, shown_more = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        assert (await peer.start()).stability == "live"
        utterance = await peer.take()
        await peer.say(delta(utterance, "ja", "おは"))
        await peer.say(delta(utterance, "de", "Guten ", "Tag"))
        # The rest is said only once this much was seen: nothing waits for the end.
        await shown.wait()
        await peer.say(delta(utterance, "de", "Morgen"))
        await shown_more.wait()
        await peer.say(translated(utterance, "de", "Guten Morgen!"), translated(utterance, "ja", "おはよう"))
        await peer.end()

    async with (
        scripted_gateway(script) as url,
        on_a_terminal("translate", "Good morning", "--to", "ja,de", "--url", url) as terminal,
    ):
        await terminal.until("\r\x1b[1A\x1b[2Kja  おは\r\n\x1b[2Kde  Guten Tag")
        shown.set()
        await terminal.until("\x1b[2Kde  Guten Morgen")
        shown_more.set()
        rest = await terminal.rest()
        assert await terminal.process.wait() == 0
    assert rest.endswith("\r\x1b[1A\x1b[Jja  おはよう\r\nde  Guten Morgen!\r\n")


# ---------------------------------------------------------------- a real gateway


class LoadsOnWord(SimulatedEngine):
    """Loads until the test says that it is done."""

    def __init__(self) -> None:
        super().__init__(Script(first_token_s=0, token_s=0))
        self.loaded = asyncio.Event()

    async def start(self) -> None:
        await self.loaded.wait()
        await super().start()


async def test_a_real_gateway_that_loads() -> None:
    engine = LoadsOnWord()
    async with (
        running(engine=engine) as gateway,
        command("translate", "hi", "--to", "ja", "--url", f"http://127.0.0.1:{gateway.port}") as process,
    ):
        assert process.stderr is not None
        said = await process.stderr.readline()
        assert said == b"gateway: The gateway's engine is not ready yet; waiting for it.\n"
        engine.loaded.set()
        assert await process.communicate() == (b"ja\t[ja] hi\n", b"")
        assert process.returncode == 0

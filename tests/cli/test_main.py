"""The command line as people use it: a process, its arguments, its output and exit status."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway import __version__
from gateway.cli import common, jobs, translate
from gateway.cli import main as cli
from gateway.cli.main import main
from gateway.domain.errors import StartupError
from gateway.protocol.messages import (
    Error,
    SessionEnd,
    SessionStart,
    SessionUpdate,
    SessionUpdated,
    UtteranceFinal,
)
from tests.processes import DEFAULT_SIGNALS
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

ROOT = Path(__file__).parents[2]
COMMAND = (*DEFAULT_SIGNALS, sys.executable, "-m", "gateway")
COMMANDS = ("serve", "translate", "chat", "version")


class Ran(NamedTuple):
    status: int | None
    out: str
    err: str


async def run(*argv: str, stdin: str = "", **environment: str) -> Ran:
    """Run the command to its end with its output going to pipes."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    try:
        out, err = await process.communicate(stdin.encode())
    finally:
        if process.returncode is None:  # the test ran out of time
            process.kill()
    return Ran(process.returncode, out.decode(), err.decode())


async def translate_everything(peer: Peer, text: Callable[[UtteranceFinal, str], str]) -> None:
    """A gateway that translates whatever comes into the languages of `session.start` until the end."""
    start = await peer.start()
    while isinstance(message := await peer.receive(), UtteranceFinal):
        await peer.say(accepted(message))
        for lang in start.reads:
            await peer.say(delta(message, lang, "so", " far"), translated(message, lang, text(message, lang)))
    assert isinstance(message, SessionEnd), message
    await peer.leave(1000)


async def echo(peer: Peer) -> None:
    await translate_everything(peer, lambda utterance, lang: f"{lang}: {utterance.text}")


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


# ---------------------------------------------------------------- help and usage


@pytest.mark.parametrize("argv", [["--help"], *([command, "--help"] for command in COMMANDS), ["--version"]])
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    code = (
        "import sys, gateway.cli.main\n"
        "try: gateway.cli.main.main()\n"
        "finally: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, cwd=ROOT, check=True)
    heavy = {"vllm", "torch", "transformers", "starlette", "uvicorn", "websockets", "msgspec", "asyncio"}
    assert heavy & set(ran.stderr.split()) == set()
    assert "gateway" in ran.stdout


@pytest.mark.parametrize("command", ["serve", "translate", "chat"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"examples:\n  gateway {command}" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == 2 * f"translation-gateway {__version__}\n"


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "start here:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["fly"], "invalid choice: 'fly'"),
        (["serve", "--port", "70000"], "'70000' is not a port (0 to 65535)"),
        (["serve", "--max-num-seqs", "0"], "'0' is not a whole number above 0"),
        (["serve", "--gpu-memory-utilization", "9"], "'9' is not between 0 and 1"),
        (["translate", ""], "TEXT is empty"),
        (["translate", "hi", "--to", ","], "give languages such as ja,de"),
        (["translate", "hi", "--to", "en-GB"], "nothing to translate: --from and --to are both en"),
        (["translate", "hi", "--glossary", "ticket"], "'ticket' is not TERM=TERM"),
        (["translate", "hi", "--glossary", "de:=x"], "'de:=x' is not TERM=TERM"),
        (["translate", "hi", "--wait", "inf"], "'inf' is not a number of seconds"),
        (["translate", "hi", "--wait", "soon"], "'soon' is not a number of seconds"),
        (["translate", "hi", "--url", ""], "'' is not the address of a gateway"),
        (["translate", "hi", "--url", "ftp://x"], "'ftp://x' is not the address of a gateway"),
        (["chat", "--url", "ftp://x"], "'ftp://x' is not the address of a gateway"),
    ],
)
def test_wrong_usage(argv: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_flag_is_answered_with_the_usage_of_its_command(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--prot", "9000"])
    assert left.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"usage: gateway {command} [-h]")
    assert f"gateway {command}: error: unrecognized arguments: --prot" in err


def test_an_unknown_flag_of_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--prot"])
    assert capsys.readouterr().err.startswith("usage: gateway [-h]")


def test_nothing_to_translate_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(isatty=lambda: True))
    with pytest.raises(SystemExit, match="2"):
        main(["translate", "--to", "ja"])


# ---------------------------------------------------------------- serve


Served = tuple[Path | None, Mapping[str, object], bool]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Served]:
    """Calls of `app.serve`, which here serves nothing and says it went well."""
    calls: list[Served] = []

    def serve(config_file: Path | None, overrides: dict[str, object], *, traceback: bool) -> int:
        calls.append((config_file, overrides, traceback))
        return 0

    _replace_app(monkeypatch, serve)
    return calls


def _replace_app(monkeypatch: pytest.MonkeyPatch, serve: Callable[..., int]) -> None:
    app: Any = types.ModuleType("gateway.app")
    app.serve = serve
    monkeypatch.setitem(sys.modules, "gateway.app", app)
    monkeypatch.setattr("gateway.app", app, raising=False)


def test_serve_overrides_what_was_given_and_nothing_else(served: list[Served]) -> None:
    assert main(["serve"]) == 0
    assert main(["serve", "--port", "0", "--engine", "simulated", "--verbose"]) == 0
    assert served == [(None, {}, False), (None, {"port": 0, "engine.kind": "simulated"}, True)]


def test_every_flag_of_serve_is_a_setting(served: list[Served]) -> None:
    argv = "serve --host 0.0.0.0 --port 9000 --model m --family hunyuan-mt --engine vllm --max-num-seqs 32"
    argv += " --max-model-len 2048 --dtype bfloat16 --gpu-memory-utilization 0.8 --config g.toml"
    assert main([*argv.split(), "--log-level", "debug", "--traceback"]) == 0
    (call,) = served
    assert call == (
        Path("g.toml"),
        {
            "host": "0.0.0.0",
            "port": 9000,
            "engine.model": "m",
            "engine.family": "hunyuan-mt",
            "engine.kind": "vllm",
            "engine.max_num_seqs": 32,
            "engine.max_model_len": 2048,
            "engine.dtype": "bfloat16",
            "engine.gpu_memory_utilization": 0.8,
            "log_level": "debug",
        },
        True,
    )


def test_the_settings_know_every_override(served: list[Served]) -> None:
    from gateway.config import load

    test_every_flag_of_serve_is_a_setting(served)
    load(overrides=served[0][1])


@pytest.mark.parametrize(("flag", "setting"), cli._SETTINGS.items())
def test_a_wrong_override_is_named_by_its_flag(flag: str, setting: str) -> None:
    from gateway.config import load

    with pytest.raises(StartupError, match=f"^--{flag.replace('_', '-')}: \\[\\] is no"):
        load(overrides={setting: []})


def test_a_wrong_setting_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.toml").write_text("prot = 1\n")
    assert main(["serve", "--config", str(tmp_path / "g.toml")]) == 1
    assert capfd.readouterr().err == (
        f"gateway: {tmp_path / 'g.toml'}: there is no setting 'prot'; did you mean 'port'?\n"
    )


@pytest.mark.parametrize("traceback", [False, True])
def test_a_gateway_that_cannot_start_says_why(
    traceback: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(*_args: object, **_more: object) -> int:
        raise StartupError("Port 8000 is taken.")

    _replace_app(monkeypatch, serve)
    assert main(["serve", *(["--traceback"] if traceback else [])]) == 1
    err = capsys.readouterr().err
    assert err.endswith("gateway: Port 8000 is taken.\n")
    assert ("Traceback" in err) is traceback


@pytest.mark.parametrize("traceback", [False, True])
def test_a_bug_is_one_sentence(
    traceback: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(*_args: object, **_more: object) -> int:
        raise KeyError("oops")

    _replace_app(monkeypatch, serve)
    assert main(["serve", *(["--traceback"] if traceback else [])]) == 1
    err = capsys.readouterr().err
    assert err.endswith("gateway: This is a bug (KeyError: 'oops'); --traceback shows where.\n")
    assert ("Traceback" in err) is traceback


def test_an_interrupted_command_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(*_args: object, **_more: object) -> int:
        raise KeyboardInterrupt

    _replace_app(monkeypatch, serve)
    assert main(["serve"]) == 130
    assert capsys.readouterr() == ("", "")


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
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "Haus", "--from", "de", "--glossary", "Haus=house", "--url", url)
    assert ran == (0, "en\tEN\nja\tJA\nfr\tFR\n", "gateway: The model m takes no context; it is left out.\n")


async def test_an_option_that_the_model_does_not_take_is_only_a_note() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.take()
        await peer.say(refused("unsupported_option", "The model m takes no context; it is left out."))
        await peer.say(translated(utterance, "ja", "OK"))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "hi", "--to", "ja", "--context", "A game.", "--url", url)
    assert ran == (0, "ja\tOK\n", "gateway: The model m takes no context; it is left out.\n")


async def test_a_refused_glossary_ends_the_command() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.expect(SessionUpdate)
        await peer.say(refused("limit_exceeded", "The term is too long."))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        ran = await run("translate", "Haus", "--from", "de", "--url", url)
    assert ran == (3, "", "gateway: The term is too long.\n")


@pytest.mark.parametrize("argv", [[], ["-"]])
async def test_lines_of_stdin_come_out_in_order(argv: list[str]) -> None:
    """More lines than are under way at once; the gateway answers the later ones first."""
    lines = [f"line {number}" for number in range(1, 21)]
    under_way: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.start()
        left = len(lines)
        while left:
            finals = [await peer.take() for _ in range(min(left, translate._WINDOW))]
            under_way.append(len(finals))
            left -= len(finals)
            for utterance in reversed(finals):
                await peer.say(translated(utterance, "ja", utterance.text.upper()))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    # An empty line is nothing to translate; the last line has no end; a carriage return is part of none.
    text = "\r\n".join([lines[0], "", *lines[1:]])
    async with scripted_gateway(script) as url:
        ran = await run("translate", *argv, "--to", "ja", "--url", url, stdin=text)
    assert ran == (0, "".join(f"ja\t{line.upper()}\n" for line in lines), "")
    assert under_way == [8, 8, 4]


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


async def test_nothing_on_stdin_is_nothing_to_do() -> None:
    async with scripted_gateway(echo) as url:
        assert await run("translate", "--to", "ja", "--url", url) == (0, "", "")


async def test_a_translation_is_one_line_whatever_is_in_it() -> None:
    async def script(peer: Peer) -> None:
        await translate_everything(peer, lambda *_: "one\ntwo\t\x1b[2J")

    async with scripted_gateway(script) as url:
        assert await run("translate", "x", "--to", "ja", "--url", url) == (0, "ja\tone two  [2J\n", "")


async def test_json_is_the_gateways_own_messages() -> None:
    async def script(peer: Peer) -> None:
        assert (await peer.start()).stability == "final"
        utterance = await peer.take()
        await peer.say(delta(utterance, "ja", "は"), translated(utterance, "ja", "はい"))
        await peer.say(failed(utterance, "de", "The engine failed."))
        utterance = await peer.expect(UtteranceFinal)
        await peer.say(refused("limit_exceeded", "Too long.", utterance.id))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "--to", "ja,de", "--json", "--url", url, stdin="yes\nno\n")
    assert ran.status == 3
    final, failure, refusal = map(json.loads, ran.out.splitlines())
    assert (final["type"], final["lang"], final["text"]) == ("translation.final", "ja", "はい")
    assert (failure["type"], failure["lang"], failure["code"]) == ("translation.failed", "de", "engine_failed")
    assert (refusal["type"], refusal["utterance"], refusal["code"]) == ("error", "2", "limit_exceeded")
    assert ran.err == "gateway: line 1: de: The engine failed.\ngateway: line 2: Too long.\n"


async def test_timings_and_a_cut_go_to_stderr() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.take()
        await peer.say(translated(utterance, "ja", "はい", truncated=True))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "yes", "--to", "ja", "--timings", "--url", url)
    assert ran == (
        0,
        "ja\tはい\n",
        "gateway: ja: The translation was cut short by the output limit.\n"
        "gateway: ja: first token after 20 ms, 9 tokens after 48 ms\n",
    )


# ---------------------------------------------------------------- translate, when it does not work


async def test_one_language_fails() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.take()
        await peer.say(failed(utterance, "ja", "The engine failed."), translated(utterance, "de", "Ja"))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "yes", "--to", "ja,de", "--url", url)
    assert ran == (3, "de\tJa\n", "gateway: ja: The engine failed.\n")


async def test_a_refused_text_harms_no_other() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        first, second = await peer.expect(UtteranceFinal), await peer.take()
        await peer.say(translated(second, "ja", "OK"), refused("limit_exceeded", "Too long.", first.id))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "--to", "ja", "--url", url, stdin="long\nshort\n")
    assert ran == (3, "ja\tOK\n", "gateway: line 1: Too long.\n")


async def test_a_text_without_room_is_sent_again() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        first = await peer.expect(UtteranceFinal)
        await peer.say(refused("overloaded", "Full.", first.id, retry_after_ms=1))
        again = await peer.take()
        assert (again.id, again.text) == (first.id, first.text)
        await peer.say(translated(again, "ja", "OK"))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        assert await run("translate", "yes", "--to", "ja", "--url", url) == (0, "ja\tOK\n", "")


async def test_a_text_is_not_sent_again_for_ever() -> None:
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.start()
        while isinstance(message := await peer.receive(), UtteranceFinal):
            sent += 1
            await peer.say(refused("overloaded", "Full.", message.id, retry_after_ms=0))
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "yes", "--to", "ja", "--url", url)
    assert ran == (3, "", "gateway: Full.\n")
    assert sent == jobs._ATTEMPTS


async def test_an_error_about_the_session_is_told() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.say(refused("invalid_value", "Something is odd."))
        await translate_everything_from_here(peer)

    async def translate_everything_from_here(peer: Peer) -> None:
        utterance = await peer.take()
        await peer.say(translated(utterance, "ja", "OK"))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "yes", "--to", "ja", "--url", url)
    assert ran == (3, "ja\tOK\n", "gateway: Something is odd.\n")


async def test_an_unknown_language_is_one_sentence() -> None:
    sentence = "The model does not know the language 'xx'; it knows en, ja."

    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.say(refused("unsupported_language", sentence))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        assert await run("translate", "hi", "--to", "xx", "--url", url) == (3, "", f"gateway: {sentence}\n")


@pytest.mark.parametrize("argv", [["translate", "hi"], ["chat"]])
async def test_no_gateway_is_one_sentence(argv: list[str], closed_port: int) -> None:
    ran = await run(*argv, "--url", f"http://127.0.0.1:{closed_port}")
    sentence = f"gateway: No gateway answers at ws://127.0.0.1:{closed_port}: start one with `gateway serve`.\n"
    assert ran == (1, "", sentence)


@pytest.mark.parametrize("argv", [["translate", "hi"], ["chat"]])
def test_no_gateway_at_the_default_address_may_be_one_elsewhere(
    argv: list[str], closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "_DEFAULT_URL", f"http://127.0.0.1:{closed_port}")
    assert main(argv) == 1
    assert capsys.readouterr().err == (
        f"gateway: No gateway answers at ws://127.0.0.1:{closed_port}: start one with `gateway serve`. "
        "For one on another port add --url, as in --url http://127.0.0.1:8080.\n"
    )


async def test_traceback_shows_where_an_error_came_from(closed_port: int) -> None:
    ran = await run("translate", "hi", "--traceback", "--url", f"http://127.0.0.1:{closed_port}")
    assert ran.status == 1
    assert "Traceback (most recent call last)" in ran.err


def leaving(code: int, *last_words: Error, translates: int) -> Callable[[Peer], Awaitable[None]]:
    """A gateway that translates the first so many texts and is gone."""

    async def script(peer: Peer) -> None:
        await peer.start()
        for _ in range(translates):
            utterance = await peer.take()
            await peer.say(translated(utterance, "ja", utterance.text))
        await peer.leave(code, *last_words)

    return script


RESTARTS = refused("draining", "The gateway restarts; reconnect.", retry_after_ms=1_000)


@pytest.mark.parametrize(
    ("texts", "translates", "lines"),
    [
        ("a\nb\n", 1, "line 2 was not translated. Run it again for that one."),
        ("a\nb", 0, "lines 1 to 2 were not translated. Run it again for those."),
        ("a\n\nb\n\n", 1, "line 3 was not translated. Run it again for that one."),
        ("a\n" * 60, 17, "lines 18 to 60 were not translated. Run it again for those."),
    ],
)
async def test_a_gateway_that_restarts_in_the_middle(texts: str, translates: int, lines: str) -> None:
    async with scripted_gateway(leaving(1012, RESTARTS, translates=translates)) as url:
        ran = await run("translate", "--to", "ja", "--wait", "0", "--url", url, stdin=texts)
    assert ran == (1, "ja\ta\n" * translates, f"gateway: The gateway is restarting: {lines}\n")


async def test_a_gateway_that_restarts_under_one_text() -> None:
    async with scripted_gateway(leaving(1012, RESTARTS, translates=0)) as url:
        ran = await run("translate", "hi", "--to", "ja", "--wait", "0", "--url", url)
    assert ran == (
        1,
        "",
        "gateway: The gateway is restarting: the text was not translated. Run it again.\n",
    )


async def test_lines_that_are_still_to_come_are_not_translated_either() -> None:
    async with scripted_gateway(leaving(1012, RESTARTS, translates=1)) as url:
        process = await asyncio.create_subprocess_exec(
            *(*COMMAND, "translate", "--to", "ja", "--wait", "0", "--url", url),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
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

    async with scripted_gateway(script) as url:
        ran = await run("translate", "--to", "ja", "--wait", "0", "--url", url, stdin="a\nb\nc\n")
    sentence = "gateway: The gateway is restarting: lines 2 to 3 were not translated. Run it again for those.\n"
    assert ran == (1, "ja\tOK\n", sentence)


async def test_what_a_restart_does_not_take_is_told_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        # Both are on their way before the first is refused; afterwards the client would keep the second.
        for utterance in [await peer.expect(UtteranceFinal) for _ in range(2)]:
            await peer.say(refused("draining", "Send it elsewhere.", utterance.id, retry_after_ms=0))
        await peer.leave(1012, RESTARTS)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "--to", "ja", "--wait", "0", "--url", url, stdin="a\nb\n")
    sentence = "gateway: The gateway is restarting: lines 1 to 2 were not translated. Run it again for those.\n"
    assert ran == (1, "", sentence)


FOUND = "gateway: The gateway is back; continuing.\n"


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
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "--to", "ja", "--url", url, stdin="a\nb\nc\nd\n")
    lost = "gateway: The gateway closed the session: The gateway restarts; reconnect. Trying to reach it again.\n"
    assert ran == (0, "ja\t1\nja\t2\nja\t3\nja\t4\n", lost + FOUND)
    # What the client sends again on its own goes first.
    assert again == (["4", "2"] if recovered else ["4", "2", "3"])


async def test_what_was_shown_before_a_loss_is_shown_anew() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        if peer.visit == 1:
            await peer.say(delta(await peer.take(), "ja", "Guten Ta"))
            await peer.connection.close(4008)
            return
        utterance = UtteranceFinal("1", 1, "hi")
        await peer.say(delta(utterance, "ja", "Guten Morgen"), translated(utterance, "ja", "Guten Morgen!"))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with (
        scripted_gateway(script) as url,
        on_a_terminal("translate", "hi", "--to", "ja", "--url", url, columns=200) as terminal,
    ):
        rest = await terminal.rest()
        assert await terminal.process.wait() == 0
    assert "Guten TaGuten" not in rest
    assert rest.endswith("Guten Morgen!\r\n")


async def test_a_gateway_that_does_not_come_back() -> None:
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            await peer.take()
            peer.drop()
            return
        await peer.leave(4509, refused("too_many_sessions", "This gateway is full."))

    async with scripted_gateway(script) as url:
        ran = await run("translate", "--to", "ja", "--url", url, stdin="a\nb\n")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.endswith(
        "gateway: This gateway is full. Lines 1 to 2 were not translated. Run it again for those.\n"
    )


async def test_a_text_that_no_gateway_would_read() -> None:
    async with scripted_gateway(echo) as url:
        ran = await run("translate", "--to", "ja", "--url", url, stdin="a" * 70_000 + "\nb\n")
        talk = await chat(url, "a" * 70_000, argv=("--to", "ja"))
    assert (ran.status, ran.out) == (3, "ja\tja: b\n")
    assert re.fullmatch(r"gateway: line 1: The message has \d+ bytes; the gateway takes 65536\.\n", ran.err)
    assert re.fullmatch(r"gateway: The message has \d+ bytes; the gateway takes 65536\.\n", talk.err)


async def test_a_restart_after_the_last_line_takes_nothing_away() -> None:
    async with scripted_gateway(leaving(1012, RESTARTS, translates=2)) as url:
        assert await run("translate", "--to", "ja", "--wait", "0", "--url", url, stdin="a\na\n") == (
            0,
            "ja\ta\n" * 2,
            "",
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


async def test_a_gateway_that_says_goodbye_too_early() -> None:
    async with scripted_gateway(leaving(1000, translates=1)) as url:
        ran = await run("translate", "--to", "ja", "--wait", "0", "--url", url, stdin="a\nb\n")
    sentence = "gateway: The gateway ended the session. Line 2 was not translated. Run it again for that one.\n"
    assert ran == (1, "ja\ta\n", sentence)


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


async def test_an_engine_that_loads_is_waited_for() -> None:
    async def script(peer: Peer) -> None:
        for _ in range(2):
            await peer.expect(SessionStart)
            await peer.say(refused("engine_unavailable", "Loading.", retry_after_ms=1))
        await echo(peer)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "hi", "--to", "ja", "--url", url)
    assert ran == (0, "ja\tja: hi\n", "gateway: The gateway's engine is not ready yet; waiting for it.\n")


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
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "--to", "ja", "--url", url, stdin="a\nb\n")
    assert ran == (0, "ja\ta\nja\tb\n", "gateway: The gateway's engine is not ready yet; waiting for it.\n")


async def test_an_engine_that_stays_dead() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.expect(UtteranceFinal)
        await peer.say(refused("engine_unavailable", "The engine died.", utterance.id, retry_after_ms=1))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        ran = await run("translate", "hi", "--to", "ja", "--wait", "0", "--url", url)
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


@pytest.mark.parametrize("waiting_for", ["the gateway", "stdin"])
async def test_interrupted(waiting_for: str) -> None:
    reached = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.start()
        if waiting_for == "the gateway":
            await peer.expect(UtteranceFinal)
        reached.set()
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        process = await asyncio.create_subprocess_exec(
            *(*COMMAND, "translate", "--to", "ja", "--url", url),
            *(["hi"] if waiting_for == "the gateway" else []),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        await reached.wait()
        process.send_signal(signal.SIGINT)
        # stdin stays open: a command that still waits for it would not come back.
        assert process.stdout is not None
        assert process.stderr is not None
        assert (await process.stdout.read(), await process.stderr.read()) == (b"", b"")
        assert await process.wait() == 130


async def test_nobody_reads_the_output() -> None:
    async with scripted_gateway(echo) as url:
        command = " ".join([*COMMAND, "translate", "--to", "ja", "--url", url])
        process = await asyncio.create_subprocess_shell(
            f"{{ {command}; echo status $? >&2; }} | true",
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        _, err = await process.communicate(b"a\n" * 50)
    assert err == b"status 141\n"


# ---------------------------------------------------------------- on a terminal


class Terminal:
    """A process whose terminal we are."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, fd: int) -> None:
        self.process = process
        self.seen = ""
        self._reader = reader
        self._fd = fd

    async def until(self, text: str) -> str:
        """Everything shown up to and including `text`, without what was asked for before."""
        while text not in self.seen:
            chunk = await self._reader.read(4096)
            assert chunk, self.seen
            self.seen += chunk.decode()
        shown, _, self.seen = self.seen.partition(text)
        return shown + text

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    async def asleep(self) -> None:
        """Until the main thread waits for something; with the prompt shown, that is a key."""
        while _state(self.process.pid) != "S":
            await asyncio.sleep(0.01)

    async def rest(self) -> str:
        with contextlib.suppress(OSError):  # Linux reports a terminal without processes as an I/O error
            while chunk := await self._reader.read(4096):
                self.seen += chunk.decode()
        return self.seen


def _state(pid: int) -> str:
    """What Linux says of a process's main thread: `S` sleeps, `R` runs."""
    return Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _others_ignore_interrupts(pid: int) -> bool:
    """Whether SIGINT is blocked in every thread but the main one, of which there is at least one."""
    threads = [path for path in Path(f"/proc/{pid}/task").iterdir() if path.name != str(pid)]
    masks = [re.search(r"^SigBlk:\s*(\w+)", (path / "status").read_text(), re.MULTILINE) for path in threads]
    return bool(masks) and all(mask and int(mask[1], 16) & 1 << signal.SIGINT - 1 for mask in masks)


@contextlib.asynccontextmanager
async def on_a_terminal(*argv: str, columns: int = 80) -> AsyncGenerator[Terminal, None]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *argv,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm", "INPUTRC": "/dev/null"},
        start_new_session=True,
    )
    os.close(theirs)
    reader = asyncio.StreamReader()
    file = os.fdopen(ours, "rb", buffering=0, closefd=False)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        yield Terminal(process, reader, ours)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        transport.close()
        os.close(ours)


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
        await peer.expect(SessionEnd)
        await peer.leave(1000)

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


async def test_a_refusal_on_a_terminal_is_a_sentence() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        utterance = await peer.expect(UtteranceFinal)
        await peer.say(refused("limit_exceeded", "Too long.", utterance.id))
        await peer.expect(SessionEnd)
        await peer.leave(1000)

    async with (
        scripted_gateway(script) as url,
        on_a_terminal("translate", "hi", "--to", "ja", "--url", url) as terminal,
    ):
        assert await terminal.rest() == "gateway: Too long.\r\n"
        assert await terminal.process.wait() == 3


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


async def chat(url: str, *lines: str, argv: tuple[str, ...] = ()) -> Ran:
    return await run("chat", "--url", url, *argv, stdin="".join(f"{line}\n" for line in lines))


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


# ---------------------------------------------------------------- a real gateway


@contextlib.asynccontextmanager
async def real_gateway(**environment: str) -> AsyncGenerator[str, None]:
    """The address of a gateway in a process of its own, with the simulated engine; it may still be loading."""
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "serve", "--engine", "simulated", "--port", "0"),
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert process.stderr is not None
    try:
        said = ""
        while (address := re.search(r"http://[\w.:]+", said)) is None:
            line = await process.stderr.readline()
            assert line, said
            said += line.decode()
        yield address[0]
    finally:
        process.terminate()
        await process.stderr.read()
        assert await process.wait() == 0


async def test_a_real_gateway() -> None:
    async with real_gateway() as url:
        text = "\n".join(f"Sentence number {number}." for number in range(60))
        ran, unknown, talk = await asyncio.gather(
            run("translate", "--to", "ja,de", "--url", url, stdin=text),
            run("translate", "hi", "--to", "tlh", "--url", url),
            chat(url, "Good morning", "/to fr", "Good night", argv=("--to", "ja")),
        )
    assert ran.status == 0, ran.err
    assert [line.partition("\t")[0] for line in ran.out.splitlines()] == ["ja", "de"] * 60
    assert [int(found) for found in re.findall(r"^de\t.*number (\d+)\.$", ran.out, re.MULTILINE)] == list(
        range(60)
    )
    assert unknown.status == 3
    assert unknown.err.startswith("gateway: The model does not know the language 'tlh'; it knows en, ja, ")
    assert talk.status == 0
    assert talk.out.splitlines()[1] == "en → fr"


async def test_a_real_gateway_that_loads() -> None:
    async with real_gateway(GATEWAY__ENGINE__SCRIPT__LOAD_S="1") as url:
        ran = await run("translate", "hi", "--to", "ja", "--url", url)
    assert ran.status == 0
    assert ran.out == "ja\t[ja] hi\n"
    assert ran.err == "gateway: The gateway's engine is not ready yet; waiting for it.\n"


# ---------------------------------------------------------------- documentation


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_documented(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    offered = re.findall(r"^ +(--[a-z-]+)(?:, (--[a-z-]+))?", capsys.readouterr().out, re.MULTILINE)
    text = (ROOT / "docs" / "cli.md").read_text()
    section = text.partition(f"\n## `gateway {command}`")[2].partition("\n## ")[0]
    assert section, f"no section about gateway {command}"
    documented = set(re.findall(r"`(--[a-z-]+)", section))
    assert documented == {flag for flags in offered for flag in flags if flag}


def test_every_exit_status_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    statuses = {
        0,
        2,
        common.EXIT_UNREACHABLE,
        common.EXIT_FAILED,
        cli._INTERRUPTED,
        cli._BROKEN_PIPE,
    }
    assert {int(found) for found in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == statuses


# ---------------------------------------------------------------- make


@pytest.mark.parametrize(
    ("goals", "hints"),
    [
        ("install", True),
        ("install-dev", True),
        ("clean-venv install", True),
        ("demo", False),
        ("install demo", False),
        ("check", False),
    ],
)
def test_the_installer_says_what_is_next_only_where_nothing_follows(goals: str, hints: bool) -> None:
    plan = subprocess.run(["make", "-n", *goals.split()], capture_output=True, text=True, cwd=ROOT, check=True)
    (command,) = set(re.findall(r"^scripts/install\.sh.*$", plan.stdout, re.MULTILINE))
    assert ("--next" in command.split()) is hints

"""The command line as a whole: help, `gateway serve`, and how failures are told."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway import __version__
from gateway.cli import main as cli
from gateway.cli.main import main
from gateway.domain.errors import StartupError
from tests.cli.commands import COMMAND, COMMANDS, ROOT, chat, echo, real_gateway, run
from tests.scripted_gateway import scripted_gateway

# ---------------------------------------------------------------- help and usage


LIGHT = (*COMMANDS, "speak", "read", "key", "token")


@pytest.mark.parametrize("argv", [["--help"], *([command, "--help"] for command in LIGHT), ["--version"]])
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    code = (
        "import sys, gateway.cli.main\n"
        "try: gateway.cli.main.main()\n"
        "finally: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, cwd=ROOT, check=True)
    heavy = {"vllm", "torch", "transformers", "starlette", "uvicorn", "websockets", "msgspec", "asyncio"}
    heavy |= {"jwt", "cryptography"}
    assert heavy & set(ran.stderr.split()) == set()
    assert "gateway" in ran.stdout


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == 2 * f"translation-gateway {__version__}\n"


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "start here:" in capsys.readouterr().err


def test_nothing_to_translate_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(isatty=lambda: True))
    with pytest.raises(SystemExit, match="2"):
        main(["translate", "--to", "ja"])


# ---------------------------------------------------------------- serve


Served = tuple[Path | None, Mapping[str, object], bool]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Served]:
    """Calls of `serving.serve`, which here serves nothing and says it went well."""
    calls: list[Served] = []

    def serve(
        config_file: Path | None, overrides: dict[str, object], state_dir: Path | None, *, traceback: bool
    ) -> int:
        assert state_dir is None
        calls.append((config_file, overrides, traceback))
        return 0

    _replace_serving(monkeypatch, serve)
    return calls


def _replace_serving(monkeypatch: pytest.MonkeyPatch, serve: Callable[..., int]) -> None:
    serving: Any = types.ModuleType("gateway.serving")
    serving.serve = serve
    monkeypatch.setitem(sys.modules, "gateway.serving", serving)
    monkeypatch.setattr("gateway.serving", serving, raising=False)


def test_serve_overrides_what_was_given_and_nothing_else(served: list[Served]) -> None:
    assert main(["serve"]) == 0
    assert main(["serve", "--port", "0", "--engine", "simulated", "--verbose"]) == 0
    assert served == [(None, {}, False), (None, {"port": 0, "engine.kind": "simulated"}, True)]


def test_every_flag_of_serve_is_a_setting(served: list[Served]) -> None:
    argv = "serve --host 0.0.0.0 --port 9000 --model m --family hunyuan-mt --engine remote --max-num-seqs 32"
    argv += " --max-model-len 2048 --dtype bfloat16 --gpu-memory-utilization 0.8 --config g.toml"
    argv += " --tls-cert c.pem --tls-key k.pem --engine-url http://gpu:8000"
    assert main([*argv.split(), "--log-level", "debug", "--traceback"]) == 0
    (call,) = served
    assert call == (
        Path("g.toml"),
        {
            "host": "0.0.0.0",
            "port": 9000,
            "tls_cert": "c.pem",
            "tls_key": "k.pem",
            "engine.model": "m",
            "engine.family": "hunyuan-mt",
            "engine.kind": "remote",
            "engine.url": "http://gpu:8000",
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

    with pytest.raises(StartupError, match=f"^--{flag.replace('_', '-')}: \\[\\] is n"):
        load(overrides={setting: []})


def test_a_wrong_setting_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.toml").write_text("prot = 1\n")
    assert main(["serve", "--config", str(tmp_path / "g.toml")]) == 1
    assert capfd.readouterr().err == (
        f"gateway: {tmp_path / 'g.toml'}: there is no setting 'prot'; did you mean 'port'?\n"
    )


@pytest.mark.parametrize("traceback", [False, True])
@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (StartupError("Port 8000 is taken."), "gateway: Port 8000 is taken.\n"),
        (KeyError("oops"), "gateway: This is a bug (KeyError: 'oops'); --traceback shows where.\n"),
    ],
)
def test_what_ends_the_gateway_is_one_sentence(
    error: Exception,
    sentence: str,
    traceback: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def serve(*_args: object, **_more: object) -> int:
        raise error

    _replace_serving(monkeypatch, serve)
    assert main(["serve", *(["--traceback"] if traceback else [])]) == 1
    err = capsys.readouterr().err
    assert err.endswith(sentence)
    assert ("Traceback" in err) is traceback


def test_an_interrupted_command_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(*_args: object, **_more: object) -> int:
        raise KeyboardInterrupt

    _replace_serving(monkeypatch, serve)
    assert main(["serve"]) == 130
    assert capsys.readouterr() == ("", "")


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("argv", "scheme"),
    [
        ("translate hi", "ws"),
        ("chat", "ws"),
        ("speak --meeting m", "ws"),
        ("read ja --meeting m", "ws"),
        ("read --meeting m --transcript txt", "http"),
        ("engines", "http"),
        ("admin meetings", "http"),
    ],
)
def test_no_gateway_is_one_sentence(
    argv: str, scheme: str, closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_ADMIN_KEY", "a")
    address = f"127.0.0.1:{closed_port}"
    assert main([*argv.split(), "--url", f"http://{address}"]) == 1
    sentence = f"gateway: No gateway answers at {scheme}://{address}: none runs there.\n"
    assert capsys.readouterr() == ("", sentence)


@pytest.mark.parametrize("argv", [["translate", "hi"], ["chat"]])
def test_default_address_hints_at_url(
    argv: list[str], closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "DEFAULT_URL", f"http://127.0.0.1:{closed_port}")
    assert main(argv) == 1
    assert capsys.readouterr().err == (
        f"gateway: No gateway answers at ws://127.0.0.1:{closed_port}: none runs there. Name the address of one "
        "that runs elsewhere, as in --url http://127.0.0.1:8080, or start one with `gateway serve`.\n"
    )


def test_default_admin_address_hints_at_its_settings(
    closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_ADMIN_KEY", "a")
    monkeypatch.delenv("GATEWAY_ADMIN_URL", raising=False)
    monkeypatch.setattr(cli, "DEFAULT_ADMIN_URL", f"http://127.0.0.1:{closed_port}")
    assert main(["admin", "meetings"]) == 1
    said = capsys.readouterr().err
    assert f"at http://127.0.0.1:{closed_port}: none runs there." in said
    assert "--url http://127.0.0.1:9100, or in GATEWAY_ADMIN_URL" in said
    assert "gateway serve" not in said


async def test_traceback_shows_where_an_error_came_from(closed_port: int) -> None:
    ran = await run("translate", "hi", "--traceback", "--url", f"http://127.0.0.1:{closed_port}")
    assert ran.status == 1
    assert "Traceback (most recent call last)" in ran.err


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


# ---------------------------------------------------------------- a real gateway


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

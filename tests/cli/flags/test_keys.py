"""What `gateway key` and `gateway token` take, and how they say what they do not take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.flags.keys import KEYS_FILE
from gateway.cli.flags.parser import parser
from gateway.cli.main import main
from gateway.config.settings import AuthSettings
from tests.cli.commands import ROOT


@pytest.mark.parametrize("command", ["key", "token"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert f"examples:\n  gateway {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["key", "token"])
def test_help_loads_nothing_heavy(command: str) -> None:
    code = (
        "import sys, gateway.cli.main\ntry: gateway.cli.main.main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    argv = [sys.executable, "-c", code, command, "--help"]
    ran = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=True)
    heavy = {"jwt", "cryptography", "msgspec", "asyncio", "starlette", "websockets", "vllm"}
    assert heavy & set(ran.stderr.split()) == set()


def test_what_is_meant_if_nothing_is_said() -> None:
    key = parser().parse_args(["key", "new"])
    assert (key.keys, key.tenant, key.id) == (KEYS_FILE, None, None) == (Path("keys.json"), None, None)
    token = parser().parse_args(["token"])
    assert token.keys == KEYS_FILE
    assert token.audience == AuthSettings().audience
    assert token.tenant == "default"
    left = ("meeting", "sub", "name", "role", "langs", "speaks", "max_s", "expires", "url")
    assert {getattr(token, name) for name in left} == {None}
    assert not token.once
    assert not token.invite


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ("key", "the following arguments are required: action"),
        ("key make", "invalid choice: 'make'"),
        ("key remove", "give the ID of the key to remove"),
        ("key new a", "new takes no ID"),
        ("key api a", "api takes no ID"),
        ("key list a", "list takes no ID"),
        ("key new --tenant a/b", "'a/b' has other characters than letters, digits and . _ ~ -, or over 64"),
        ("key new --tenant ..", "'..' has other characters"),
        (f"key new --tenant {'x' * 65}", "or over 64"),
        ("token --tenant a/b", "'a/b' has other characters"),
        ("token --meeting ä", "'ä' has other characters"),
        (f"token --meeting {'x' * 65}", "or over 64"),
        ("token --role owner", "invalid choice: 'owner'"),
        ("token --langs ,", "give languages such as ja,de"),
        ("token --speaks ,", "give languages such as ja,de"),
        ("token --max-s 0", "'0' is not a whole number above 0"),
        ("token --expires 1.5", "'1.5' is not a whole number above 0"),
        ("token --expires -1", "'-1' is not a whole number above 0"),
        ("token --url https://x.example", "--url goes with --invite: a token is never part of a link"),
        ("token standup", "unrecognized arguments: standup"),
    ],
)
def test_wrong_usage(
    argv: str,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(argv.split())
    err = capsys.readouterr().err
    assert err.startswith(f"usage: gateway {argv.split()[0]} [-h]")
    assert complaint in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flag", ["--tenant", "--meeting"])
@pytest.mark.parametrize("name", ["a" * 64, "A.b_~-9", "...x"])
def test_names_that_may_be(flag: str, name: str) -> None:
    assert getattr(parser().parse_args(["token", flag, name]), flag.strip("-")) == name

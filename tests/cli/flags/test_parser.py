"""What the command line takes, and how it says what it does not take."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from gateway.cli.flags.parser import KEYS_FILE, parser
from gateway.cli.main import main
from gateway.config.settings import AuthSettings
from tests.cli.commands import COMMANDS

NO_URL = "is not the address of a gateway"
NO_MEETING = "is not a meeting id (letters, digits and . _ ~ -, but not only dots)"


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ("fly", "invalid choice: 'fly'"),
        ("serve --port 70000", "'70000' is not a port (0 to 65535)"),
        ("serve --max-num-seqs 0", "'0' is not a whole number above 0"),
        ("serve --gpu-memory-utilization 9", "'9' is not between 0 and 1"),
        ("serve --keep-engine 3601", "'3601' is not between 0 and 3600 seconds"),
        ("translate ''", "TEXT is empty"),
        ("translate hi --to ,", "give languages such as ja,de"),
        ("translate hi --to en-GB", "nothing to translate: --from and --to are both en"),
        ("translate hi --glossary ticket", "'ticket' is not TERM=TERM"),
        ("translate hi --glossary de:=x", "'de:=x' is not TERM=TERM"),
        ("translate hi --wait inf", "'inf' is not a number of seconds"),
        ("translate hi --wait soon", "'soon' is not a number of seconds"),
        ("translate hi --url ''", f"'' {NO_URL}"),
        ("translate hi --url ftp://x", f"'ftp://x' {NO_URL}"),
        ("chat --url ftp://x", f"'ftp://x' {NO_URL}"),
        ("speak", "the following arguments are required: --meeting"),
        ("speak --meeting 'stand up'", f"'stand up' {NO_MEETING}"),
        ("speak --meeting a/../b", f"'a/../b' {NO_MEETING}"),
        ("speak --meeting ..", f"'..' {NO_MEETING}"),
        ("speak --meeting m --words-per-minute 0", "'0' is not a number of words"),
        ("speak --meeting m --words-per-minute nan", "'nan' is not a number of words"),
        ("speak --meeting m --url ftp://x", f"'ftp://x' {NO_URL}"),
        ("read ja", "the following arguments are required: --meeting"),
        ("read --meeting m", "give a language to read, such as ja"),
        ("read --meeting m ,", "give languages such as ja,de"),
        ("read --meeting '' ja", f"'' {NO_MEETING}"),
        ("read --meeting m --json --transcript srt", "not allowed with argument --json"),
        ("read --meeting m --transcript doc", "invalid choice: 'doc'"),
        ("read --meeting m ja --stability early", "invalid choice: 'early'"),
        ("read --meeting m ja --url ftp://x", f"'ftp://x' {NO_URL}"),
        ("read --meeting m --transcript srt --url ''", f"'' {NO_URL}"),
        ("bridge --meeting m --sample-rate 0", "'0' is not a whole number above 0"),
        ("admin end", "give end MEETING"),
        ("admin disconnect standup", "give disconnect MEETING PARTICIPANT"),
        ("admin workers 1", "workers takes no NAME"),
        ("admin meetings", "give an operator's key: set GATEWAY_ADMIN_KEY or --key-file"),
        ("admin meetings --key-file /nowhere", "The token file cannot be read"),
        ("admin explode", "invalid choice"),
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
        *((f"{command} --prot 9000", "unrecognized arguments: --prot") for command in COMMANDS),
        ("--prot", "unrecognized arguments: --prot"),
    ],
)
def test_wrong_usage(
    argv: str,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sentence comes with the usage of the command, and nothing is done."""
    monkeypatch.delenv("GATEWAY_ADMIN_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(shlex.split(argv))
    err = capsys.readouterr().err
    command = "" if argv in ("fly", "--prot") else f"{argv.split()[0]} "
    assert err.startswith(f"usage: gateway {command}[-h]")
    assert complaint in err
    assert list(tmp_path.iterdir()) == []


def test_what_comes_after_two_dashes_is_the_drivers_own() -> None:
    args = parser().parse_args(
        ["conformance", "--only", "say", "--only", "restart", "--", "node", "d.mjs", "--only", "x"]
    )
    assert args.driver == ["node", "d.mjs", "--only", "x"]
    assert args.only == ["say", "restart"]
    assert args.wait == 15


def test_defaults_of_key_and_token() -> None:
    key = parser().parse_args(["key", "new"])
    assert (key.keys, key.tenant, key.id) == (KEYS_FILE, None, None) == (Path("keys.json"), None, None)
    token = parser().parse_args(["token"])
    assert (token.keys, token.tenant, token.once, token.invite) == (KEYS_FILE, "default", False, False)
    assert token.audience == AuthSettings().audience
    left = ("meeting", "sub", "name", "role", "langs", "speaks", "max_s", "expires", "url")
    assert {getattr(token, name) for name in left} == {None}


@pytest.mark.parametrize("flag", ["--tenant", "--meeting"])
@pytest.mark.parametrize("name", ["a" * 64, "A.b_~-9", "...x"])
def test_names_that_may_be(flag: str, name: str) -> None:
    assert getattr(parser().parse_args(["token", flag, name]), flag.strip("-")) == name

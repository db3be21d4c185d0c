"""What the command line takes, and how it says what it does not take."""

from __future__ import annotations

import pytest

from gateway.cli.flags.parser import parser
from gateway.cli.main import main
from tests.cli.commands import COMMANDS


@pytest.mark.parametrize("command", ["serve", "translate", "chat"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"examples:\n  gateway {command}" in capsys.readouterr().out


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
def test_wrong_usage_of_a_meeting(argv: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["end"], "give end MEETING"),
        (["disconnect", "standup"], "give disconnect MEETING PARTICIPANT"),
        (["workers", "1"], "workers takes no NAME"),
        (["meetings"], "give an operator's key: set GATEWAY_ADMIN_KEY or --key-file"),
        (["meetings", "--key-file", "/nowhere"], "The token file cannot be read"),
        (["explode"], "invalid choice"),
    ],
)
def test_wrong_usage_of_admin(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GATEWAY_ADMIN_KEY", raising=False)
    with pytest.raises(SystemExit, match="2"):
        main(["admin", *argv])
    assert sentence in capsys.readouterr().err


def test_what_comes_after_two_dashes_is_the_drivers_own() -> None:
    args = parser().parse_args(
        ["conformance", "--only", "say", "--only", "restart", "--", "node", "d.mjs", "--only", "x"]
    )
    assert args.driver == ["node", "d.mjs", "--only", "x"]
    assert args.only == ["say", "restart"]
    assert args.wait == 15

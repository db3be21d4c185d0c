"""`docs/cli.md` lists every flag and every exit status."""

from __future__ import annotations

import re

import pytest

from gateway.cli import main as cli
from gateway.cli import sessions
from gateway.cli.main import main
from tests.cli.commands import ROOT

WITH_EXAMPLES = ("serve", "translate", "chat", "speak", "bridge", "read", "admin", "key", "token", "conformance")


@pytest.mark.parametrize("command", [*WITH_EXAMPLES, "engines", "version"])
def test_every_flag_is_documented(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    assert (f"examples:\n  gateway {command}" in shown) is (command in WITH_EXAMPLES)
    offered = re.findall(r"^ +(--[a-z-]+)(?:, (--[a-z-]+))?", shown, re.MULTILINE)
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
        sessions.EXIT_UNREACHABLE,
        sessions.EXIT_FAILED,
        cli._INTERRUPTED,
        cli._BROKEN_PIPE,
    }
    assert {int(found) for found in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == statuses

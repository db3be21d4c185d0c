"""`docs/cli.md` lists every flag and every exit status."""

from __future__ import annotations

import re

import pytest

from gateway.cli import main as cli
from gateway.cli import notes
from gateway.cli.main import main
from tests.cli.commands import COMMANDS, ROOT


@pytest.mark.parametrize("command", [*COMMANDS, "admin", "key", "token", "conformance"])
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
        notes.EXIT_UNREACHABLE,
        notes.EXIT_FAILED,
        cli._INTERRUPTED,
        cli._BROKEN_PIPE,
    }
    assert {int(found) for found in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == statuses


@pytest.mark.parametrize("name", ["speak", "bridge", "read"])
def test_every_flag_of_a_meeting_is_documented(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    shown = capsys.readouterr().out
    assert f"examples:\n  gateway {name}" in shown
    offered = set(re.findall(r"^ +(--[a-z-]+)", shown, re.MULTILINE))
    text = (ROOT / "docs" / "cli.md").read_text()
    section = text.partition(f"\n## `gateway {name}`")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(--[a-z-]+)", section)) == offered

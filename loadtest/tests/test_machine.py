"""What a report says of the machine and of its own command, and what is said at the end."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

import loadtest.__main__ as entry
from loadtest.machine import command_line
from loadtest.report.commands import Command, Say, add_out
from loadtest.report.content import Shown


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--out", "HERE/docs/out"], "--out docs/out"),
        (["--model", "/somewhere/else/model"], "--model model"),
        (["--model=/somewhere/else/model"], "--model=model"),
        (["--set", "engine.model=/somewhere/else/model"], "--set engine.model=model"),
        (["--set", "engine.extra.seed=1"], "--set engine.extra.seed=1"),
        (["/somewhere/a=b/c"], "c"),
        (
            ["--set", "engine.script={'a b': 1}", "--name", "a; b"],
            """--set 'engine.script={'"'"'a b'"'"': 1}' --name 'a; b'""",
        ),
    ],
)
def test_a_command_line_tells_nothing_about_the_machine(given: list[str], told: str) -> None:
    here = str(Path.cwd())
    assert command_line("loadtest", [each.replace("HERE", here) for each in given]) == f"python -m loadtest {told}"


async def _measure(_options: argparse.Namespace, command: str, _say: Say) -> str:
    return command


def _write(command: str, folder: Path) -> str:
    folder.mkdir()
    for name in ("table.md", "result.json.gz", "plot.png"):
        (folder / name).write_text(command)
    return "a table\n"


def _again(_folder: Path) -> Shown:
    raise NotImplementedError


def test_the_files_that_are_there_are_named_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up = Command("nothing", "", "", add_out, _measure, _write, lambda _: True, _again)
    monkeypatch.setattr(entry, "_COMMANDS", (made_up,))
    out = tmp_path / "results"
    assert entry.main(["nothing", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said == f"a table\n\nWritten to {out}, which holds plot.png, result.json.gz, table.md\n"

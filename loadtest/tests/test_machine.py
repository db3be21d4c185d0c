"""What a report says of the machine and of its own command, and what is said at the end."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

import loadtest.__main__ as entry
from loadtest.commands import Command, Say, add_out
from loadtest.machine import command_line
from loadtest.trial.values import Results


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


async def _measure(_options: argparse.Namespace, _say: Say) -> Results:
    return Results(model="m", findings=[], parts=["What was found."])


def test_the_files_that_are_there_are_named_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "_TESTS", (Command("nothing", "", "", add_out, _measure),))
    out = tmp_path / "results"
    assert entry.main(["nothing", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("What was found.\n\n`python -m loadtest nothing --out results`, ")
    assert said.endswith(f"\n\nWritten to {out}, which holds result.json.gz, table.md\n")

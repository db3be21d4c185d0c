"""docs/write-a-client.md: its tables are those of the kit, and its example runs."""

from __future__ import annotations

import re

from gateway.conformance.driver import SHOWN
from gateway.conformance.transcripts import Step, transcripts
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "write-a-client.md").read_text()


def rows(head: str) -> list[list[str]]:
    """The rows of the table whose head begins like this."""
    table = PAGE.split(f"\n| {head} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def test_every_transcript_is_listed() -> None:
    assert rows("transcript") == [[f"`{each.name}`", each.about] for each in transcripts()]


def test_every_command_and_every_line_is_explained() -> None:
    done = {step.do["do"] for each in transcripts() for step in each.steps if step.do is not None}
    assert {re.findall(r'"do": "(\w+)"', command)[0] for command, _ in rows("command")} == done
    shown = {kind for line, _ in rows("line") for kind in re.findall(r'"type": "([\w.]+)"', line)}
    assert shown == SHOWN


def test_every_field_of_a_step_is_explained() -> None:
    assert [name.strip("`") for name, _ in rows("field")] == list(Step.__struct_fields__)

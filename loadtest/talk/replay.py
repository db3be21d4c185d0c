"""Recorded talk, read from a file of JSON lines.

Knows: how a line is written, which is easily made from a meeting's log. Must not know: what is done with the
lines.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from loadtest.results import LoadtestError
from loadtest.trial.values import Line, Partial


class _Revision(Struct, frozen=True, forbid_unknown_fields=True):
    """What the recogniser said before."""

    at_s: float
    text: str


class _Said(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file."""

    # When the last word was out, from any beginning that the whole file shares.
    at_s: float
    text: str
    source: str
    targets: tuple[str, ...]
    meeting: str = ""
    speaker: str = ""
    partials: tuple[_Revision, ...] = ()

    @property
    def times_s(self) -> tuple[float, ...]:
        return (self.at_s, *(each.at_s for each in self.partials))


def read(path: Path) -> list[Line]:
    """The lines in order of time, whatever their order in the file; empty ones are skipped. Times count from the
    earliest in the file, so that it may have any beginning: a recording's, or that of 1970.

    Raises `LoadtestError`, which names the line of the file.
    """
    try:
        content = path.read_bytes().splitlines()
    except OSError as error:
        raise LoadtestError(f"{path} cannot be read: {error.strerror}.") from None
    said = {number: _said(path, number, one) for number, one in enumerate(content, start=1) if one.strip()}
    if not said:
        raise LoadtestError(f"{path} has no lines.")
    earliest_s = min(at_s for each in said.values() for at_s in each.times_s)

    def since(at_s: float) -> float:
        # To the microsecond: what is below is noise of the subtraction.
        return round(at_s - earliest_s, 6)

    lines = [
        Line(
            id=str(number),
            text=each.text,
            source=each.source,
            targets=each.targets,
            due_s=since(each.at_s),
            meeting=each.meeting,
            speaker=each.speaker,
            partials=tuple(Partial(since(revision.at_s), revision.text) for revision in each.partials),
        )
        for number, each in said.items()
    ]
    return sorted(lines, key=lambda line: line.due_s)


def _said(path: Path, number: int, one: bytes) -> _Said:
    try:
        said = msgspec.json.decode(one, type=_Said)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LoadtestError(f"{path}, line {number}: {error}.") from None
    if wrong := _wrong(said):
        raise LoadtestError(f"{path}, line {number}: {wrong}.")
    return said


def _wrong(said: _Said) -> str | None:
    """What is wrong with its values; None: nothing."""
    if not said.text.strip():
        return "nothing is said"
    if not said.targets or said.source in said.targets:
        return "it needs targets, and none of them can be what is spoken"
    if len(set(said.targets)) < len(said.targets):
        return "a target is named twice"
    if max(said.times_s) > said.at_s:
        return "a partial is due after its final"
    return None

"""Recorded talk: a file of JSON lines, written and read.

Knows: two ways to write a line. One is `values.Line`. The other is what is easily made from a meeting's log:
`{"at_s", "meeting", "speaker", "text", "source", "targets"}`. Must not know: what is done with the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from loadtest.results import LoadtestError
from loadtest.trial.values import Line

__all__ = ["read", "write"]


class _Logged(Struct, frozen=True, forbid_unknown_fields=True):
    """The simple form. at_s: when the last word was out, from any beginning that the whole file shares."""

    at_s: float
    meeting: str
    speaker: str
    text: str
    source: str
    targets: tuple[str, ...]


def write(path: Path, lines: Iterable[Line]) -> None:
    """One line a line."""
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def read(path: Path) -> list[Line]:
    """The lines in order of time, whatever their order in the file; empty ones are skipped. Times count from the
    earliest in the file, so that it may have any beginning: a recording's, or that of 1970.

    Raises `LoadtestError`, which names the line of the file.
    """
    try:
        content = path.read_bytes().splitlines()
    except OSError as error:
        raise LoadtestError(f"{path} cannot be read: {error.strerror}.") from None
    lines: list[Line] = []
    ids: dict[str, int] = {}
    for number, one in enumerate(content, start=1):
        if not one.strip():
            continue
        line = _line(path, number, one)
        if line.id in ids:
            raise LoadtestError(f"{path}, line {number}: {line.id!r} is the id of line {ids[line.id]} already.")
        ids[line.id] = number
        lines.append(line)
    if not lines:
        raise LoadtestError(f"{path} has no lines.")
    return sorted(_from_the_beginning(lines), key=lambda line: line.due_s)


def _from_the_beginning(lines: Sequence[Line]) -> Iterator[Line]:
    earliest_s = min(due_s for line in lines for due_s in _times_s(line))
    for line in lines:
        partials = tuple(replace(each, due_s=_since(earliest_s, each.due_s)) for each in line.partials)
        yield replace(line, due_s=_since(earliest_s, line.due_s), partials=partials)


def _since(earliest_s: float, due_s: float) -> float:
    # To the microsecond: what is below is noise of the subtraction.
    return round(due_s - earliest_s, 6)


def _times_s(line: Line) -> tuple[float, ...]:
    return (line.due_s, *(each.due_s for each in line.partials))


def _line(path: Path, number: int, one: bytes) -> Line:
    try:
        # Only the simple form has a time of this name.
        line = _logged(number, one) if b'"at_s"' in one else msgspec.json.decode(one, type=Line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LoadtestError(f"{path}, line {number}: {error}.") from None
    if wrong := _wrong(line):
        raise LoadtestError(f"{path}, line {number}: {wrong}.")
    return line


def _logged(number: int, one: bytes) -> Line:
    logged = msgspec.json.decode(one, type=_Logged)
    return Line(
        id=str(number),
        text=logged.text,
        source=logged.source,
        targets=logged.targets,
        due_s=logged.at_s,
        meeting=logged.meeting,
        speaker=logged.speaker,
    )


def _wrong(line: Line) -> str | None:
    """What is wrong with its values; None: nothing."""
    if not line.text.strip():
        return "nothing is said"
    if not line.targets or line.source in line.targets:
        return "it needs targets, and none of them can be what is spoken"
    if len(set(line.targets)) < len(line.targets):
        return "a target is named twice"
    if max(_times_s(line)) > line.due_s:
        return "a partial is due after its final"
    return None

"""The streams written by hand, as `handwritten.toml` has them.

Knows: the file and what makes a stream valid. Must not know: what is done with streams.
"""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

from loadtest.talk.streams import Origin, Revision, Stream, Style

__all__ = ["handwritten_streams"]

_FILE = Path(__file__).with_suffix(".toml")


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    lang: str
    style: Style
    revisions: list[tuple[int, str]]
    final: tuple[int, str]


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    stream: list[_Entry]


def handwritten_streams(lang: str, file: Path = _FILE) -> list[Stream]:
    """Those in one language, in the file's order. Raises `ValueError` for a file that is not as it describes."""
    entries = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _File).stream
    if len({entry.id for entry in entries}) < len(entries):
        raise ValueError("two streams have one id")
    for entry in entries:
        times = [at_ms for at_ms, _ in (*entry.revisions, entry.final)]
        if not entry.revisions or any(later <= sooner for sooner, later in pairwise([0, *times])):
            raise ValueError(f"{entry.id}: revisions are missing or out of order")
    return [
        Stream(
            id=f"{entry.lang}-{entry.id}",
            lang=entry.lang,
            style=entry.style,
            origin=Origin.HANDWRITTEN,
            revisions=tuple(Revision(at_ms, text) for at_ms, text in entry.revisions),
            final=Revision(*entry.final),
        )
        for entry in entries
        if entry.lang == lang
    ]

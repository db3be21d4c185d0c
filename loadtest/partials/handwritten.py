"""The streams written by hand, as `handwritten.toml` has them.

Knows: the file. Must not know: what is done with streams.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct

from loadtest.talk.streams import Origin, Revision, Stream, Style


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    lang: str
    style: Style
    revisions: list[tuple[int, str]]
    final: tuple[int, str]


def handwritten_streams(lang: str) -> list[Stream]:
    """Those in one language, in the file's order."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return [
        Stream(
            id=f"{entry.lang}-{entry.id}",
            lang=entry.lang,
            style=entry.style,
            origin=Origin.HANDWRITTEN,
            revisions=tuple(Revision(*revision) for revision in entry.revisions),
            final=Revision(*entry.final),
        )
        for entry in msgspec.convert(tomllib.loads(text)["stream"], list[_Entry])
        if entry.lang == lang
    ]

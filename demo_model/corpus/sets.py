"""Reads the frozen corpus: a file for each kind of sets.

A line is a set: one sentence in each of `LANGUAGES`, and for some sets six more: the same as people say it ("half
past three"), which is only ever a source. `⟦3:two days ago⟧` marks a slot: the words that say the same thing in
each language. `!` after its number: words that are copied (a name, a code); `?`: words that agree with the noun of
the slot but do not say it.
"""

from __future__ import annotations

import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import overload

from demo_model import LANGUAGES

FOLDER = Path(__file__).parent
HELD_OUT = 50
"""One in this many of the written sets is never trained with."""
_MARK = re.compile(r"⟦(\d+)(!?)(\??):([^⟧]*)⟧")


class SetKind(StrEnum):
    """Where a set comes from."""

    # Written one by one.
    WRITTEN = "written"
    # Composed by the clause grammar, and filled into patterns (see README.md).
    COMPOSED = "composed"
    PATTERN = "pattern"
    # A single noun, number, date or name.
    WORD = "word"


@dataclass(frozen=True)
class Span:
    """The position of a slot's words in a sentence: `text[start:end]`."""

    start: int
    end: int
    slot: str
    copied: bool
    # Agreeing words only show the noun's gender.
    says_value: bool


@dataclass(frozen=True)
class Sentence:
    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class ParallelSet:
    """One sentence in six languages: as it is written, and as it is said."""

    kind: SetKind
    written: dict[str, Sentence]
    said: dict[str, Sentence]

    @property
    def held_out(self) -> bool:
        text = self.written["en"].text
        return self.kind is SetKind.WRITTEN and zlib.crc32(text.encode()) % HELD_OUT == 0


def read_sentence(marked: str) -> Sentence:
    if "⟦" not in marked:
        return Sentence(marked)
    text, spans, at = "", [], 0
    for mark in _MARK.finditer(marked):
        text += marked[at : mark.start()]
        slot, copied, agrees, words = mark.groups()
        spans.append(Span(len(text), len(text) + len(words), slot, bool(copied), not agrees))
        text += words
        at = mark.end()
    return Sentence(text + marked[at:], tuple(spans))


def read_line(line: str, kind: SetKind) -> ParallelSet:
    """Raises ValueError if it has neither six nor twelve sentences, or an empty one."""
    texts = line.rstrip("\n").split("\t")
    if len(texts) not in (len(LANGUAGES), 2 * len(LANGUAGES)) or not all(texts):
        raise ValueError(f"not a set: {line!r}")
    sentences = [read_sentence(text) for text in texts]
    written = dict(zip(LANGUAGES, sentences, strict=False))
    return ParallelSet(kind, written, dict(zip(LANGUAGES, sentences[-len(LANGUAGES) :], strict=True)))


class Sets(Sequence[ParallelSet]):
    """Sets of one kind, each read when it is asked for: few of the composed ones ever are."""

    def __init__(self, lines: Sequence[str], kind: SetKind) -> None:
        self.lines = lines
        self._kind = kind

    def __len__(self) -> int:
        return len(self.lines)

    @overload
    def __getitem__(self, index: int) -> ParallelSet: ...
    @overload
    def __getitem__(self, index: slice) -> Sets: ...
    def __getitem__(self, index: int | slice) -> ParallelSet | Sets:
        if isinstance(index, slice):
            return Sets(self.lines[index], self._kind)
        return read_line(self.lines[index], self._kind)


@cache
def load_sets(kind: SetKind) -> Sets:
    """All sets of a kind, in the order of the file."""
    return Sets(tuple(_lines(kind)), kind)


def _lines(name: str) -> Iterator[str]:
    with lzma.open(FOLDER / f"{name}.tsv.xz", "rt", encoding="utf-8", newline="\n") as lines:
        yield from lines


def trained_sets() -> dict[SetKind, Sequence[ParallelSet]]:
    """All sets that a model may learn from, by kind."""
    trained: dict[SetKind, Sequence[ParallelSet]] = {kind: load_sets(kind) for kind in SetKind}
    return trained | {SetKind.WRITTEN: [each for each in load_sets(SetKind.WRITTEN) if not each.held_out]}


def held_out_sets() -> list[ParallelSet]:
    """The written sets that training never sees."""
    return [each for each in load_sets(SetKind.WRITTEN) if each.held_out]


def unseen_sets() -> list[ParallelSet]:
    """Patterns and compositions with values that were never generated together for training, and names that never
    occur there."""
    return [read_line(line, SetKind.PATTERN) for line in _lines("unseen")]

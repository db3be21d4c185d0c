"""Sentences that people wrote to score a model with: the test set and the development set of `own_sentences/`.

Nothing that writes or samples the corpus may import it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from demo_model import LANGUAGES

SETS = ("test", "development")
KINDS = ("meeting", "everyday")


@dataclass(frozen=True)
class OwnSentence:
    """One sentence and its translations."""

    kind: str
    # Language → text, with `en` as it was written and one reference in each other language.
    texts: dict[str, str]


@cache
def own_sentences(name: str) -> tuple[OwnSentence, ...]:
    """The sentences of one of `SETS`, in the order of the file."""
    path = Path(__file__).parent / "own_sentences" / f"{name}.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(OwnSentence(kind, texts) for kind in KINDS for texts in table[kind])


@dataclass(frozen=True)
class Item:
    """One input with its reference translation."""

    suite: str
    source_language: str
    target_language: str
    source: str
    target: str


def own_items(name: str) -> list[Item]:
    """Each sentence of a set out of English and into it; the suite is the kind."""
    return [
        Item(each.kind, source, target, each.texts[source], each.texts[target])
        for each in own_sentences(name)
        for other in LANGUAGES[1:]
        for source, target in (("en", other), (other, "en"))
    ]

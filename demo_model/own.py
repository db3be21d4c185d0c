"""Sentences that people wrote to score a model with: the test set and the development set of `own_sentences/`.

Knows neither the corpus nor a model. Nothing that writes or samples the corpus may import it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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

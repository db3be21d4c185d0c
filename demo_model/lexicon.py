"""The possible words of slots, read once from `lexicon.toml`. Knows words and genders, not how to inflect them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from demo_model import LANGUAGES

NOUN_KINDS = ("item", "event", "topic", "role", "quarter")
WORD_KINDS = ("dept", "place", "weekday", "month", "duration")
GENDERS = {"es": "mf", "de": "mfn", "fr": "mf"}


@dataclass(frozen=True)
class Word:
    """One word in one language."""

    text: str
    # Empty if the language has no genders.
    gender: str = ""
    # Whether French articles elide before it.
    elides: bool = True


@dataclass(frozen=True)
class Lexicon:
    entries: dict[str, dict[str, dict[str, Word]]]
    """kind → English key → language → word."""
    names: tuple[str, ...]
    surnames: tuple[str, ...]
    products: tuple[str, ...]
    product_suffixes: tuple[str, ...]
    ticket_prefixes: tuple[str, ...]
    french_silent_h: frozenset[str]

    def word(self, kind: str, key: str, language: str) -> Word:
        return self.entries[kind][key][language]


def _word(kind: str, language: str, cell: str) -> Word:
    gender = ""
    if kind in NOUN_KINDS and language in GENDERS:
        gender, cell = cell.split(" ", 1)
        if gender not in GENDERS[language]:
            raise ValueError(f"{kind}: {language} {cell!r} has no gender it can have: {gender!r}")
    aspirated = language == "fr" and cell.startswith("*")
    return Word(cell.removeprefix("*") if aspirated else cell, gender, elides=not aspirated)


@cache
def load_lexicon() -> Lexicon:
    table = tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))
    entries: dict[str, dict[str, dict[str, Word]]] = {}
    for kind in NOUN_KINDS + WORD_KINDS:
        entries[kind] = {}
        for english, cells in table[kind].items():
            words = {"en": Word(english)}
            for language, cell in zip(LANGUAGES[1:], cells, strict=True):
                words[language] = _word(kind, language, cell)
            entries[kind][english] = words
    copied = table["copied"]
    return Lexicon(
        entries=entries,
        names=tuple(copied["names"].split()),
        surnames=tuple(copied["surnames"].split()),
        products=tuple(copied["products"].split()),
        product_suffixes=tuple(copied["product_suffixes"]),
        ticket_prefixes=tuple(copied["ticket_prefixes"].split()),
        french_silent_h=frozenset(copied["french_silent_h"]),
    )

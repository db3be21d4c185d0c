"""Reads the words of composed sentences from `words/*.toml`, and the nouns of the patterns from `lexicon.toml`.

The format is described in README.md. Knows cells, not how to inflect them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from demo_model import LANGUAGES
from demo_model.lexicon import GENDERS, load_lexicon

WORDS = Path(__file__).parent / "words"
_KINDS = {"item": "document", "event": "event", "topic": "topic", "role": "person"}
_PRODUCTS = ("logo", "feature", "login page", "template", "website", "app", "database", "dashboard", "prototype")
PARTITIVE = frozenset({"drink", "staple", "ingredient"})
"""Mass nouns with "some" in French: du café."""
MASS = PARTITIVE | {"topic", "skill", "sport", "subject"}
"""Types of nouns without a plural."""


@dataclass(frozen=True)
class Noun:
    """A noun: its semantic type, and its cell in each language without the gender."""

    key: str
    type: str
    cells: dict[str, str]
    genders: dict[str, str]
    """es, fr: m or f. de: m, f, n, or w for a weak masculine noun."""
    measure: str
    """The Chinese measure word."""
    counter: str
    """The Japanese counter, where it is not that of the type."""
    plurals: dict[str, str]
    """The plural where no rule makes it."""

    @property
    def mass(self) -> bool:
        return self.type in MASS

    @property
    def partitive(self) -> bool:
        return self.type in PARTITIVE


@dataclass(frozen=True)
class Frame:
    """A verb with what it takes. types: role → the semantic types that can play it."""

    key: str
    types: dict[str, tuple[str, ...]]
    cells: dict[str, str]
    tags: frozenset[str]
    """stative: no progressive, no imperative; event: happens at a time."""


@dataclass(frozen=True)
class Words:
    nouns: dict[str, Noun]
    by_type: dict[str, tuple[str, ...]]
    frames: dict[str, Frame]
    adjectives: dict[str, dict[str, str]]
    adjective_types: dict[str, tuple[str, ...]]
    """Types, classes or single nouns that it modifies."""
    adverbials: dict[str, dict[str, str]]
    adverbial_kinds: dict[str, str]
    adverbial_types: dict[str, tuple[str, ...]]
    openers: dict[str, dict[str, dict[str, str]]]
    """What an opener stands before (yes, no, statement, question) → English → its words in each language."""
    irregular: dict[str, dict[str, str]]
    """language → infinitive → its forms in the order that the language's conjugation names."""


def _table(name: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for path in sorted(WORDS.glob(f"{name}*.toml")):
        for key, rows in tomllib.loads(path.read_text(encoding="utf-8")).items():
            known = merged.setdefault(key, {})
            twice = known.keys() & rows.keys()
            if twice:
                raise ValueError(f"{path.name} [{key}]: {sorted(twice)} are there twice")
            known.update(rows)
    return merged


def _rows(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """The rows of one file in their order: table, key, cells."""
    for kind, rows in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for english, cells in rows.items():
            yield kind, english, cells


def _roles(text: str) -> dict[str, tuple[str, ...]]:
    """ "S=human O=document,task" """
    parts = re.split(r" (?=[SOT]=)", text) if text else []
    return {part[0]: tuple(part[2:].split(",")) for part in parts}


def _noun(kind: str, english: str, cells: list[str]) -> Noun:
    """One row: [ja, es, de, fr, zh]. "m Bericht/-e": gender, word, plural. "报告/份", "本/冊": what counts it."""
    words, genders, plurals = {"en": english.split("/")[0]}, {}, {}
    if "/" in english:
        plurals["en"] = english.split("/")[1]
    measure = counter = ""
    for language, cell in zip(LANGUAGES[1:], cells, strict=True):
        text = cell
        if language in GENDERS:
            genders[language], text = text.split(" ", 1)
            if genders[language] not in GENDERS[language] + "w":
                raise ValueError(f"[{kind}] {english}: {language} {cell!r} has no gender")
        if language == "zh":
            text, _, measure = text.partition("/")
        elif language == "ja":
            text, _, counter = text.partition("/")
        else:
            text, _, plural = text.partition("/")
            if plural:
                plurals[language] = plural
        words[language] = text
    return Noun(
        f"{kind}:{words['en']}",
        kind,
        words,
        genders,
        measure or _MEASURES.get(words["en"]) or _MEASURES.get(kind, "个"),
        counter,
        plurals,
    )


_MEASURES = {
    "document": "份",
    "event": "次",
    "certificate": "份",
    "person": "位",
    "profession": "位",
    "family": "位",
    "clothes": "件",
    "vehicle": "辆",
    "drink": "杯",
    "animal": "只",
    **dict.fromkeys(("invoice", "spreadsheet", "poster", "diagram"), "张"),
    **dict.fromkeys(("video", "recording"), "段"),
    **dict.fromkeys(("survey", "policy"), "项"),
    **dict.fromkeys(("catalog", "handbook"), "本"),
    **{"article": "篇", "mockup": "个", "template": "个", "roadmap": "张"},
}
"""A type of nouns, or the English of a noun of the patterns, whose rows have none → its measure word."""


@cache
def load_words() -> Words:
    nouns: dict[str, Noun] = {}
    spoken: set[str] = set()
    for kind, rows in _table("nouns").items():
        for english, cells in rows.items():
            noun = _noun(kind, english, cells)
            nouns[noun.key] = noun
            spoken.add(noun.cells["en"])
    for old, kind in _KINDS.items():
        for english, each in load_lexicon().entries[old].items():
            if english not in spoken:
                cells = []
                for language in LANGUAGES[1:]:
                    word = each[language]
                    star = "" if word.elides else "*"
                    cells.append(f"{word.gender} {star}{word.text}" if word.gender else word.text)
                noun = _noun("product" if english in _PRODUCTS else kind, english, cells)
                nouns.setdefault(noun.key, noun)
    for english, each in load_lexicon().entries["place"].items():
        cells = {language: word.text for language, word in each.items()}
        nouns[f"city:{english}"] = Noun(
            f"city:{english}", "city", cells, {"es": "m", "de": "n", "fr": "m"}, "", "", {}
        )
    by_type: dict[str, list[str]] = {}
    for noun in nouns.values():
        by_type.setdefault(noun.type, []).append(noun.key)
    narrow = _table("narrow")
    frames: dict[str, Frame] = {}
    for tag, rows in _table("frames").items():
        for key, (roles, *cells) in rows.items():
            types = _roles(roles) | _roles(narrow["roles"].get(key, ""))
            tags = frozenset(tag.split("_"))
            frames[key] = Frame(key, types, dict(zip(LANGUAGES, cells, strict=True)), tags)
    adjectives: dict[str, dict[str, str]] = {}
    adjective_types: dict[str, tuple[str, ...]] = {}
    for path in sorted(WORDS.glob("adjectives*.toml")):
        for kind, english, cells in _rows(path):
            key, modified = english.split("/")[0], tuple(kind.split("_"))
            row = {"en": english, **dict(zip(LANGUAGES[1:], cells, strict=True))}
            if adjectives.get(key, row) != row:  # old is not said of people as of things
                key = f"{key} ({modified[0]})"
            adjectives[key] = row
            adjective_types[key] = adjective_types.get(key, ()) + modified
    adjective_types |= {key: tuple(types) for key, types in narrow["adjectives"].items()}
    adverbials: dict[str, dict[str, str]] = {}
    adverbial_kinds: dict[str, str] = {}
    adverbial_types: dict[str, tuple[str, ...]] = {}
    for kind, rows in _table("adverbials").items():
        for key, cells in rows.items():
            english, *types = key.split(" @")
            # "for a week (until now)" is the other "for a week"
            adverbials[english] = {
                "en": english.partition(" (")[0],
                **dict(zip(LANGUAGES[1:], cells, strict=True)),
            }
            adverbial_kinds[english] = kind
            adverbial_types[english] = tuple(types[0].split(",")) if types else ()
    return Words(
        nouns=nouns,
        by_type={kind: tuple(keys) for kind, keys in by_type.items()},
        frames=frames,
        adjectives=adjectives,
        adjective_types=adjective_types,
        adverbials=adverbials,
        adverbial_kinds=adverbial_kinds,
        adverbial_types=adverbial_types,
        openers={
            kind: {
                english: dict(zip(LANGUAGES, [english, *cells], strict=True)) for english, cells in rows.items()
            }
            for kind, rows in _table("openers").items()
        },
        irregular=_table("irregular"),
    )

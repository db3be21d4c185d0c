"""Sentence patterns: reading them, checking them, filling them.

    python -m demo_model.patterns check [--samples N] [FILE …]

The language of patterns is described in `corpus/PATTERNS.md`.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from demo_model import LANGUAGES
from demo_model.grammar import Slot, Template, Value, capitalised, inflect, join_literal

PATTERNS = Path(__file__).parent / "corpus" / "patterns"
HELD_OUT_SHARE = 0.05
HELD_OUT_LEAST = 20


@dataclass(frozen=True, eq=False)
class Pattern:
    """One sentence in six languages."""

    id: str
    templates: dict[str, Template]

    @cached_property
    def slots(self) -> dict[str, Slot]:
        """Slot name → slot, in the order of the English sentence. The forms have no meaning here."""
        return {slot.name: slot for slot in self.templates["en"].slots}


@dataclass(frozen=True)
class Span:
    """The position of a slot's words in a sentence: `text[start:end]`."""

    start: int
    end: int
    slot: Slot
    value: Value

    @property
    def says_value(self) -> bool:
        """Whether the span has the value itself. Agreeing words only show the noun's gender."""
        return not self.slot.form.startswith("?")


@dataclass(frozen=True)
class Sentence:
    text: str
    spans: tuple[Span, ...]


Say = Callable[[Slot, Value, str], str]
"""A function that says a slot in another way: (slot, value, its written form) → words."""


def fill(template: Template, values: Mapping[str, Value], language: str, say: Say | None = None) -> Sentence:
    """The sentence without its initial capital (see `written`)."""
    text = ""
    spans: list[Span] = []
    literal = ""
    for part in template.parts:
        if isinstance(part, str):
            literal = part
            continue
        value = values[part.name]
        rendered = inflect(part, value, language)
        text += join_literal(literal, part, value, rendered, language)
        literal = ""
        if say is not None:
            rendered = say(part, value, rendered)
        spans.append(Span(len(text), len(text) + len(rendered), part, value))
        text += rendered
    return Sentence(text + literal, tuple(spans))


def written(sentence: Sentence, language: str) -> Sentence:
    """The sentence as it is written, with a capital at its beginning."""
    return sentence if language in ("ja", "zh") else Sentence(capitalised(sentence.text), sentence.spans)


def read_patterns(paths: list[Path]) -> list[Pattern]:
    """The patterns of these files. Raises ValueError with every problem if the files are not valid."""
    from demo_model.pattern_check import check_files

    patterns, problems = check_files(paths)
    if problems:
        raise ValueError("\n".join(problems))
    return patterns


@cache
def load_patterns() -> tuple[Pattern, ...]:
    """Every pattern of the corpus, ordered by id."""
    return tuple(sorted(read_patterns(sorted(PATTERNS.glob("*.toml"))), key=lambda pattern: pattern.id))


def stable_hash(*parts: object) -> int:
    """A hash that is the same on every machine and in every process."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


@cache
def held_out_patterns() -> frozenset[str]:
    """Ids of the patterns that training never sees: those with the lowest hashes."""
    ids = sorted((pattern.id for pattern in load_patterns()), key=lambda id: stable_hash("held-out", id))
    return frozenset(ids[: max(HELD_OUT_LEAST, round(HELD_OUT_SHARE * len(ids)))])


def raw_tables(path: Path) -> dict[str, dict[str, object]]:
    """The tables of a file. Raises ValueError if the file is not TOML with tables only."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"not valid TOML: {error}") from error
    for key, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"{key!r} stands outside a table")
    return tables


def main(arguments: list[str] | None = None) -> int:
    from demo_model.pattern_check import check_files
    from demo_model.sampling import Sampler

    parser = argparse.ArgumentParser(prog="demo_model.patterns", description="Check sentence patterns.")
    parser.add_argument("command", choices=["check"])
    parser.add_argument("files", nargs="*", type=Path, help="TOML files (default: the whole corpus)")
    parser.add_argument("--samples", type=int, default=0, help="print N filled samples of each pattern")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_intermixed_args(arguments)
    named = {path.resolve() for path in options.files}
    corpus = {path.resolve() for path in PATTERNS.glob("*.toml")}
    # The other files are read too, because ids and sentences must be unique. Their problems are not shown.
    patterns, problems = check_files(sorted(named or corpus), others=sorted(corpus - named) if named else [])
    sampler = Sampler(options.seed)
    for pattern in patterns if options.samples else []:
        for _ in range(options.samples):
            values = sampler.values(pattern)
            print(f"[{pattern.id}]")
            for language in LANGUAGES:
                sentence = fill(pattern.templates[language], values, language)
                print(f"  {language}  {written(sentence, language).text}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(patterns)} valid patterns, {len(problems)} problems", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

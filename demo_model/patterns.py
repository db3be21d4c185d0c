"""Sentence patterns: reading them, checking them, filling them.

    python -m demo_model.patterns check [--samples N] [FILE …]

The language of patterns is described in `corpus/PATTERNS.md`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from demo_model import LANGUAGES, SMALL_MODEL
from demo_model.grammar import Slot, Template, Value, capitalised, inflect, join_literal

PATTERNS = Path(__file__).parent / "corpus" / "patterns"
# By hash, so that patterns that are added change nothing for the others.
HELD_OUT_SHARE = 0.0465


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


def pattern_files() -> list[str]:
    """The names of the corpus's files, in order."""
    return sorted(path.name for path in PATTERNS.glob("*.toml"))


def files_of_model(folder: Path) -> tuple[str, ...] | None:
    """The files of patterns that a model was trained with. None if the model does not say."""
    report = folder / "training.json"
    settings = json.loads(report.read_text(encoding="utf-8"))["settings"] if report.exists() else {}
    return tuple(settings["pattern_files"]) if "pattern_files" in settings else None


@cache
def _corpus() -> tuple[Pattern, ...]:
    paths = [PATTERNS / name for name in pattern_files()]
    return tuple(sorted(read_patterns(paths), key=lambda pattern: pattern.id))


def load_patterns(files: tuple[str, ...] | None = None) -> tuple[Pattern, ...]:
    """The patterns of these files of the corpus, ordered by id. files: names; None: every file."""
    if files is None:
        return _corpus()
    ids = {id for name in files for id in raw_tables(PATTERNS / name)}
    return tuple(pattern for pattern in _corpus() if pattern.id in ids)


def stable_hash(*parts: object) -> int:
    """A hash that is the same on every machine and in every process."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def in_part(part: float, *what: object) -> bool:
    """Whether this belongs to a share of all that is like it. A smaller share is a part of a larger one."""
    return part >= 1 or stable_hash("part", *what) < part * 2**64


@cache
def held_out_patterns() -> frozenset[str]:
    """Ids of the patterns that training never sees: those with the lowest hashes."""
    below = int(HELD_OUT_SHARE * 2**64)
    return frozenset(pattern.id for pattern in load_patterns() if stable_hash("held-out", pattern.id) < below)


def trained_patterns(files: tuple[str, ...] | None = None) -> list[Pattern]:
    """The patterns of these files that are not held out, ordered by id."""
    return [pattern for pattern in load_patterns(files) if pattern.id not in held_out_patterns()]


@cache
def bundled_patterns() -> tuple[Pattern, ...]:
    """The patterns that the bundled model was trained with, ordered by id."""
    return tuple(trained_patterns(files_of_model(SMALL_MODEL)))


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

"""Looks at composed sentences.

python -m demo_model.clauses --count 20 [--seed N] [--lang de]
python -m demo_model.clauses checks [--count N]
python -m demo_model.clauses words
"""

from __future__ import annotations

import argparse
import sys

from demo_model import LANGUAGES
from demo_model.clauses.checks import problems
from demo_model.clauses.compose import Composer
from demo_model.clauses.lexicon import load_words
from demo_model.clauses.linearize import sentences
from demo_model.patterns import written
from demo_model.sampling import Sampler, Split


def counted() -> str:
    """How many words and verb frames there are."""
    words = load_words()
    nouns, adjectives, adverbials = len(words.nouns), len(words.adjectives), len(words.adverbials)
    return (
        f"{nouns + adjectives + adverbials} words ({nouns} nouns, {adjectives} adjectives, "
        f"{adverbials} adverbials) and {len(words.frames)} verb frames"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="demo_model.clauses", description="Print composed sentences.")
    parser.add_argument("command", nargs="?", choices=["show", "checks", "words"], default="show")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lang", choices=LANGUAGES, action="append", help="only these languages")
    options = parser.parse_intermixed_args(arguments)
    if options.command == "checks":
        found = problems(options.seed, max(options.count, 2000))
        print("\n".join(found), file=sys.stderr)
        print(f"{len(found)} problems", file=sys.stderr)
        return 1 if found else 0
    if options.command == "words":
        print(counted())
        return 0
    composer = Composer(Sampler(options.seed, Split.ANY))
    for _ in range(options.count):
        said = sentences(composer.draw())
        for language in options.lang or LANGUAGES:
            print(f"{language}  {written(said[language], language).text}")
        if len(options.lang or LANGUAGES) > 1:
            print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

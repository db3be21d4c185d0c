"""An endless stream of translation pairs from the sets of the corpus: as written, as recognisers write, in other
spellings, cut short, several in one text.

    python -m demo_model.corpus.pairs --seed 1 --count 20

Deterministic for a seed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from demo_model import DIRECTIONS, LANGUAGES
from demo_model.corpus.amounts import with_other_amounts
from demo_model.corpus.echoes import echo
from demo_model.corpus.prefixes import choose_cut, cut_source, cut_target, spoken_end
from demo_model.corpus.recogniser import hesitant, recognised
from demo_model.corpus.sets import ParallelSet, Sentence, SetKind, trained_sets
from demo_model.corpus.spellings import respelled


class Kind(StrEnum):
    FULL = "full"
    RECOGNISED = "recognised"
    RESPELLED = "respelled"
    PREFIX = "prefix"
    JOINED = "joined"
    ECHO = "echo"


MIX = {
    Kind.FULL: 0.40,
    Kind.RECOGNISED: 0.18,
    Kind.RESPELLED: 0.08,
    Kind.PREFIX: 0.20,
    Kind.JOINED: 0.10,
    Kind.ECHO: 0.04,
}
"""How a set becomes pairs, and how often."""
SHARES = {SetKind.WRITTEN: 0.6, SetKind.COMPOSED: 0.24, SetKind.PATTERN: 0.14, SetKind.WORD: 0.02}
"""Which sets are drawn, and how often: the written ones come again and again."""

Direction = tuple[str, str]


@dataclass(frozen=True)
class Pair:
    source_language: str
    target_language: str
    final: bool
    source: str
    target: str
    kind: Kind


def joined(sentences: Sequence[Sentence], language: str) -> Sentence:
    """Sentences one after the other, with slots that stay distinct."""
    gap = "" if language in ("ja", "zh") else " "
    text, spans = "", []
    for index, sentence in enumerate(sentences):
        text += gap if text else ""
        spans += [
            replace(span, start=span.start + len(text), end=span.end + len(text), slot=f"{span.slot}#{index}")
            for span in sentence.spans
        ]
        text += sentence.text
    return Sentence(text, tuple(spans))


class PairSource:
    """Draws pairs. sets: by kind; a kind without sets is left out. shares, mix: see `SHARES` and `MIX`."""

    def __init__(
        self,
        seed: int | str,
        sets: Mapping[SetKind, Sequence[ParallelSet]] | None = None,
        shares: Mapping[SetKind, float] = SHARES,
        mix: Mapping[Kind, float] = MIX,
    ) -> None:
        sets = trained_sets() if sets is None else sets
        self.random = random.Random(f"pairs/{seed}")
        self._sets = {kind: sets[kind] for kind in shares if sets.get(kind)}
        self._shares = [shares[kind] for kind in self._sets]
        self._kinds, self._weights = list(mix), list(mix.values())

    def draw(self, directions: Sequence[Direction] = DIRECTIONS) -> list[Pair]:
        """One set as a pair for each of `directions`."""
        kind = self.random.choices(self._kinds, self._weights)[0]
        if kind is Kind.ECHO:
            return [self._echo(*direction) for direction in directions]
        if kind is Kind.JOINED:
            sets = [self._set() for _ in range(self.random.choice((2, 2, 2, 3, 3, 4)))]
            says = {language: joined([each.said[language] for each in sets], language) for language in LANGUAGES}
            writes = {
                language: joined([each.written[language] for each in sets], language) for language in LANGUAGES
            }
            style = self.random.choice((Kind.FULL, Kind.FULL, Kind.RECOGNISED, Kind.PREFIX))
            return [replace(pair, kind=kind) for pair in self._pairs(says, writes, directions, style)]
        drawn = self._set()
        source = drawn.said if kind in (Kind.RECOGNISED, Kind.PREFIX) else drawn.written
        return self._pairs(source, drawn.written, directions, kind)

    def _set(self) -> ParallelSet:
        kind = self.random.choices(list(self._sets), self._shares)[0]
        drawn = self.random.choice(self._sets[kind])
        return with_other_amounts(drawn, self.random) if kind is SetKind.WRITTEN else drawn

    def _pairs(
        self,
        says: Mapping[str, Sentence],
        writes: Mapping[str, Sentence],
        directions: Sequence[Direction],
        kind: Kind,
    ) -> list[Pair]:
        rng = self.random
        pairs: list[Pair] = []
        for source, target in directions:
            said, meant = says[source], writes[target]
            if kind is Kind.RECOGNISED or (kind is Kind.PREFIX and rng.random() < 0.6):
                if rng.random() < 0.1:
                    said = hesitant(said, source, rng)
                said = recognised(said, source, rng)
            if kind is Kind.PREFIX:
                pairs.append(self._prefix(said, meant, source, target))
                continue
            text = meant.text
            if kind is Kind.RESPELLED:
                said = Sentence(respelled(said.text, source, rng))
            # A source that looks complete gets a complete translation, even if more may follow.
            final = rng.random() < 0.8
            if not final and said.text[-1:] not in ".?!。？！…":
                text = spoken_end(meant)
            pairs.append(Pair(source, target, final, said.text, text, kind))
        return pairs

    def _prefix(self, said: Sentence, meant: Sentence, source: str, target: str) -> Pair:
        cut = choose_cut(said, source, self.random)
        final = self.random.random() < 0.15
        if cut is None:
            return Pair(source, target, final, said.text, meant.text if final else spoken_end(meant), Kind.PREFIX)
        return Pair(
            source, target, final, cut_source(said, cut), cut_target(said, cut, meant, target), Kind.PREFIX
        )

    def _echo(self, source: str, target: str) -> Pair:
        text = echo(self.random) if self.random.random() > 0.01 else ""
        return Pair(source, target, self.random.random() < 0.7, text, text, Kind.ECHO)


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo_model.corpus.pairs", description="Print pairs.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    source = PairSource(options.seed)
    for _ in range(options.count):
        (pair,) = source.draw([source.random.choice(DIRECTIONS)])
        stage = "final" if pair.final else "partial"
        print(f"{pair.kind.value:10} {stage:7} {pair.source_language}→{pair.target_language}  {pair.source!r}")
        print(f"{'':27}{pair.target!r}")


if __name__ == "__main__":
    main()

"""An endless stream of translation pairs from patterns and slots: written, as recognisers write, cut short,
joined.

    python -m demo_model.generate --seed 1 --count 20

Deterministic for a seed. One draw (`PairSource.draw`) makes pairs for several directions from one set of parallel
sentences.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

from demo_model import DIRECTIONS, LANGUAGES
from demo_model.clauses.compose import Composer
from demo_model.clauses.linearize import sentences as composed_sentences
from demo_model.echoes import echo
from demo_model.grammar import Slot, inflect
from demo_model.lexicon import NOUN_KINDS
from demo_model.patterns import (
    Pattern,
    Sentence,
    Span,
    fill,
    in_part,
    load_patterns,
    stable_hash,
    trained_patterns,
    written,
)
from demo_model.prefixes import choose_cut, cut_source, cut_target, spoken_end
from demo_model.recogniser import hesitant, recognised, spoken_slots
from demo_model.sampling import TEST_COMBINATIONS, Sampler, Split


class Kind(Enum):
    FULL = "full"
    RECOGNISED = "recognised"
    PREFIX = "prefix"
    JOINED = "joined"
    OPENED = "opened"
    WORD = "word"
    ECHO = "echo"


MIX = {
    Kind.FULL: 0.33,
    Kind.RECOGNISED: 0.22,
    Kind.PREFIX: 0.22,
    Kind.JOINED: 0.08,
    Kind.OPENED: 0.05,
    Kind.WORD: 0.04,
    Kind.ECHO: 0.06,
}

Direction = tuple[str, str]

_WORD_KINDS = (
    *("item", "item", "event", "event", "topic", "role", "place", "weekday", "month", "quarter", "name", "name"),
    *("product", "ticket", "version", "date", "time", "bign", "percent", "money", "duration", "n"),
)


@dataclass(frozen=True)
class Pair:
    source_language: str
    target_language: str
    final: bool
    source: str
    target: str
    kind: Kind


OPENERS: tuple[dict[str, str], ...] = (
    {
        "en": "Okay, ",
        "ja": "わかりました、",
        "es": "De acuerdo, ",
        "de": "Okay, ",
        "fr": "D'accord, ",
        "zh": "好的，",
    },
    {"en": "So, ", "ja": "では、", "es": "Entonces, ", "de": "Also, ", "fr": "Alors, ", "zh": "那么，"},
    {"en": "Well, ", "ja": "そうですね、", "es": "Bueno, ", "de": "Nun, ", "fr": "Eh bien, ", "zh": "嗯，"},
    {"en": "Yes, ", "ja": "はい、", "es": "Sí, ", "de": "Ja, ", "fr": "Oui, ", "zh": "是的，"},
    {"en": "No, ", "ja": "いいえ、", "es": "No, ", "de": "Nein, ", "fr": "Non, ", "zh": "不，"},
    {
        "en": "Sorry, ",
        "ja": "すみません、",
        "es": "Perdón, ",
        "de": "Entschuldigung, ",
        "fr": "Pardon, ",
        "zh": "抱歉，",
    },
    {"en": "Great, ", "ja": "いいですね、", "es": "Genial, ", "de": "Super, ", "fr": "Super, ", "zh": "太好了，"},
    {"en": "And ", "ja": "それから、", "es": "Y ", "de": "Und ", "fr": "Et ", "zh": "还有，"},
    {"en": "But ", "ja": "でも、", "es": "Pero ", "de": "Aber ", "fr": "Mais ", "zh": "不过，"},
    {
        "en": "{name}, ",
        "ja": "{name}さん、",
        "es": "{name}, ",
        "de": "{name}, ",
        "fr": "{name}, ",
        "zh": "{name}，",
    },
)
_CASED = ("en", "es", "de", "fr")
_ALWAYS_CAPITAL = re.compile(r"^(?:I\b|Sie\b|Ih(?:r|re|nen|ren|rem|rer)\b)")


@cache
def _words_in_mid_sentence(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words that occur inside sentences in lower case, and those that occur there with a capital."""
    small: set[str] = set()
    capital: set[str] = set()
    for pattern in load_patterns():
        parts = pattern.templates[language].parts
        text = "".join(part if isinstance(part, str) else "X" for part in parts)
        for match in re.finditer(r"(?<=[^\s.?!¿¡])[,:;]? ([^\W\d_]+)", text):
            word = match.group(1)
            (capital if word[0].isupper() else small).add(word.lower())
    return frozenset(small), frozenset(capital)


@cache
def _opened_initial(pattern: Pattern, language: str) -> str | None:
    """The literal that begins this sentence, as written after an opener. None if its case is unknown."""
    first = pattern.templates[language].parts[0]
    match = re.match(r"[¿¡]?([^\W\d_]+)", first) if isinstance(first, str) else None
    if match is None:
        return first if isinstance(first, str) else ""
    if _ALWAYS_CAPITAL.match(match.group(1)):
        return first if isinstance(first, str) else ""
    small, capital = _words_in_mid_sentence(language)
    word = match.group(1).lower()
    if (word in small) == (word in capital):
        return None
    assert isinstance(first, str)  # noqa: S101
    if word in capital:
        return first
    at = match.start(1)
    return first[:at] + first[at].lower() + first[at + 1 :]


@cache
def _can_open(pattern: Pattern) -> bool:
    return all(_opened_initial(pattern, language) is not None for language in _CASED)


def _shifted(sentence: Sentence, offset: int, suffix: str) -> tuple[Span, ...]:
    """Spans moved by `offset`, with slots renamed so that the slots of joined sentences stay distinct."""
    return tuple(
        replace(
            span,
            start=span.start + offset,
            end=span.end + offset,
            slot=Slot(span.slot.kind, span.slot.name + suffix, span.slot.form),
        )
        for span in sentence.spans
    )


def joined(sentences: Sequence[Sentence], language: str) -> Sentence:
    gap = "" if language in ("ja", "zh") else " "
    text = ""
    spans: list[Span] = []
    for index, sentence in enumerate(sentences):
        text += gap if text else ""
        spans += _shifted(sentence, len(text), f"#{index}")
        text += sentence.text
    return Sentence(text, tuple(spans))


def phrases(count: int) -> list[Pattern]:
    """The first sentences of the corpus that have no slots, by their ids."""
    fixed = (pattern for pattern in load_patterns() if not pattern.slots)
    return sorted(fixed, key=lambda pattern: pattern.id)[:count]


class PairSource:
    """Draws pairs. `split` chooses the slot values; patterns that are held out are drawn only if passed in.

    composed: the share of sentences that are composed from clauses instead of filled into patterns.
    part: the share of patterns, nouns, frames and adjectives that are used.
    """

    def __init__(
        self,
        seed: int | str,
        split: Split = Split.TRAINING,
        patterns: Sequence[Pattern] | None = None,
        composed: float = 0.0,
        part: float = 1.0,
    ) -> None:
        if patterns is None:
            patterns = [pattern for pattern in trained_patterns() if in_part(part, "pattern", pattern.id)]
        self.patterns = self._weighted(patterns)
        self.composed, self.part = composed, part
        self.use_sampler(Sampler(seed, split, part=part))
        self._kinds, self._weights = list(MIX), list(MIX.values())

    def use_sampler(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self.random = sampler.random
        self.composer = Composer(sampler, self.part)

    @staticmethod
    def _weighted(patterns: Sequence[Pattern]) -> list[Pattern]:
        """Patterns weighted for drawing: those with slots count more than fixed phrases."""
        return [pattern for pattern in patterns for _ in range(3 if pattern.slots else 1)]

    def _sentences(
        self, spoken: bool = False, opened: bool = False
    ) -> tuple[dict[str, Sentence], dict[str, Sentence]]:
        """One set of parallel sentences by language: as they are said (source), as they are written (target)."""
        if self.composed and self.random.random() < self.composed:
            return self._composed(opened)
        while True:
            pattern = self.random.choice(self.patterns)
            if opened and not _can_open(pattern):
                continue
            try:
                values = self.sampler.values(pattern)
                break
            except LookupError:
                continue
        says: dict[str, Sentence] = {}
        writes: dict[str, Sentence] = {}
        opener = self._opener() if opened else {}
        for language in LANGUAGES:
            template = pattern.templates[language]
            if opened and language in _CASED and isinstance(template.parts[0], str):
                template = replace(template, parts=(_opened_initial(pattern, language) or "", *template.parts[1:]))
            plain = fill(template, values, language)
            said = fill(template, values, language, spoken_slots(language, self.random)) if spoken else plain
            if opened:
                start = opener[language]
                plain = Sentence(start + plain.text, _shifted(plain, len(start), ""))
                said = Sentence(start + said.text, _shifted(said, len(start), ""))
                writes[language], says[language] = plain, said
            else:
                writes[language], says[language] = written(plain, language), written(said, language)
        return says, writes

    def _opener(self) -> dict[str, str]:
        opener = self.random.choice(OPENERS)
        name = self.sampler.name() if "{name}" in opener["en"] else ""
        return {language: text.replace("{name}", name) for language, text in opener.items()}

    def _composed(self, opened: bool) -> tuple[dict[str, Sentence], dict[str, Sentence]]:
        while True:
            said = composed_sentences(self.composer.draw())
            test = stable_hash("composed", said["en"].text) % TEST_COMBINATIONS == 0
            if self.sampler.split is Split.ANY or test == (self.sampler.split is Split.TEST):
                break
        opener = self._opener() if opened else dict.fromkeys(LANGUAGES, "")
        whole = {
            language: written(
                Sentence(opener[language] + each.text, _shifted(each, len(opener[language]), "")), language
            )
            for language, each in said.items()
        }
        return whole, dict(whole)

    def draw(self, directions: Sequence[Direction] = DIRECTIONS, kind: Kind | None = None) -> list[Pair]:
        """One set of parallel sentences as a pair for each of `directions`."""
        kind = kind or self.random.choices(self._kinds, self._weights)[0]
        match kind:
            case Kind.ECHO:
                return [self._echo(*direction) for direction in directions]
            case Kind.WORD:
                return self._words(directions)
            case Kind.JOINED:
                return self._joined(directions)
            case Kind.OPENED:
                says, writes = self._sentences(spoken=self.random.random() < 0.5, opened=True)
                style = Kind.RECOGNISED if self.random.random() < 0.5 else Kind.FULL
                return [replace(pair, kind=Kind.OPENED) for pair in self._pairs(says, writes, directions, style)]
            case _:
                spoken = kind is Kind.RECOGNISED or (kind is Kind.PREFIX and self.random.random() < 0.5)
                says, writes = self._sentences(spoken=spoken)
                return self._pairs(says, writes, directions, kind)

    def _pairs(
        self, says: dict[str, Sentence], writes: dict[str, Sentence], directions: Sequence[Direction], kind: Kind
    ) -> list[Pair]:
        rng = self.random
        pairs: list[Pair] = []
        for source, target in directions:
            said = says[source]
            if kind is Kind.RECOGNISED or (kind is Kind.PREFIX and rng.random() < 0.7):
                if rng.random() < 0.08:
                    said = hesitant(said, source, rng)
                said = recognised(said, source, rng)
            if kind is Kind.PREFIX:
                pairs.append(self._prefix(said, writes[target], source, target))
            else:
                # A source that looks complete gets a complete translation, even if more may follow.
                final = rng.random() < 0.8
                text = writes[target].text
                if not final and said.text[-1:] not in ".?!。？！":
                    text = spoken_end(writes[target])
                pairs.append(Pair(source, target, final, said.text, text, kind))
        return pairs

    def _prefix(self, said: Sentence, meant: Sentence, source: str, target: str) -> Pair:
        rng = self.random
        cut = choose_cut(said, source, rng)
        final = rng.random() < 0.15
        if cut is None:
            return Pair(source, target, final, said.text, meant.text if final else spoken_end(meant), Kind.PREFIX)
        return Pair(
            source, target, final, cut_source(said, cut), cut_target(said, cut, meant, target), Kind.PREFIX
        )

    def _joined(self, directions: Sequence[Direction]) -> list[Pair]:
        rng = self.random
        style = rng.choice((Kind.FULL, Kind.FULL, Kind.RECOGNISED, Kind.PREFIX))
        count = rng.choice((2, 2, 2, 3, 3, 4))
        sets = [self._sentences(spoken=style is Kind.RECOGNISED) for _ in range(count)]
        says = {language: joined([said[language] for said, _ in sets], language) for language in LANGUAGES}
        writes = {language: joined([wrote[language] for _, wrote in sets], language) for language in LANGUAGES}
        return [replace(pair, kind=Kind.JOINED) for pair in self._pairs(says, writes, directions, style)]

    def _words(self, directions: Sequence[Direction]) -> list[Pair]:
        """A single value: "budget", "Friday", "12,500", a name."""
        rng = self.random
        kind = rng.choice(_WORD_KINDS)
        value = self.sampler.value(kind)
        slot = Slot(kind, kind)
        ended = kind in (*NOUN_KINDS, "place", "weekday", "month", "name") and rng.random() < 0.3
        pairs: list[Pair] = []
        for source, target in directions:
            words = [inflect(slot, value, language) for language in (source, target)]
            sayable = kind in (*NOUN_KINDS, "weekday", "month", "place") and source in _CASED and not ended
            if sayable and rng.random() < 0.3:
                words[0] = words[0].lower() if rng.random() < 0.5 else words[0][0].upper() + words[0][1:]
            if ended:
                for index, language in enumerate((source, target)):
                    text = words[index]
                    text = text if language in ("ja", "zh") else text[0].upper() + text[1:]
                    words[index] = text + ("。" if language in ("ja", "zh") else ".")
            pairs.append(Pair(source, target, rng.random() < 0.7, words[0], words[1], Kind.WORD))
        return pairs

    def _echo(self, source: str, target: str) -> Pair:
        if self.random.random() < 0.01:
            return Pair(source, target, self.random.random() < 0.7, "", "", Kind.ECHO)
        text = echo(self.sampler)
        return Pair(source, target, self.random.random() < 0.7, text, text, Kind.ECHO)

    def __iter__(self) -> Iterator[Pair]:
        while True:
            yield self.draw([self.random.choice(DIRECTIONS)])[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo_model.generate", description="Print generated pairs.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--composed", type=float, default=0.0, help="share of sentences composed from clauses")
    options = parser.parse_args()
    source = iter(PairSource(options.seed, composed=options.composed))
    for _ in range(options.count):
        pair = next(source)
        stage = "final" if pair.final else "partial"
        print(f"{pair.kind.value:10} {stage:7} {pair.source_language}→{pair.target_language}  {pair.source!r}")
        print(f"{'':27}{pair.target!r}")


if __name__ == "__main__":
    main()

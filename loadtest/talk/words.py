"""Texts of a wanted length: sentences of the corpus, alone or several in a row.

Knows: the corpus of the bundled model. Must not know: who says them, when, or how long people's sentences are.
Lengths are counted in words of the English sentence, whatever the language, so that they mean the same in each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache

from demo_model.generate import Kind, Pair, PairSource
from demo_model.patterns import Pattern, bundled_patterns
from demo_model.sampling import Split

# Of a text that no single sentence fills, one sentence has so many words.
_SENTENCES = (6, 7, 8, 7, 9, 7)
# Longer sentences without slots are left out: an engine answers from its cache what was said before in the same
# words, and of what people say only short things come again.
_MOST_FIXED_WORDS = 4
# For the same reason, lengths that fewer patterns have.
_FEWEST_PATTERNS = 20


class Words:
    """Draws texts in one language. The same seed and the same calls give the same texts."""

    def __init__(self, seed: str, source: str) -> None:
        self._source = source
        self._other = "en" if source != "en" else "de"
        self._gap = "" if source in ("ja", "zh") else " "
        self._seed = seed
        self._sources: dict[int, PairSource] = {}

    def draw(self, words: int) -> str:
        """A text of about so many words, at least one, and never more than `words`."""
        parts: list[str] = []
        left = words
        while left:
            sentence, length = self._sentence(left, len(parts))
            parts.append(sentence)
            left -= length
        return self._gap.join(parts)

    def _sentence(self, most: int, number: int) -> tuple[str, int]:
        """One sentence of the corpus that is no longer than `most`, and nearly as long where there is one; and its
        length."""
        longest = max(_patterns())
        wanted = most if most <= longest else min(_SENTENCES[number % len(_SENTENCES)], most)
        for length in range(wanted, 0, -1):
            # What stands in a slot may have several words.
            if (drawn := self._of(length))[1] <= most:
                return drawn
        raise AssertionError("the corpus has sentences of a single word")

    def _of(self, length: int) -> tuple[str, int]:
        """A sentence whose pattern has so many words, and how many it has itself."""
        if length not in self._sources:
            patterns = _patterns().get(length) or _patterns()[max(n for n in _patterns() if n <= length)]
            self._sources[length] = PairSource(f"{self._seed}/{length}", Split.ANY, patterns)
        pair: Pair = self._sources[length].draw([(self._source, self._other)], Kind.FULL)[0]
        english = pair.source if self._source == "en" else pair.target
        return pair.source, len(english.split())


@cache
def _patterns() -> dict[int, Sequence[Pattern]]:
    """Words of the English sentence → the patterns that have so many."""
    found: defaultdict[int, list[Pattern]] = defaultdict(list)
    for pattern in bundled_patterns():
        parts = pattern.templates["en"].parts
        words = len("".join(part if isinstance(part, str) else "X" for part in parts).split())
        if pattern.slots or words <= _MOST_FIXED_WORDS:
            found[words].append(pattern)
    enough = (words for words in found if words <= _MOST_FIXED_WORDS or len(found[words]) >= _FEWEST_PATTERNS)
    return {words: found[words] for words in enough}

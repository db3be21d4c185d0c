"""Finds where parts of a sentence are in its translation, where they do not stand there word for word.

Knows: words, and how far two texts have the same ones. Must not know: tags, languages, engines.

A part that is translated by itself is mostly inflected otherwise than within its sentence, or said with another
word. It is where most of its words are; failing that, where it was in the sentence, in proportion.
"""

from __future__ import annotations

import re
from collections import Counter

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:['’\-‐‑][^\W{_UNSPACED}]+)*")
# Letters at the beginning of a word that make it the same: its end is inflected.
_STEM = 4
# A place has the words of a part where this share of both is the same.
_LEAST = 0.5
# Words that it may have more, or less.
_MORE = 3
# Words of a translation that are compared; in a longer one parts are placed in proportion.
_MOST = 400

Span = tuple[int, int]


class Places:
    """The words of a translation, of which each belongs to one part at most."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._words = [match.span() for match in _WORD.finditer(text)]
        self._stems = [_stem(text[start:end]) for start, end in self._words]
        self._taken = [False] * len(self._words)

    def take(self, span: Span) -> None:
        """These characters belong to a part."""
        for index, (start, end) in enumerate(self._words):
            self._taken[index] |= start < span[1] and end > span[0]

    def of_words(self, part: str, share: tuple[float, float]) -> Span | None:
        """Where most words of a part are, nearest to its share of the sentence. None: nowhere, or they are taken.

        share: where in its sentence the part begins and ends, from 0 to 1.
        """
        wanted = Counter(_stem(match[0]) for match in _WORD.finditer(part))
        count = wanted.total()
        if not count or len(self._words) > _MOST:
            return None
        middle = (share[0] + share[1]) / 2 * self._length
        best: tuple[float, float, int, int] | None = None
        for length in range(max(1, count - _MORE), min(count + _MORE, len(self._words)) + 1):
            for first, same in enumerate(self._same(wanted, length)):
                likeness = 2 * same / (count + length)
                if likeness < _LEAST or any(self._taken[first : first + length]):
                    continue
                begin, end = self._words[first][0], self._words[first + length - 1][1]
                found = (likeness, -abs((begin + end) / 2 - middle), begin, end)
                best = found if best is None else max(best, found)
        return None if best is None else best[2:]

    def about(self, share: tuple[float, float]) -> Span | None:
        """The words that are in proportion where a part was in its sentence. None: no word is free."""
        begin, end = share[0] * self._length, share[1] * self._length
        free = [index for index, taken in enumerate(self._taken) if not taken]
        if not free:
            return None
        middle = (begin + end) / 2
        first = last = min(free, key=lambda index: abs(sum(self._words[index]) / 2 - middle))
        while first > 0 and not self._taken[first - 1] and sum(self._words[first - 1]) / 2 > begin:
            first -= 1
        while last + 1 < len(self._words) and not self._taken[last + 1] and sum(self._words[last + 1]) / 2 < end:
            last += 1
        return self._words[first][0], self._words[last][1]

    def before_a_word(self, share: float) -> int:
        """Where something without words stands that stood there in its sentence; never within a part."""
        starts = [
            start
            for index, (start, _) in enumerate(self._words)
            if not self._taken[index] or not index or not self._taken[index - 1]
        ]
        return min([*starts, self._length], key=lambda start: abs(start - share * self._length))

    def _same(self, wanted: Counter[str], length: int) -> list[int]:
        """How many of the wanted words each run of so many words has."""
        run: Counter[str] = Counter()
        found, same = [], 0
        for index, stem in enumerate(self._stems):
            same += run[stem] < wanted[stem]
            run[stem] += 1
            if index >= length:
                gone = self._stems[index - length]
                run[gone] -= 1
                same -= run[gone] < wanted[gone]
            if index >= length - 1:
                found.append(same)
        return found


def _stem(word: str) -> str:
    return word if word.isdigit() else word.casefold()[:_STEM]

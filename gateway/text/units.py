"""Texts in units: words with the space before them, whole numbers; in languages without spaces, what BudouX finds.

Knows: where a word, a number and a grapheme end. Must not know: what the units are for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import accumulate
from types import MappingProxyType

import budoux
import regex

# Languages written without spaces between words. Where a word ends is found by BudouX, a small model made for
# breaking lines; where it has none, the units are graphemes.
UNSPACED = frozenset({"ja", "zh", "zh-hant", "th", "km", "my"})
_PARSERS: Mapping[str, Callable[[], budoux.Parser]] = MappingProxyType(
    {
        "ja": budoux.load_default_japanese_parser,
        "zh": budoux.load_default_simplified_chinese_parser,
        "zh-hant": budoux.load_default_traditional_chinese_parser,
        "th": budoux.load_default_thai_parser,
    }
)

# Whole graphemes, so that what joins letters (in Persian, Hindi, Bengali) stays with them.
_DIGITS = r"(?:(?=\p{N})\X)+"
_PART = r"(?:(?=[\p{L}\p{M}\p{N}])\X)+"
# Digits in groups stay together, also with the spaces that French puts between them, and also behind letters.
_GROUPING = r"(?:[.,:'’٫٬]|[ \u00a0\u202f](?=\p{N}{3}(?!\p{N})))"
_NUMBER = rf"{_DIGITS}(?:{_GROUPING}{_DIGITS})*"
_WORD = rf"{_PART}(?:(?:['’\-.·׳״]|(?<=\p{{N}}){_GROUPING}(?=\p{{N}})){_PART})*"
_SPACED = regex.compile(rf"\s*(?:{_NUMBER}(?:{_WORD})?|{_WORD}|(?=\S)\X)|\s+")
# Latin words and numbers inside them are units too.
_LATIN = r"(?:(?=[\p{Latin}\p{M}\p{N}])\X)+"
_GRAPHEMES = regex.compile(rf"\s*(?:{_LATIN}(?:['’\-.,:٫٬]{_LATIN})*|(?=\S)\X)|\s+")
# Something is said in it.
SPOKEN = regex.compile(r"[\p{L}\p{N}]")


def units(text: str, lang: str) -> list[str]:
    """The text in pieces that join to it: words with the space before them; numbers stay whole."""
    return _read(text, lang, 0)


class Units:
    """The units of texts of which each says much the same as the one before: it reads what is new."""

    def __init__(self, lang: str) -> None:
        self._lang = lang
        # Characters behind the end of a unit that it depends on: BudouX looks at three, `_GROUPING` at five.
        self._reach = 4 if lang in UNSPACED else 6
        self._text = ""
        self._units: list[str] = []

    def divide(self, text: str) -> list[str]:
        """As `units`; not to be changed."""
        known = same_chars(self._text, text) - self._reach
        begin = kept = 0
        for unit in self._units:
            if begin + len(unit) > known:
                break
            begin += len(unit)
            kept += 1
        self._text, self._units = text, self._units[:kept] + _read(text, self._lang, begin)
        return self._units


def same_chars(one: str, other: str) -> int:
    """How many characters of their beginnings are the same. By halves: a loop over a long text is slow."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _read(text: str, lang: str, begin: int) -> list[str]:
    """The units from one of them on."""
    if lang not in UNSPACED:
        spaced: list[str] = _SPACED.findall(text, begin)
        return spaced
    pieces: list[str] = _GRAPHEMES.findall(text, begin)
    if lang not in _PARSERS:
        return pieces
    # BudouX may break a Latin word or a number, and leaves punctuation, and Latin words that follow one another,
    # with the word before. A break depends on three characters on either side.
    first = max(0, begin - 3)
    ends = set(accumulate(map(len, _parser(lang).parse(text[first:])), initial=first))
    words: list[str] = []
    at, punctuation = begin, True
    for piece in pieces:
        before, punctuation = punctuation, SPOKEN.search(piece) is None
        if before or punctuation or at in ends or piece[0].isspace():
            words.append(piece)
        else:
            words[-1] += piece
        at += len(piece)
    return words


@cache
def _parser(lang: str) -> budoux.Parser:
    return _PARSERS[lang]()

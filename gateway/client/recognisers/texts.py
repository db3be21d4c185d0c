"""Texts as far as they are compared: their words, without capitals and punctuation.

Knows: words, and scripts without spaces, in which a character counts as a word.
Must not know: utterances, recognisers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_WIDE}]|[^\\s{_WIDE}]+")
_WIDE_END = re.compile(f"[{_WIDE}、。！？，]$")
_WIDE_START = re.compile(f"[{_WIDE}、。！？，]")
_MARKS = '.,;:!?…"“”„«»()[]¿¡、。！？，-–—'


def plain(text: object) -> str:
    """The text with single spaces; what is not a text is empty."""
    return " ".join(text.split()) if isinstance(text, str) else ""


def words_of(text: str) -> list[str]:
    """The words, to be compared with those of another text."""
    found = (word.strip(_MARKS).lower() for word in _WORD.findall(text))
    return [word for word in found if word]


def join(text: str, more: str) -> str:
    """One text behind the other; there is no space where the script has none."""
    if not text or not more:
        return text or more
    return text + ("" if _WIDE_END.search(text) and _WIDE_START.match(more) else " ") + more


def without_words(text: str, count: int) -> str:
    """What is behind so many words."""
    if count == 0:
        return text
    for match in _WORD.finditer(text):
        if match[0].strip(_MARKS):
            count -= 1
        if count == 0:
            return text[match.end() :].lstrip(" " + _MARKS)
    return ""


def common_beginning(words: Sequence[str], others: Sequence[str]) -> int:
    """How many words both begin with."""
    same = 0
    while same < min(len(words), len(others)) and words[same] == others[same]:
        same += 1
    return same


def known_words(words: Sequence[str], others: Sequence[str]) -> int:
    """How many of `words` are among the others."""
    known = set(others)
    return sum(word in known for word in words)

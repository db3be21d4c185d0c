"""Words that remember which constituent they belong to, so that a sentence can be cut where it was heard.

A linearizer writes words separated by spaces. Each word of a constituent carries a private-use letter at its end.
`finished` joins the words into a `Sentence` with a span for each constituent. A space inside a Japanese or Chinese
word (a foreign name) is written as a word joiner until then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from demo_model.grammar import Slot, Value
from demo_model.patterns import Sentence, Span

_BASE = 0xE000
_COMMAS = (",", "，", "、")
_STOPS = ",.?!:，。、？！\u2060"
_PLURAL = re.compile(r"[a-z]{2}s'$")
"""An English possessor, not a French elision: the parents' evening."""
_MARK = re.compile("[\ue000-\ue0ff]")


def marked(text: str, mark: int) -> str:
    """The words of `text` with this mark; words that have one keep theirs."""
    letter = chr(_BASE + mark)
    return " ".join(word if _MARK.search(word) else word + letter for word in text.split())


def bare(word: str) -> str:
    return _MARK.sub("", word)


def phrase(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def finished(
    text: str,
    glue: str,
    values: Mapping[int, tuple[str, Value]],
    rewrite: Callable[[str, str], tuple[str, str] | None] | None = None,
) -> Sentence:
    """glue: what separates words. rewrite: changes two neighbouring words (contractions, elisions)."""
    words: list[tuple[str, int]] = []
    for each in text.split():
        found = _MARK.search(each)
        words.append((bare(each), ord(found.group()) - _BASE if found else -1))
    if rewrite is not None:
        words = _rewritten(words, rewrite)
    out, spans = "", list[Span]()
    for index, (word, mark) in enumerate(words):
        if word in _COMMAS and (
            not out or out[-1] in _STOPS or index + 1 == len(words) or words[index + 1][0][0] in _STOPS
        ):
            continue
        elided = out[-1:] in "'¿¡" and not _PLURAL.search(out)
        gap = glue if out and word[0] not in _STOPS and not elided else ""
        start = len(out) + len(gap)
        out += gap + word.replace("\u2060", " ")
        if mark < 0 or word[0] in _STOPS:
            continue
        if spans and spans[-1].slot.name == f"c{mark}" and spans[-1].end + len(gap) == start:
            start = spans.pop().start
        kind, value = values.get(mark, ("phrase", str(mark)))
        spans.append(Span(start, len(out), Slot(kind, f"c{mark}"), value))
    return Sentence(out, tuple(spans))


def _rewritten(
    words: Iterable[tuple[str, int]], rewrite: Callable[[str, str], tuple[str, str] | None]
) -> list[tuple[str, int]]:
    out: list[tuple[str, int]] = []
    for word, mark in words:
        if out:
            changed = rewrite(out[-1][0], word)
            if changed is not None:
                before, word = changed
                last = out.pop()
                if before:
                    out.append((before, last[1] if word else mark if mark >= 0 else last[1]))
        if word:
            out.append((word, mark))
    return out

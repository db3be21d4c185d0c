"""Writes sentences as a speech recogniser does: no capitals, no punctuation, fillers.

It is applied only to the source. Every change keeps the positions of slots up to date, so that the sentence can
still be cut to a prefix.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

from demo_model.corpus.sets import Sentence, Span

_FILLERS = {
    "en": ("um", "uh", "uhm", "er", "you know"),
    "es": ("eh", "este", "em"),
    "de": ("äh", "ähm", "hm"),
    "fr": ("euh", "heu", "ben"),
    "ja": ("えーと", "あの", "えっと", "ええと"),
    "zh": ("呃", "嗯", "那个"),
}
_PUNCTUATION = frozenset(".,?!;:¿¡。、，？！；：")
_PAUSES = frozenset("。、，？！；：")


def _rewritten(sentence: Sentence, keep: list[tuple[str, int]]) -> Sentence:
    """A sentence from pairs (character, its index in the original); slots move with their characters."""
    moved: dict[int, int] = {}
    for position, (_, origin) in enumerate(keep):
        moved.setdefault(origin, position)
    following = len(keep)
    target = [0] * (len(sentence.text) + 1)
    for index in range(len(sentence.text), -1, -1):
        following = moved.get(index, following)
        target[index] = following
    spans = tuple(replace(span, start=target[span.start], end=target[span.end]) for span in sentence.spans)
    return Sentence("".join(letter for letter, _ in keep), spans)


def _inside(spans: Sequence[Span], length: int) -> list[bool]:
    marks = [False] * length
    for span in spans:
        marks[span.start : span.end] = [True] * (span.end - span.start)
    return marks


def without_punctuation(sentence: Sentence, language: str, rng: random.Random | None = None) -> Sentence:
    """The sentence without punctuation outside slots. In ja and zh a pause sometimes becomes a space."""
    within = _inside(sentence.spans, len(sentence.text))
    pauses = rng is not None and language in ("ja", "zh") and rng.random() < 0.2
    keep: list[tuple[str, int]] = []
    for index, letter in enumerate(sentence.text):
        if letter in _PUNCTUATION and not within[index]:
            if not (pauses and letter in _PAUSES and index + 1 < len(sentence.text)):
                continue
            letter = " "
        if letter == " " and (not keep or keep[-1][0] == " "):
            continue
        keep.append((letter, index))
    while keep and keep[-1][0] == " ":
        keep.pop()
    return _rewritten(sentence, keep)


def lower_case(sentence: Sentence, keep_names: bool) -> Sentence:
    """The sentence in lower case, except letters whose lower case is longer. keep_names: names and codes stay."""
    kept = _inside([span for span in sentence.spans if span.copied and keep_names], len(sentence.text))
    letters = [
        letter if kept[index] or len(letter.lower()) != 1 else letter.lower()
        for index, letter in enumerate(sentence.text)
    ]
    return Sentence("".join(letters), sentence.spans)


def hesitant(sentence: Sentence, language: str, rng: random.Random) -> Sentence:
    """The sentence with a filler or a repeated word somewhere outside slots."""
    text = sentence.text
    within = _inside(sentence.spans, len(text))
    cjk = language in ("ja", "zh")
    starts = [0] + [
        index
        for index in range(1, len(text))
        if not within[index] and (text[index - 1] in "、，。" if cjk else text[index - 1] == " ")
    ]
    at = rng.choice(starts)
    if at and not cjk and rng.random() < 0.25:
        word = re.match(r"\w+", text[at:])
        inserted = f"{word.group()} " if word else ""
    else:
        filler = rng.choice(_FILLERS[language])
        pause = rng.choice(("、", "") if language == "ja" else ("，", "") if cjk else (", ", " "))
        inserted = filler + pause
    shift = len(inserted)
    spans = tuple(
        replace(span, start=span.start + shift, end=span.end + shift) if span.start >= at else span
        for span in sentence.spans
    )
    return Sentence(text[:at] + inserted + text[at:], spans)


def recognised(sentence: Sentence, language: str, rng: random.Random) -> Sentence:
    """The sentence in one of the styles of recognisers: bare, lower case, or cased without punctuation."""
    draw = rng.random()
    if draw < 0.85:
        sentence = without_punctuation(sentence, language, rng)
    if draw < 0.70 or draw >= 0.85:
        sentence = lower_case(sentence, keep_names=rng.random() < 0.7 or _has_inner_capitals(sentence))
    return sentence


def _has_inner_capitals(sentence: Sentence) -> bool:
    """Whether this is a name such as McKay, whose capitals cannot be restored from lower case."""
    return any(
        span.copied and re.search(r"[^\W\d_][A-Z]", sentence.text[span.start : span.end])
        for span in sentence.spans
    )

"""Makes unfinished sentences: cuts the source where a recogniser may stop, and the translation to match.

The translation of a prefix is cut in proportion, after a word, and before the first slot whose value the source
has not said yet. It has no final punctuation. It is empty if nothing can be translated yet.
"""

from __future__ import annotations

import random
import re

from demo_model.corpus.sets import Sentence

_TRAILING = " ,.?!;:。、，？！；："
_OPENING = "¿¡"
_WORD_SLACK = 2  # letters by which a word may exceed the limit


def _letter_class(letter: str) -> str:
    if letter.isdigit():
        return "latin"
    code = ord(letter)
    if 0x3040 <= code < 0x30A0:
        return "hiragana"
    if 0x30A0 <= code < 0x3100:
        return "katakana"
    if 0x3400 <= code < 0xA000 or letter == "々":
        return "han"
    return "latin" if letter.isalpha() or letter in "-'%$.:" else "other"


def word_ends(text: str, language: str) -> list[int]:
    """Positions after each word, the end included; in ja where the script changes, in zh after each character."""
    if language not in ("ja", "zh"):
        return [match.end() for match in re.finditer(r"\S+", text)]
    ends: list[int] = []
    for index in range(1, len(text)):
        before, after = _letter_class(text[index - 1]), _letter_class(text[index])
        if language == "zh":
            together = before == after == "latin"
        else:
            together = before == after or (before == "han" and after == "hiragana")
        if not together and after != "other":
            ends.append(index)
    return [*ends, len(text)] if text else []


def source_cuts(sentence: Sentence, language: str) -> list[int]:
    """Where the source may stop: after each word but the last."""
    return word_ends(sentence.text, language)[:-1]


def cut_source(sentence: Sentence, cut: int) -> str:
    return sentence.text[:cut].rstrip()


def cut_target(source: Sentence, cut: int, target: Sentence, language: str) -> str:
    """The part of `target` that translates `source.text[:cut]`."""
    said = {span.slot for span in source.spans if span.says_value and span.end <= cut}
    # What one language leaves out (a Japanese pronoun) is never said there, so nothing waits for it.
    known = {span.slot for span in source.spans}
    limit = round(len(target.text) * cut / max(1, len(source.text)))
    if language not in ("ja", "zh"):
        limit += _WORD_SLACK
    for span in target.spans:
        if span.slot in known and span.slot not in said:
            limit = min(limit, span.start)
    inside = [span for span in target.spans if span.start < limit < span.end]
    if inside:  # a name is never cut: it is kept or left out
        limit = inside[0].start
    ends = [end for end in word_ends(target.text, language) if end <= limit]
    if any(span.start < (ends[-1] if ends else 0) < span.end for span in target.spans):
        starts = [span.start for span in target.spans if span.start < ends[-1] < span.end]
        ends = [end for end in ends if end <= starts[0]]
    prefix = target.text[: ends[-1]].rstrip(_TRAILING).rstrip(_OPENING + " ") if ends else ""
    # "y" became "e" before "Inés", which is not said yet: undo this, or it would reveal the vowel.
    return re.sub(r"(?:^| )[eu]$", "", prefix) if language == "es" else prefix


def spoken_end(target: Sentence) -> str:
    """The whole translation without final punctuation, for a source that may continue."""
    return target.text.rstrip(_TRAILING)


def choose_cut(sentence: Sentence, language: str, rng: random.Random) -> int | None:
    cuts = source_cuts(sentence, language)
    return rng.choice(cuts) if cuts else None

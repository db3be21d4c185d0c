"""Puts other numbers in the place of those that all six languages say in figures: they are learned as figures."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from demo_model import LANGUAGES
from demo_model.corpus.sets import ParallelSet, Sentence

# Two digits or more: one digit often decides a plural. Not a part of a time, a date, a version or a word.
_NUMBER = re.compile(
    r"(?<![\w.,:/\-+@#])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w:/\-]|[.,]\d)|(?<![\w.,:/\-+@#])\d{2,9}(?:\.\d+)?(?![\w:/\-]|[.,]\d)"
)
_SEPARATORS = {
    "en": (",", "."),
    "ja": (",", "."),
    "zh": (",", "."),
    "es": (".", ","),
    "de": (".", ","),
    "fr": (" ", ","),
}
_CHANCE = 0.7
_YEARS = range(1900, 2100)


def in_figures(number: str, language: str) -> str:
    """`1,250.5` as this language writes it."""
    thousands, point = _SEPARATORS[language]
    return number.replace(",", "\0").replace(".", point).replace("\0", thousands)


def _other(number: str, rng: random.Random) -> str:
    """A number of the same shape."""
    first = True
    digits: list[str] = []
    for letter in number:
        if letter.isdigit():
            letter = str(rng.randint(1 if first else 0, 9))
            first = False
        digits.append(letter)
    return "".join(digits)


def _swapped(texts: Mapping[str, str], number: str, other: str) -> dict[str, str] | None:
    """The texts with another number; None unless each of them has it once."""
    changed: dict[str, str] = {}
    for language, text in texts.items():
        said = re.compile(r"(?<![\d.,:/])" + re.escape(in_figures(number, language)) + r"(?![\d:/]|[.,]\d)")
        if len(said.findall(text)) != 1:
            return None
        changed[language] = said.sub(in_figures(other, language), text)
    return changed


def with_other_amounts(drawn: ParallelSet, rng: random.Random) -> ParallelSet:
    """The set with other numbers, now and then. Only for sets without slots, as their positions would move."""
    texts: dict[str, str] = {language: drawn.written[language].text for language in LANGUAGES}
    numbers = [found.group() for found in _NUMBER.finditer(texts["en"])]
    if not numbers or rng.random() > _CHANCE:
        return drawn
    for number in numbers:
        if number.isdigit() and int(number) in _YEARS:
            continue
        texts = _swapped(texts, number, _other(number, rng)) or texts
    sentences = {language: Sentence(text) for language, text in texts.items()}
    return ParallelSet(drawn.kind, sentences, sentences)

"""Other numbers in the place of those that all languages have."""

from __future__ import annotations

import random

import pytest

from demo_model import LANGUAGES
from demo_model.corpus.amounts import in_figures, with_other_amounts
from demo_model.corpus.sets import ParallelSet, Sentence, SetKind


def written(*texts: str) -> ParallelSet:
    sentences = {language: Sentence(text) for language, text in zip(LANGUAGES, texts, strict=True)}
    return ParallelSet(SetKind.WRITTEN, sentences, sentences)


def changed(drawn: ParallelSet) -> list[str]:
    """The texts with other numbers, from the first draw that gives some."""
    for seed in range(50):
        other = with_other_amounts(drawn, random.Random(seed))
        if other != drawn:
            return [other.written[language].text for language in LANGUAGES]
    return []


@pytest.mark.parametrize(
    ("language", "figures"), [("en", "1,250.50"), ("de", "1.250,50"), ("es", "1.250,50"), ("fr", "1 250,50")]
)
def test_each_language_has_its_separators(language: str, figures: str) -> None:
    assert in_figures("1,250.50", language) == figures


def test_the_same_number_is_in_all_languages() -> None:
    texts = changed(
        written(
            "€1,250 left.",
            "残り1,250ユーロ。",
            "Quedan 1.250 €.",
            "1.250 € übrig.",
            "Reste 1 250 €.",
            "剩1,250欧元。",
        )
    )
    digits = {"".join(letter for letter in text if letter.isdigit()) for text in texts}
    assert len(digits) == 1
    assert len(digits.pop()) == 4
    assert texts[3].endswith(" € übrig.")
    assert "." in texts[3]


@pytest.mark.parametrize(
    "texts",
    [
        # A year, a time, a version, one digit, and a number that one language says otherwise.
        ["In 1998.", "1998年に。", "En 1998.", "1998.", "En 1998.", "1998年。"],
        ["At 10:45.", "10:45に。", "A las 10:45.", "Um 10:45.", "À 10:45.", "10:45。"],
        ["Version v2.14.", "v2.14です。", "Versión v2.14.", "Version v2.14.", "Version v2.14.", "版本v2.14。"],
        ["7 left.", "残り7。", "Quedan 7.", "7 übrig.", "Reste 7.", "剩7。"],
        ["12 eggs.", "卵1ダース。", "12 huevos.", "12 Eier.", "12 œufs.", "12个鸡蛋。"],
    ],
)
def test_what_is_no_amount_stays(texts: list[str]) -> None:
    assert changed(written(*texts)) == []

"""Other spellings of the same sentence."""

from __future__ import annotations

import random

import pytest

from demo_model.corpus.spellings import respelled, without_accents


@pytest.mark.parametrize(("language", "plain"), [("de", "fuer Strasse"), ("es", "fur Straße")])
def test_accents_go_as_the_language_has_it(language: str, plain: str) -> None:
    assert without_accents("für Straße", language) == plain


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Können Sie das prüfen?"),
        ("ja", "確認していただけますか？"),
        ("zh", "你能看一下吗？"),
        ("en", "I"),
        ("fr", "« Oui ! »"),
    ],
)
def test_a_spelling_is_never_empty_and_often_another(language: str, text: str) -> None:
    drawn = {respelled(text, language, random.Random(seed)) for seed in range(100)}
    assert all(each and each == each.strip() for each in drawn)
    assert len(drawn) > 2


def test_a_question_stays_one() -> None:
    ends = {respelled("Wirklich?", "de", random.Random(seed))[-1] for seed in range(200)}
    assert "." not in ends

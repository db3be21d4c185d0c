"""The detector with its real model."""

from __future__ import annotations

import asyncio

import pytest

from gateway.server.translate.detection import Detector

SIX = ("en", "ja", "es", "de", "fr", "zh")


@pytest.fixture(scope="module")
def detector() -> Detector:
    detector = Detector()
    asyncio.run(detector.load())
    return detector


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("Let us move the launch to Friday.", "en"),
        ("金曜日なら大丈夫です。", "ja"),
        ("Que tenga un buen fin de semana.", "es"),
        ("wir verschieben das auf nächste woche", "de"),
        ("CAMILLE, VOUS POUVEZ COMMENCER", "fr"),
        ("Claudio和Svi星期一负责技术面试", "zh"),
    ],
)
def test_the_languages_of_the_bundled_model(detector: Detector, text: str, lang: str) -> None:
    assert detector.detect(text, SIX) == lang


@pytest.mark.parametrize("text", ["", "42", "👍 !", "2026-11-24"])
def test_a_text_without_words_has_none(detector: Detector, text: str) -> None:
    assert detector.detect(text, SIX) is None


def test_only_the_languages_of_the_model_are_found(detector: Detector) -> None:
    text = "Wir verschieben das auf nächste Woche."
    assert detector.detect(text, ("en", "nl")) in ("en", "nl")
    # And again with others: what was left out before is found again.
    assert detector.detect(text, ("en", "de")) == "de"
    assert detector.detect(text, ()) is None
    assert detector.detect(text, ("tlh",)) is None


def test_a_script_is_the_one_that_the_model_knows(detector: Detector) -> None:
    assert detector.detect("會議什麼時候開始", ("en", "zh-hant")) == "zh-hant"
    # It cannot tell the two apart, and takes the first.
    assert detector.detect("会议什么时候开始", ("en", "zh-hant", "zh")) == "zh-hant"
    assert detector.detect("会议什么时候开始", ("en", "zh", "zh-hant")) == "zh"


def test_equally_likely_languages_keep_their_order(detector: Detector) -> None:
    # Too short for the model to say anything.
    assert detector.detect("hi", ("en", "de", "fr")) == "en"
    assert detector.detect("hi", ("fr", "de", "en")) == "fr"


def test_shares_add_up_to_one(detector: Detector) -> None:
    ranked = detector.rank("Que tenga un buen fin de semana.", SIX)
    assert ranked[0][0] == "es"
    assert sum(share for _, share in ranked) == pytest.approx(1)

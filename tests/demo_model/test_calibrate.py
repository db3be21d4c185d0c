"""How well a confidence tells wrong translations from right ones, and where the mark is."""

from __future__ import annotations

import pytest

from demo_model.calibrate import (
    READINGS,
    Judged,
    area_under_curve,
    fit,
    is_right,
    items,
    read_readings,
    report,
)
from demo_model.evaluate import Answer
from demo_model.own import Item


def answer(suite: str, number: int, surprise: float, *, right: bool) -> Judged:
    item = Item(suite, "en", "de", f"{suite} {number}", "Ziel")
    return Judged(Answer(item, "Ziel", (-surprise,) * 4, True), right)


def answers(count: int = 60) -> list[Judged]:
    """The model is hardly surprised by what it gets right, but now and then by what it gets wrong neither."""
    found = [answer("unseen", number, 0.0001 * (number % 7), right=True) for number in range(count)]
    found += [answer("strangers", number, 0.001 * (number % 9), right=number % 9 < 4) for number in range(count)]
    return found + [answer("development", number, 0.05 + 0.01 * number, right=False) for number in range(count)]


@pytest.mark.parametrize(
    ("right", "wrong", "area"),
    [([3.0, 4.0], [1.0, 2.0], 1.0), ([1.0], [2.0], 0.0), ([1.0, 3.0], [2.0, 2.0], 0.5), ([1.0], [1.0], 0.5)],
)
def test_area_is_how_often_the_right_one_leads(right: list[float], wrong: list[float], area: float) -> None:
    """The area is how often, of a right and a wrong one, the right one measures higher."""
    assert area_under_curve(right, wrong) == area


def test_sure_answers_are_mostly_right_and_include_known() -> None:
    """What is shown as sure is seldom wrong, and what the model knows is sure."""
    found = answers()
    calibration = fit(found)
    lines = report(calibration, found)
    assert calibration.slope < 0  # the more surprised, the less sure
    assert 0 < calibration.unsure_below < 1
    assert lines["unseen"]["sure"] == 60
    assert lines["development"]["sure"] == 0
    assert lines["all"]["sure_and_wrong"] <= 0.1 * lines["all"]["sentences"]


def test_sentences_keep_their_half_in_all_directions() -> None:
    into = Judged(Answer(Item("strangers", "de", "en", "Ja.", "Yes."), "Yes.", (0.0,), True), True)
    out_of = Judged(Answer(Item("strangers", "en", "de", "Yes.", "Ja."), "Ja.", (0.0,), True), True)
    assert into.half == out_of.half
    assert {answer("unseen", number, 0.0, right=True).half for number in range(20)} == {0, 1}


def test_readers_verdict_counts_before_closeness_to_reference() -> None:
    item = Item("strangers", "en", "de", "Let's go.", "Gehen wir.")
    assert is_right(item, "Gehen wir.", {})
    assert not is_right(item, "Los geht's!", {})
    assert is_right(item, "Los geht's!", {("en-de", "Let's go.", "Los geht's!"): True})


def test_every_reading_is_of_a_sentence_that_is_asked() -> None:
    asked = {(f"{item.source_language}-{item.target_language}", item.source) for item in items()}
    readings = read_readings()
    assert {key[:2] for key in readings} <= asked
    assert len(readings) == len(READINGS.read_text(encoding="utf-8").splitlines())

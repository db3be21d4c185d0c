"""How well a confidence tells wrong translations from right ones, and where the mark is."""

from __future__ import annotations

import json

import pytest

from demo_model import SMALL_MODEL
from demo_model.calibrate import (
    MEASURES,
    READINGS,
    Answer,
    area_under_curve,
    fit,
    is_right,
    items,
    read_readings,
    report,
)
from demo_model.evaluate import Item
from gateway.engines.prompting.confidence import CALIBRATION_FILE, read_calibration


def answer(kind: str, number: int, surprise: float, *, right: bool) -> Answer:
    item = Item(kind, "en", "de", True, f"{kind} {number}", "Ziel")
    return Answer(item, "Ziel", right, (-surprise,) * 4, 4)


def answers(count: int = 60) -> list[Answer]:
    """The model is hardly surprised by what it gets right, but now and then by what it gets wrong neither."""
    found = [answer("corpus", number, 0.0001 * (number % 7), right=True) for number in range(count)]
    found += [answer("paraphrase", number, 0.001 * (number % 9), right=number % 9 < 4) for number in range(count)]
    return found + [answer("development", number, 0.05 + 0.01 * number, right=False) for number in range(count)]


@pytest.mark.parametrize(
    ("right", "wrong", "area"),
    [([3.0, 4.0], [1.0, 2.0], 1.0), ([1.0], [2.0], 0.0), ([1.0, 3.0], [2.0, 2.0], 0.5), ([1.0], [1.0], 0.5)],
)
def test_the_area_is_how_often_the_right_one_of_two_measures_higher(
    right: list[float], wrong: list[float], area: float
) -> None:
    assert area_under_curve(right, wrong) == area


def test_what_is_shown_as_sure_is_seldom_wrong_and_what_the_model_knows_is_sure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Nothing here is about known words, and it takes 3,000 sentences to know them.
    monkeypatch.setitem(MEASURES, "known source words", lambda _: 0.0)
    found = answers()
    calibration = fit(found)
    lines = report(calibration, found)
    assert calibration.slope < 0  # the more surprised, the less sure
    assert 0 < calibration.unsure_below < 1
    assert lines["corpus"]["sure"] == 60
    assert lines["development"]["sure"] == 0
    assert lines["all"]["sure_and_wrong"] <= 0.1 * lines["all"]["sure"]


@pytest.mark.long
@pytest.mark.parametrize(("text", "share"), [("The report is finished.", 1.0), ("Xqzt wvrb the report", 0.5)])
def test_words_are_known_that_the_corpus_says(text: str, share: float) -> None:
    known = MEASURES["known source words"]
    assert known(Answer(Item("paraphrase", "en", "de", True, text, ""), "", True, (0.0,), 2)) == share


def test_a_sentence_is_in_the_same_half_in_all_its_directions() -> None:
    into = Answer(Item("paraphrase", "de", "en", True, "Ja.", "Yes."), "Yes.", True, (0.0,), 2)
    out_of = Answer(Item("paraphrase", "en", "de", True, "Yes.", "Ja."), "Ja.", True, (0.0,), 2)
    assert into.half == out_of.half
    assert {answer("corpus", number, 0.0, right=True).half for number in range(20)} == {0, 1}


def test_what_a_reader_said_counts_and_else_how_close_it_is_to_the_reference() -> None:
    item = Item("paraphrase", "en", "de", True, "Let's go.", "Gehen wir.")
    assert is_right(item, "Gehen wir.", {})
    assert not is_right(item, "Los geht's!", {})
    assert is_right(item, "Los geht's!", {("en-de", "Let's go.", "Los geht's!"): True})
    # Of the corpus only the reference is right, because the model has learned just that.
    assert not is_right(Item("corpus", "en", "de", True, "Go.", "Los!"), "Los", {("en-de", "Go.", "Los"): True})


def test_every_reading_is_of_a_sentence_that_is_asked() -> None:
    asked = {(f"{item.source_language}-{item.target_language}", item.source) for item in items(SMALL_MODEL, 1)}
    readings = read_readings()
    assert {key[:2] for key in readings} <= asked
    assert len(readings) == len(READINGS.read_text(encoding="utf-8").splitlines())


def test_the_small_models_calibration_keeps_what_is_promised() -> None:
    assert read_calibration(str(SMALL_MODEL)) is not None
    lines = json.loads((SMALL_MODEL / CALIBRATION_FILE).read_text(encoding="utf-8"))["report"]
    for group in ("all", "unlike the corpus"):
        assert lines[group]["auc"]["mean log-probability"] >= 0.85
    assert lines["all"]["sure_and_wrong"] <= 0.1 * lines["all"]["sure"]
    # Most of these have an invented name, which may well be copied wrong.
    assert lines["corpus"]["right_but_unsure"] <= 0.08 * lines["corpus"]["right"]

"""The arithmetic, against values computed by hand."""

from __future__ import annotations

import pytest

from loadtest.partials.screens import (
    State,
    chrf,
    erased,
    erasure,
    first_ms,
    lags,
    units,
)


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("Ich kann  das nicht.", "de", ["Ich", "kann", "das", "nicht."]),
        ("", "de", []),
        ("BUG-13は11月2日まで。", "ja", ["BUG-13", "は", "11", "月", "2", "日", "ま", "で", "。"]),
        ("我们有5,500人, O'Neill", "zh", ["我", "们", "有", "5,500", "人", ",", "O'Neill"]),
        ("Ingridさん", "ja", ["Ingrid", "さ", "ん"]),
    ],
)
def test_a_unit_is_a_word_or_a_character(text: str, lang: str, expected: list[str]) -> None:
    assert units(text, lang) == expected


@pytest.mark.parametrize(
    ("before", "after", "lang", "count"),
    [
        ("Ich habe", "Ich habe drei", "de", 0),
        ("Ich habe drei", "Ich hatte drei Fragen", "de", 2),
        ("Ich habe drei", "Wir", "de", 3),
        ("Ich habe drei", "", "de", 3),
        # A word that grows was not taken back; one that turned into another was.
        ("am Frei", "am Freitag", "de", 0),
        ("am Freitag", "am Freitag.", "de", 0),
        ("am Freitag, ", "am Freitag, wenn", "de", 0),
        ("am Frei", "am Donnerstag", "de", 1),
        ("am Freitag.", "am Freitag und", "de", 1),
        ("予算は承認", "予算はまだ", "ja", 2),
    ],
)
def test_what_was_taken_back(before: str, after: str, lang: str, count: int) -> None:
    assert erased(before, after, lang) == count


def test_erasure_adds_up_over_what_was_shown() -> None:
    shown = ["Ich", "Ich habe", "Wir haben drei", "Wir haben vier Fragen"]
    assert erasure(shown, "de") == 0 + 2 + 1
    assert erasure(shown[:1], "de") == 0
    assert erasure([], "de") == 0


def test_lag_is_what_was_heard_less_what_is_on_the_screen_when_the_next_revision_comes() -> None:
    heard = [(300.0, 2), (700.0, 4), (1_000.0, 6)]
    shown = [(500.0, 1), (900.0, 2), (1_400.0, 3)]
    # Three target units stand for six of the source. What comes with the final is too late for the last sample.
    assert lags(shown, heard, 1_400.0, 6, 3) == [2 - 1 * 2, 4 - 2 * 2, 6 - 2 * 2]
    assert lags([], heard, 1_400.0, 6, 3) == [2, 4, 6]
    assert lags(shown, heard, 1_400.0, 6, 0) == []


def test_the_first_word_is_the_first_that_can_be_read() -> None:
    assert first_ms([State(100, ""), State(200, "", " "), State(300, "", "Ich"), State(400, "Ich")]) == 300
    assert first_ms([State(100, "")]) is None


def test_chrf_is_sacrebleus() -> None:
    assert chrf(["Ich habe eine Frage."], ["Ich habe eine Frage."]) == 100
    other = chrf(["Ich habe eine Frage."], ["Wir haben drei Fragen."])
    assert other is not None
    assert 20 < other < 60
    assert chrf([], []) is None

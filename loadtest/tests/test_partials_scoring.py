"""The arithmetic, against values computed by hand."""

from __future__ import annotations

import pytest

from loadtest.partials.scoring import (
    State,
    chrf,
    common,
    delays,
    erased,
    erasure,
    first_ms,
    heard_at,
    laal,
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


def test_common_counts_from_the_beginning() -> None:
    assert common(["a", "b", "c"], ["a", "b", "d"]) == 2
    assert common(["a"], ["a", "b"]) == 1
    assert common(["x", "b"], ["a", "b"]) == 0


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


def test_a_unit_is_settled_once_it_and_all_before_it_stay() -> None:
    assert delays([State(1, "A"), State(2, "A", " B"), State(3, "A C"), State(4, "A C D")], "de") == [1, 3, 4]
    # What vanished in between was not there for good.
    assert delays([State(1, "", "A B"), State(2, "", "X"), State(3, "A B C")], "de") == [3, 3, 3]
    assert delays([State(7, "A B")], "de") == [7, 7]
    assert delays([State(7, "")], "de") == []
    assert delays([], "de") == []


def test_what_had_been_heard_at_a_time() -> None:
    heard = [(300.0, 2), (700.0, 4), (900.0, 3)]
    assert [heard_at(heard, at_ms) for at_ms in (0, 300, 699, 700, 2_000)] == [0, 2, 2, 4, 3]


@pytest.mark.parametrize(
    ("waited", "source", "target", "expected"),
    [
        # Always one word behind.
        ([1, 2, 3], 3, 3, 1.0),
        # The whole source first: as long as the source is.
        ([4, 4, 4], 4, 3, 4.0),
        # A reference that is longer than what was said: 4/5 of a source word for each target word, up to and with
        # the first one that had all: (1 - 0) + (2 - 0.8) + (4 - 1.6).
        ([1, 2, 4, 4], 4, 5, (1 + 1.2 + 2.4) / 3),
        # More was said than the reference has: its own length counts, 2/4 of a word: 1, 1.5, 2 - 1.
        ([1, 2, 2, 2], 2, 1, ((1 - 0) + (2 - 0.5)) / 2),
        # Never all of the source: every unit counts.
        ([1, 1], 4, 2, ((1 - 0) + (1 - 2)) / 2),
        # Milliseconds beyond the end of the source.
        ([500, 1_500, 2_000], 1_000, 2, (500 + (1_500 - 1_000 / 3)) / 2),
        ([1_500, 2_000], 1_000, 2, 1_500),
    ],
)
def test_length_adaptive_average_lagging(waited: list[float], source: float, target: int, expected: float) -> None:
    assert laal(waited, source, target) == pytest.approx(expected)


def test_chrf_is_sacrebleus() -> None:
    assert chrf(["Ich habe eine Frage."], ["Ich habe eine Frage."]) == 100
    other = chrf(["Ich habe eine Frage."], ["Wir haben drei Fragen."])
    assert other is not None
    assert 20 < other < 60
    assert chrf([], []) is None

"""What a reader was sent, as their screen showed it, and which promises that breaks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from loadtest.partials.screens import (
    Arm,
    Delta,
    Final,
    Reading,
    State,
    broken,
    chrf,
    contradictions,
    erased,
    erasure,
    first_ms,
    lags,
    states,
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


# ---------------------------------------------------------------- what readers were sent


LIVE = Reading(
    Arm.OURS,
    "en-1",
    "de",
    "live",
    deltas=[Delta(500, 1, "", "Ich"), Delta(900, 2, "Ich", " kann"), Delta(1_300, 3, " kann das", "")],
    finals=[Final(2_000, 4, "Ich kann das nicht.", 7)],
)
STABLE = replace(LIVE, stability="stable", deltas=[Delta(900, 2, "Ich", ""), Delta(1_300, 3, " kann das", "")])
FINAL = replace(LIVE, stability="final", deltas=[])
NAIVE = Reading(
    Arm.NAIVE,
    "en-1",
    "de",
    "final",
    finals=[Final(500, 1, "Ich", 2), Final(1_400, 3, "Wir können", 3), Final(1_500, 2, "Ich kann", 3)],
)


def test_committed_text_is_appended_and_tentative_text_replaced() -> None:
    assert states(LIVE) == [
        State(500, "", "Ich"),
        State(900, "Ich", " kann"),
        State(1_300, "Ich kann das", ""),
        State(2_000, "Ich kann das nicht."),
    ]
    assert [state.text for state in states(LIVE)][1] == "Ich kann"


def test_in_the_naive_arm_an_older_revision_does_not_replace_a_newer_one() -> None:
    assert states(NAIVE) == [State(500, "", "Ich"), State(1_400, "", "Wir können")]


def test_nothing_is_broken_where_everything_came_once() -> None:
    assert [list(broken(reading)) for reading in (LIVE, STABLE, FINAL)] == [[], [], []]
    assert list(broken(NAIVE, utterances=3)) == []


def test_a_final_comes_exactly_once() -> None:
    assert "0 finals came, 1 should" in "".join(broken(replace(LIVE, finals=[])))
    assert "2 finals came, 1 should" in "".join(broken(replace(LIVE, finals=LIVE.finals * 2)))
    assert "3 finals came, 4 should" in "".join(broken(NAIVE, utterances=4))
    twice = replace(NAIVE, finals=[*NAIVE.finals[:2], NAIVE.finals[0]])
    assert "3 finals came, 3 should" in "".join(broken(twice, utterances=3))


def test_what_was_not_translated_is_said() -> None:
    assert "not translated, overloaded" in "".join(broken(replace(LIVE, failed=["overloaded"])))


def test_deltas_come_before_the_final_and_in_the_order_of_revisions() -> None:
    assert "1 deltas came behind the final" in "".join(broken(replace(LIVE, late=1)))
    assert "older revision" in "".join(broken(replace(LIVE, deltas=LIVE.deltas[::-1])))


def test_nobody_is_shown_more_than_they_chose() -> None:
    assert "may change" in "".join(broken(replace(STABLE, deltas=LIVE.deltas)))
    assert "was shown 2 deltas" in "".join(broken(replace(FINAL, deltas=STABLE.deltas)))


def test_readers_of_one_stream_are_promised_the_same() -> None:
    assert list(contradictions([LIVE, STABLE, FINAL])) == []
    shorter = replace(STABLE, deltas=STABLE.deltas[:1])
    assert list(contradictions([LIVE, shorter, FINAL])) == []
    other = replace(STABLE, deltas=[Delta(900, 2, "Wir", "")])
    assert "committed text differs" in "".join(contradictions([LIVE, other]))
    told = replace(FINAL, finals=[Final(2_000, 4, "Nein.", 2)])
    assert "different finals" in "".join(contradictions([LIVE, STABLE, told]))
    assert list(contradictions([])) == []

"""Where parts of a sentence are in its translation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.server.compat.alignment import Places


@pytest.mark.parametrize(
    ("text", "part", "share", "found"),
    [
        # Inflected, and in another place.
        ("Die neuen Häuser sehe ich dort.", "neue Häuser", (0.5, 0.9), "neuen Häuser"),
        ("Am Freitag, nicht am Montag.", "Freitags", (0.7, 1), "Freitag"),
        ("明日の会議は中止です。", "会議", (0, 0.2), "会議"),
        # Twice: the nearer one.
        ("Ja, ja, so ist es.", "Ja", (0.3, 0.4), "ja"),
        ("Etwas ganz anderes.", "Montag", (0, 1), None),
        ("Etwas", "!", (0, 1), None),
        ("", "Montag", (0, 1), None),
    ],
)
def test_most_words_of_a_part(text: str, part: str, share: tuple[float, float], found: str | None) -> None:
    span = Places(text).of_words(part, share)
    assert (None if span is None else text[slice(*span)]) == found


def test_words_that_are_taken_are_nobody_elses() -> None:
    text = "Ja, ja, so ist es."
    places = Places(text)
    places.take((0, 2))
    assert places.of_words("ja", (0, 0.1)) == (4, 6)
    places.take((4, 6))
    assert places.of_words("ja", (0, 0.1)) is None
    assert text[slice(*places.about((0, 0.1)) or (0, 0))] == "so"
    places.take((0, len(text)))
    assert places.about((0, 0.1)) is None


def test_in_proportion() -> None:
    places = Places("eins zwei drei vier")
    assert places.about((0.5, 1)) == (10, 19)
    places.take((10, 19))
    assert [places.before_a_word(share) for share in (0, 0.3, 0.7, 1)] == [0, 5, 10, 19]


@given(st.text(max_size=60), st.text(max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_spans_are_within_the_text_and_apart(text: str, part: str, one: float, other: float) -> None:
    places, share = Places(text), (min(one, other), max(one, other))
    taken: set[int] = set()
    for turn in range(3):
        if (span := places.about(share) if turn else places.of_words(part, share)) is not None:
            chars = set(range(*span))
            assert chars
            assert chars <= set(range(len(text)))
            assert not chars & taken
            taken |= chars
            places.take(span)
    assert 0 <= places.before_a_word(one) <= len(text)

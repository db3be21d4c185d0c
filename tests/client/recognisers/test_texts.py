from __future__ import annotations

import pytest

from gateway.client.recognisers.texts import join, plain, without_words, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("“Good morning,” Ana – all.", ["good", "morning", "ana", "all"]),
        ("we're 50% sure", ["we're", "50%", "sure"]),
        ("会議を、OK?", ["会", "議", "を", "ok"]),
        (" … ", []),
    ],
)
def test_words_are_compared_without_marks(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "more", "joined"),
    [
        ("good", "morning", "good morning"),
        ("会議を", "始めます", "会議を始めます"),
        ("", "a", "a"),
        ("会議", "OK", "会議 OK"),
    ],
)
def test_texts_are_joined_as_their_script_wants_it(text: str, more: str, joined: str) -> None:
    assert join(text, more) == joined


@pytest.mark.parametrize(
    ("text", "count", "rest"),
    [("Good morning, all. Yes.", 2, "all. Yes."), ("– One – two", 1, "two"), ("one", 1, ""), ("one", 0, "one")],
)
def test_what_is_behind_words(text: str, count: int, rest: str) -> None:
    assert without_words(text, count) == rest


def test_what_is_not_a_text_is_empty() -> None:
    assert (plain(" a \n b "), plain(None), plain(7)) == ("a b", "", "")

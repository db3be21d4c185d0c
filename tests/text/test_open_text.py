"""Which segments of an utterance are settled while it is being said, and that nothing is lost or said twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.text.open_text import OpenText

LONGEST = 40


def settle(text: OpenText, *revisions: str, lang: str = "en") -> list[str]:
    """What is settled with these revisions."""
    settled = []
    for revision in revisions:
        text.revise(revision)
        while (segment := text.ready(lang)) is not None:
            settled.append(segment.strip())
            text.take(segment)
    return settled


@pytest.mark.parametrize(
    ("revisions", "settled", "rest"),
    [
        # Nothing is settled before words follow, and two revisions agree.
        (["We go.", "We go."], [], "We go."),
        # The same once more is not a second opinion.
        (["We go. Then", "We go. Then"], [], "We go. Then"),
        (["We go. Then"], [], "We go. Then"),
        (["We go.", "We go. Then"], ["We go."], "Then"),
        (["It costs 3.", "It costs 3.5 million"], [], "It costs 3.5 million"),
        # A recogniser that has not decided.
        (["We go. Then", "We going. Then", "We go. Then"], [], "We go. Then"),
        (["We go. Then we", "We go. They"], ["We go."], "They"),
        # ... but has moved on: so much follows that it does not matter any more.
        (["We go. Then", f"We gone. {'x' * 41}"], ["We gone."], "x" * 41),
        # What changes before the cut later: capitals, marks, a word, a word more, a word less.
        (["We go.", "We go. Then", "we go, then we stay"], ["We go."], "then we stay"),
        (["We go.", "We go. Then", "We went. Then we stay"], ["We go."], "Then we stay"),
        (["We can go.", "We can go. Then", "We go. Then we stay"], ["We can go."], "Then we stay"),
        (["We go.", "We go. Then", "We can go. Then we stay"], ["We go."], "Then we stay"),
        (["We go.", "We go. Then", "¡We go! ¿Then?"], ["We go."], "¿Then?"),
        # It is shorter for a while, and goes on.
        (["We go out.", "We go out. Then", "We", "We go out. Then we"], ["We go out."], "Then we"),
        # The recogniser has begun again, and has dropped the oldest words.
        (["We go.", "We go. Then", "Tomorrow"], ["We go."], "Tomorrow"),
        (["We all go out.", "We all go out. Then", "all go out. Then we"], ["We all go out."], "Then we"),
        # Without marks, by length, where three words follow; not in a number or a name.
        (
            [f"we said that all of the people who came are happy{more}" for more in ("", " now")],
            ["we said that all of the people who came"],
            "are happy now",
        ),
    ],
)
def test_what_is_settled_by_revisions(revisions: list[str], settled: list[str], rest: str) -> None:
    text = OpenText(LONGEST)
    assert settle(text, *revisions) == settled
    assert text.rest.strip() == rest


def test_other_scripts_are_settled_as_well() -> None:
    text = OpenText(LONGEST)
    assert settle(text, "おはよう。今日は", "おはよう。今日は会議", lang="ja") == ["おはよう。"]
    assert settle(text, "お早う。今日は会議をします。", lang="ja") == []
    assert text.rest == "今日は会議をします。"


def test_what_was_accepted_elsewhere_is_taken_off() -> None:
    text = OpenText(LONGEST)
    text.revise("We went out. Then we stay")
    text.take_as("We go out.")
    assert text.rest == "Then we stay"
    text.take_as("Then we stay at home")
    assert text.rest == ""
    assert text.taken == 2


def test_the_beginning_ends_with_the_first_segment() -> None:
    text = OpenText(LONGEST)
    text.revise("We go. Then")
    assert text.beginning("en").strip() == "We go."
    text.revise("We go")
    assert text.beginning("en") == "We go"


WORDS = st.lists(st.sampled_from(["we", "go.", "Anna", "3", "500", "then,", "no!", "x"]), min_size=1, max_size=60)


@given(words=WORDS, steps=st.lists(st.integers(1, 7), max_size=60))
def test_any_chunking_says_everything_once(words: list[str], steps: list[int]) -> None:
    text, at, said = OpenText(LONGEST), 0, []
    for step in [*steps, len(words)]:
        at = min(len(words), at + step)
        said += settle(text, " ".join(words[:at]))
    said += [segment.strip() for segment in text.remaining("en")]
    assert " ".join(said) == " ".join(words)


@given(
    count=st.integers(1, 80),
    steps=st.lists(st.integers(1, 5), min_size=1, max_size=80),
    changes=st.lists(st.integers(1, 6), min_size=80, max_size=80),
)
def test_changed_words_move_no_cut(count: int, steps: list[int], changes: list[int]) -> None:
    """A recogniser that takes one of its last words for another now and then, and stops at every ninth."""
    words = [f"w{n}{'.' if n % 9 == 8 else ''}" for n in range(count)]
    text, at, said = OpenText(LONGEST), 0, 0
    for step, change in zip([*steps, count], changes, strict=False):
        at = min(count, at + step)
        heard = words[:at]
        heard[-min(change, at)] = f"other{at}."
        said += sum(len(segment.split()) for segment in settle(text, " ".join(heard)))
    text.revise(" ".join(words))
    assert text.rest.split() == words[said:]


def test_the_work_for_a_long_talk_is_small() -> None:
    sentence = "The customer wants an answer by Monday. "
    text = OpenText(120)
    assert len(settle(text, sentence * 400, sentence * 401)) == 400
    # A word far away has changed: what is compared is what is near the cut.
    assert settle(text, f"A {sentence.lower() * 401}The next") == []
    assert text.rest == f"{sentence.lower()}The next"


def test_a_long_final_is_divided_a_part_at_a_time() -> None:
    said = "\n " * 4_000 + "The customer wants an answer. " * 2_000 + " " * 5_000 + "word " * 2_000
    text, parts = OpenText(120), []
    text.revise(said)
    while segments := text.remaining("en"):
        assert sum(map(len, segments)) <= 4_000
        for segment in segments:
            text.take(segment)
        parts += segments
    assert "".join(parts).split() == said.split()
    assert all(part.strip() for part in parts)

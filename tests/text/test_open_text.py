"""Which segments of an utterance are settled while it is being said, and that nothing is lost or said twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.text import open_text
from gateway.text import segments as text_segments
from gateway.text.open_text import OpenText

LONGEST = 40


def settle(text: OpenText, *revisions: str, lang: str = "en") -> list[str]:
    """What is settled with these revisions."""
    settled = []
    for revision in revisions:
        text.revise(revision)
        while (segment := text.ready(lang)) is not None:
            settled.append(segment.strip())
            text.take_segment(segment)
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
        # ... words before it, of which one is said in the segment too.
        (["We go.", "We go. Then", "Later, after lunch, we go. Then we"], ["We go."], "Then we"),
        (["We go.", "We go. Then", "Then later we go. Then we stay"], ["We go."], "Then we stay"),
        # It is shorter for a while, also with another word, and goes on.
        (
            ["We all go out.", "We all go out. Now", "We wall go", "We all go out. Now we"],
            ["We all go out."],
            "Now we",
        ),
        (["We go.", "We go. Then", "", "...", "We go. Then we"], ["We go."], "Then we"),
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


@pytest.mark.parametrize(
    ("said", "accepted", "rest"),
    [
        ("We go. Then we stay", ["We go."], "Then we stay"),
        ("We went out. Then we stay", ["We go out."], "Then we stay"),
        # It does not go as far.
        ("We went out. Then we stay", ["We go out.", "Then we stay at home"], ""),
        ("Then we", ["Then we stay at home"], ""),
        # Words before, between and instead; the last word is missing.
        ("Now, we all go. Then we stay.", ["We go."], "Then we stay."),
        ("We went! Then we stay.", ["We go."], "Then we stay."),
        ("We. Then we stay.", ["We go."], "Then we stay."),
        # Something else is said.
        ("Then we stay.", ["We go."], "Then we stay."),
        ("Then we stay.", ["We go. ", "The customer wants an answer by Monday."], "Then we stay."),
        ("We stay.", ["We go out today."], "We stay."),
        ("", ["We go."], ""),
        ("...", ["We go."], ""),
        # Words that are said again and again.
        ("We go. We go. We go.", ["We go.", "We go."], "We go."),
    ],
)
def test_what_was_accepted_elsewhere_is_taken_off(said: str, accepted: list[str], rest: str) -> None:
    text = OpenText(LONGEST)
    text.revise(said)
    for segment in accepted:
        text.take_accepted(segment)
    assert text.rest.strip() == rest
    assert text.taken == len(accepted)


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
    for rev, (step, change) in enumerate(zip([*steps, count], changes, strict=False)):
        at = min(count, at + step)
        heard = words[:at]
        heard[-min(change, at)] = f"other{rev}."
        said += sum(len(segment.split()) for segment in settle(text, " ".join(heard)))
    text.revise(" ".join(words))
    assert text.rest.split() == words[said:]


@st.composite
def _changed(draw: st.DrawFn) -> tuple[list[str], list[str], list[str], list[str]]:
    """Words of a settled text, what follows, and both as a later revision has them: words near the cut are others.

    Fewer than half of the last eight words before the cut have changed, or of all.
    """
    before = [f"b{n}{draw(st.sampled_from(['', '', ',', '.']))}" for n in range(draw(st.integers(3, 90)))]
    before[-1] = before[-1].rstrip(",.") + "."
    behind = [f"a{n}" for n in range(draw(st.integers(1, 40)))]
    near = min(8, len(before))
    heard = list(before)
    changed = draw(st.sets(st.integers(1, near), max_size=(near - 1) // 2))
    # Where the last word is another one, nothing but the words before it tell where it is.
    for at in {1} if 1 in changed else changed:
        match draw(st.sampled_from(["other", "out", "more"])):
            case "other":
                heard[-at] = f"x{at}" + "." * (at == 1)
            case "out":
                heard[-at] = ""
            case "more" if at > 1:
                heard[-at] = f"x{at} {heard[-at]}"
    heard = [draw(st.sampled_from([word, word.upper(), word.replace(",", "")])) for word in heard if word]
    heard[-1] = heard[-1].rstrip(",.") + "."
    return before, behind, heard, [*behind, *(f"c{n}" for n in range(draw(st.integers(0, 30))))]


@given(texts=_changed(), elsewhere=st.booleans())
def test_changes_near_the_cut_lose_and_double_nothing(
    texts: tuple[list[str], list[str], list[str], list[str]], elsewhere: bool
) -> None:
    before, behind, heard, following = texts
    text = OpenText(LONGEST)
    if elsewhere:
        text.revise(" ".join([*heard, *following]))
        text.take_accepted(" ".join(before))
    else:
        text.revise(" ".join([*before, *behind]))
        text.take_segment(" ".join(before) + " ")
        text.revise(" ".join([*heard, *following]))
    assert text.rest.split() == following


@given(said=WORDS, accepted=st.lists(st.sampled_from(["You", "stay", "home."]), min_size=1, max_size=60))
def test_of_something_else_no_word_is_lost(said: list[str], accepted: list[str]) -> None:
    text = OpenText(LONGEST)
    text.revise(" ".join(said))
    text.take_accepted(" ".join(accepted))
    assert text.rest.split() == said


def test_the_work_for_a_segment_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "The customer wants an answer by Monday. "
    ends: list[tuple[str, str]] = []
    real = text_segments._is_end

    def counted(before: str, after: str) -> bool:
        ends.append((before, after))
        return real(before, after)

    monkeypatch.setattr(text_segments, "_is_end", counted)
    text = OpenText(120)
    text.revise(sentence * 1_500)
    assert text.ready("en") == sentence
    assert len(ends) <= 3


def test_sentences_of_a_revision_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = text_segments.sentences

    def counted(text: str, lang: str) -> Iterator[str]:
        looked.append(text)
        return real(text, lang)

    monkeypatch.setattr(open_text, "sentences", counted)
    text = OpenText(120)
    for said in ("Nobody has looked", "Nobody has looked for this before. Or"):
        text.revise(said)
        assert text.ready("en") is None
        assert text.beginning("en")
    assert looked == ["Nobody has looked", "Nobody has looked for this before. Or"]


@pytest.mark.parametrize("change", ["A {}", "{} And", "Nobody {}", "Now. {} And then, much later,"])
def test_what_changes_far_away_costs_little(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    sentence = "The customer wants an answer by Monday. "
    words: list[Any] = []
    real = open_text._words

    def counted(*given: Any) -> list[Any]:
        words.extend(real(*given))
        return real(*given)

    monkeypatch.setattr(open_text, "_words", counted)
    text = OpenText(120)
    settle(text, sentence * 1_500)
    taken = text.taken
    text.revise(change.format(sentence.lower() * 1_500))
    assert len(words) < 1_000
    assert text.rest.lower().count("customer") == 1_500 - taken


@pytest.mark.parametrize(
    ("said", "settled", "left"),
    [
        # A few short answers stay alone, before a sentence too; more of them are one segment.
        ("Yes. No. We go. Then we stay at home", ["Yes.", "No.", "We go."], ["Then we stay at home"]),
        ("a\nb\nc\nd\ne", ["a\nb\nc\nd"], ["e"]),
        ("One. Two. Three. Four. Five. Then we stay", ["One. Two. Three. Four. Five."], ["Then we stay"]),
        ("a\n" * 50, ["\n".join("a" * n) for n in (20, 20, 9)], ["a"]),
    ],
)
def test_very_short_lines_are_settled_together(said: str, settled: list[str], left: list[str]) -> None:
    text = OpenText(39)
    text.revise(said[:-1])
    assert settle(text, said) == settled
    assert [segment.strip() for segment in text.remaining("en")] == left


@given(
    parts=st.lists(st.sampled_from(["a\n", "b. ", "はい。", "We go. ", "Then we stay at home. "]), max_size=200)
)
def test_a_text_has_few_segments(parts: list[str]) -> None:
    text, said = OpenText(120), "".join(parts)
    text.revise(said)
    assert len(text.remaining("en")) <= len(said.encode()) / 8 + 4


def test_the_work_for_a_long_talk_is_small() -> None:
    sentence = "The customer wants an answer by Monday. "
    text = OpenText(120)
    assert len(settle(text, sentence * 400, sentence * 401)) == 400
    # A word far away has changed: what is compared is what is near the cut.
    assert settle(text, f"A {sentence.lower() * 401}The next") == []
    assert text.rest == f"{sentence.lower()}The next"


def test_long_final_is_divided_in_parts() -> None:
    said = "\n " * 4_000 + "The customer wants an answer. " * 2_000 + " " * 5_000 + "word " * 2_000
    text, parts = OpenText(120), []
    text.revise(said)
    while segments := text.remaining("en"):
        assert sum(map(len, segments)) <= 4_000
        for segment in segments:
            text.take_segment(segment)
        parts += segments
    assert "".join(parts).split() == said.split()
    assert all(part.strip() for part in parts)

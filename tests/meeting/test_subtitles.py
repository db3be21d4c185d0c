"""Cues that can be read: nothing is lost, none is long, and the words stay in their time and beside each other."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.log import Utterance
from gateway.meeting.subtitles import readable
from gateway.meeting.transcript import Spoken, Transcript, cues, subrip

LONG = "We need two more people for this project, and the customer wants an answer by Monday, so please write it"
GERMAN = f"{LONG} und noch einmal, weil das Deutsche länger ist als das Englische, wie man hier wieder sieht"
JAPANESE = (
    "このプロジェクトにはあと二人必要で、お客様は月曜日までに返事を欲しがっていますので、"
    "書き留めておいてください。"
)


def spoken(text: str, times: tuple[int, int] | None = None, lang: str = "en", **translations: str) -> Transcript:
    start_ms, end_ms = times or (None, None)
    said = Utterance("u", 1, text, lang, "ana", "Ana", final=True, start_ms=start_ms, end_ms=end_ms)
    return Transcript((Spoken(said, 100_000, translations, {}),))


def texts(made: Transcript, lang: str) -> list[str]:
    return [part.text_in(lang) or "" for part in made.utterances]


def test_what_is_short_stays_whole() -> None:
    short = spoken("We go.", (0, 9_000), de="Wir gehen.")
    assert readable(short) == short


@pytest.mark.parametrize(("lang", "text", "most"), [("en", LONG, 84), ("de", GERMAN, 84), ("ja", JAPANESE, 42)])
def test_a_long_text_is_divided_between_words(lang: str, text: str, most: int) -> None:
    made = readable(spoken(text, (0, 10_000), lang))
    parts = texts(made, lang)
    assert len(parts) > 1
    assert all(0 < len(part) <= most for part in parts)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")


def test_languages_are_divided_into_as_many_parts() -> None:
    made = readable(spoken(LONG, (0, 10_000), de=GERMAN, ja=JAPANESE))
    assert len(made.utterances) == 3
    for lang, text in (("en", LONG), ("de", GERMAN)):
        assert " ".join(texts(made, lang)).split() == text.split()
    assert "".join(texts(made, "ja")) == JAPANESE


def test_the_time_is_divided_with_the_words() -> None:
    spans = [part.position_ms or (0, 0) for part in readable(spoken(LONG, (1_000, 9_000))).utterances]
    assert (spans[0][0], spans[-1][1]) == (1_000, 9_000)
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    assert all(end - start >= 1_000 for start, end in spans)
    slow = [part.position_ms or (0, 0) for part in readable(spoken(LONG, (0, 60_000))).utterances]
    assert all(end - start == 7_000 for start, end in slow)


def test_without_times_its_cues_follow_one_another() -> None:
    shown = cues(readable(spoken(LONG)))
    assert [cue.spoken.utterance.text for cue in shown] == texts(readable(spoken(LONG)), "en")
    assert all(before.end_ms <= after.start_ms for before, after in pairwise(shown))


def test_a_file_has_all_of_it() -> None:
    file = subrip(readable(spoken(LONG, (0, 10_000))))
    assert file.count("-->") == 2
    assert all(len(line) <= len("Ana: ") + 84 for line in file.splitlines())


@given(st.text(max_size=400), st.sampled_from(["en", "ja", "th"]))
def test_nothing_is_lost(text: str, lang: str) -> None:
    parts = texts(readable(spoken(text, None, lang)), lang)
    assert "".join("".join(parts).split()) == "".join(text.split())

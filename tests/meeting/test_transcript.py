"""From a log to a transcript and its cues."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from msgspec.structs import replace

from gateway.domain.engine import Confidence
from gateway.domain.log import Said, segment_id
from gateway.meeting.subtitles import marked, plain_text, readable, subrip, webvtt
from gateway.meeting.transcript import Transcript, cues, transcript
from tests.meeting.transcripts import (
    ANA,
    BEGAN_MS,
    KENJI,
    log,
    meeting,
    meetings,
    said,
    translated,
    untranslated,
)


def spans(made: Transcript) -> list[tuple[int, int, str]]:
    return [(cue.start_ms, cue.end_ms, cue.spoken.utterance.text) for cue in cues(made)]


# ---------------------------------------------------------------- from the log


def test_utterances_come_with_their_outcomes() -> None:
    made = meeting(
        (5, said("Hello.", start_ms=10, end_ms=20)),
        said("こんにちは。", by=KENJI, lang="ja"),
        translated("Hi.", by=KENJI, lang="en"),
        translated("やあ。"),
        untranslated(lang="de"),
    )
    first, second = made.utterances
    assert (first.utterance.text, first.utterance.start_ms, first.at_ms) == ("Hello.", 10, BEGAN_MS + 5)
    assert (first.translations, first.failures) == ({"ja": "やあ。"}, {"de": "engine_failed"})
    assert (second.translations, second.failures) == ({"en": "Hi."}, {})
    assert [first.text_in(lang) for lang in ("en", "ja", "de", "fr")] == ["Hello.", "やあ。", None, None]


def test_translation_replaces_failure_never_the_reverse() -> None:
    (spoken,) = meeting(said("Hello."), untranslated(), translated("やあ。"), untranslated()).utterances
    assert (spoken.translations, spoken.failures) == ({"ja": "やあ。"}, {})


def test_unsure_translations_have_a_sign() -> None:
    doubtful = replace(translated("??"), confidence=Confidence(0.1, unsure=True))
    sure = replace(translated("Hallo.", lang="de"), confidence=Confidence(0.9))
    made = meeting(said("Hello."), doubtful, sure)
    assert made.utterances[0].unsure == {"ja"}
    assert plain_text(marked(made), ["ja", "de", "en"]).splitlines()[1:4] == [
        "  [ja] (?) ??",
        "  [de] Hallo.",
        "  [en] Hello.",
    ]
    assert plain_text(made, ["ja"]) == "[00:00:00] Ana: ??\n"


def test_what_was_trimmed_away_leaves_no_trace() -> None:
    publications = log(translated("?", id="0"), untranslated(id="0"), said("Hello."), first=7)
    (spoken,) = transcript(publications).utterances
    assert (spoken.utterance.text, spoken.translations, spoken.failures) == ("Hello.", {}, {})


def test_nothing_said() -> None:
    made = transcript([])
    assert (made.utterances, cues(made)) == ((), ())
    assert (subrip(made), plain_text(made), webvtt(made)) == ("", "", "WEBVTT\n")


# ---------------------------------------------------------------- when a cue is shown


def test_clocks_that_agree_are_one_recording() -> None:
    made = meeting(
        (2_500, said("one", start_ms=400, end_ms=2_400)),
        (6_400, said("two", by=KENJI, start_ms=2_900, end_ms=4_300)),
        # Arrived late, and tells no more about the clock.
        (60_000, said("three", id="2", start_ms=5_000, end_ms=7_000)),
    )
    assert spans(made) == [(400, 2_400, "one"), (2_900, 4_300, "two"), (5_000, 7_000, "three")]


def test_a_segment_without_times_ends_where_the_next_one_begins() -> None:
    """A recogniser that tells times with its final alone has none while the first segments are settled."""
    made = meeting(
        (3_000, said("one", id="1", start_ms=1_230, end_ms=2_900)),
        (5_000, said("x" * 15, id="2")),
        (5_900, said("x" * 150, id="2~2")),
        (9_000, said("three", id="2~3", start_ms=8_000, end_ms=9_000)),
    )
    assert [span[:2] for span in spans(made)] == [(1_230, 2_900), (2_900, 3_900), (3_900, 8_000), (8_000, 9_000)]
    # Nothing is known of one whose utterance has no times at all.
    made = meeting((3_000, said("one", start_ms=1_230, end_ms=2_900)), (5_000, said("two", id="2")))
    assert spans(made)[0][0] == 0


def segment(text: str, number: int, *, id: str = "2", last: bool = False, **times: Any) -> Said:
    made = said(text, id=segment_id(id, number), **times)
    return replace(made, utterance=replace(made.utterance, part_of=id if number > 1 else "", continues=not last))


def test_segments_that_were_accepted_together_were_said_one_after_the_other() -> None:
    """A recogniser that sends finals alone, and a text that was typed, have all segments at their end."""
    made = meeting(
        (2_000, said("x" * 15, id="1")),
        (60_000, segment("x" * 300, 1)),
        (60_002, segment("x" * 150, 2)),
        (60_004, segment("x" * 75, 3, last=True)),
    )
    assert [start for start, _, _ in spans(made)] == [0, 24_004, 44_004, 54_004]
    assert [line[:10] for line in plain_text(made).splitlines()[1:]] == ["[00:00:24]", "[00:00:44]", "[00:00:54]"]
    # Where they would begin before what the same participant had said, they have the time since.
    made = meeting(
        (45_000, said("x" * 15, id="1")),
        (60_000, segment("x" * 300, 1)),
        (60_000, segment("x" * 150, 2, last=True)),
    )
    assert [start for start, _, _ in spans(made)] == [0, 1_000, 11_000]


def test_the_times_of_the_cues_of_segments_are_those_of_their_lines() -> None:
    made = meeting((60_000, segment("word " * 60, 1)), (60_000, segment("word " * 30, 2, last=True)))
    lines, shown = cues(made), cues(readable(made))
    firsts = [next(cue for cue in shown if cue.spoken.utterance.id == line.spoken.utterance.id) for line in lines]
    assert all(abs(first.start_ms - line.start_ms) <= 1_000 for first, line in zip(firsts, lines, strict=True))
    assert [cue.start_ms for cue in shown] == sorted(cue.start_ms for cue in shown)
    assert [cue.spoken.utterance.id for cue in shown] == sorted(cue.spoken.utterance.id for cue in shown)


def test_a_long_segment_that_was_settled_begins_when_its_words_did() -> None:
    last = segment("x", 2, last=True)
    made = meeting((10_000, said("one", id="1")), (40_000, segment("x" * 300, 1)), (45_000, last))
    assert [start for start, _, _ in spans(made)] == [0, 11_000, 35_934]


def test_disagreeing_clocks_are_mapped_to_arrival() -> None:
    made = meeting(
        (2_500, said("one", start_ms=400, end_ms=2_400)),
        (6_401, said("two", by=KENJI, start_ms=2_900, end_ms=4_300)),
        (9_000, said("three", id="2", start_ms=5_000, end_ms=7_000)),
    )
    # Ana's clock began at 100, Kenji's at 2101; the first cue begins at 500.
    assert spans(made) == [(0, 2_000, "one"), (4_501, 5_901, "two"), (4_600, 6_600, "three")]


def test_an_utterance_without_times_ends_when_it_arrived() -> None:
    made = meeting(
        (10_000, said("x" * 45)),
        (20_000, said("y", by=KENJI, start_ms=1_000, end_ms=3_000)),
        (30_000, said("z" * 1_000, id="2")),
        (40_000, said("one word", id="3", start_ms=5)),
    )
    assert [span[:2] for span in spans(made)] == [
        (0, 3_000),
        (11_000, 13_000),
        (16_000, 23_000),
        (32_000, 33_000),
    ]


def test_many_at_once_keep_their_order() -> None:
    texts = ["short", "x" * 90, "short too", "y" * 60]
    made = meeting(*((0, said(text, id=str(n))) for n, text in enumerate(texts)))
    assert [text for _, _, text in spans(made)] == texts


def test_an_estimate_puts_no_answer_before_its_question() -> None:
    made = meeting(
        (10_000, said("When?", id="1")),
        (11_000, said("x" * 90, by=KENJI, id="1")),
        (11_500, said("Fine.", id="2")),
    )
    # What is long is shown for as long as it takes to read, not for as long as is left until it arrived.
    assert spans(made) == [(0, 1_000, "When?"), (0, 6_000, "x" * 90), (1_500, 2_500, "Fine.")]


def test_a_given_time_stands_where_it_was_said() -> None:
    """Ana began before Kenji answered, and her words were accepted after his."""
    made = meeting(
        (9_000, said("Yes.", by=KENJI)),
        (9_500, said("one", start_ms=0, end_ms=4_500)),
        (14_500, said("two", id="2", start_ms=5_000, end_ms=9_500)),
        (14_600, said("No.", by=KENJI, id="2")),
    )
    assert [text for _, _, text in spans(made)] == ["one", "Yes.", "two", "No."]


def test_time_of_day_is_no_position() -> None:
    made = meeting((5_000, said("x" * 30, start_ms=BEGAN_MS, end_ms=BEGAN_MS + 5_000)))
    assert spans(made) == [(0, 2_000, "x" * 30)]


def test_speakers_may_talk_at_once_but_nobody_with_themselves() -> None:
    made = meeting(
        (9_000, said("one", start_ms=0, end_ms=5_000)),
        (9_000, said("two", id="2", start_ms=3_000, end_ms=9_000)),
        (9_000, said("between", by=KENJI, start_ms=1_000, end_ms=8_000)),
    )
    assert spans(made) == [(0, 3_000, "one"), (1_000, 8_000, "between"), (3_000, 9_000, "two")]


def test_one_participants_cues_stay_in_order_of_acceptance() -> None:
    made = meeting(
        (9_000, said("first", start_ms=5_000, end_ms=6_000)),
        (9_000, said("second", id="2", start_ms=1_000, end_ms=2_000)),
    )
    assert [text for _, _, text in spans(made)] == ["first", "second"]


@pytest.mark.parametrize(
    ("second", "third"),
    [
        pytest.param((0, 1_500), (2_000, 3_000), id="begins again at 0"),
        pytest.param((18_000_000, 18_001_500), (602_000, 603_000), id="leaps ahead and comes back"),
        pytest.param((None, None), (602_000, 603_000), id="not known"),
    ],
)
def test_other_clocks_move_nothing(second: tuple[int | None, int | None], third: tuple[int, int]) -> None:
    made = meeting(
        (2_500, said("one", start_ms=500, end_ms=2_000)),
        (602_000, said("two", id="2", start_ms=second[0], end_ms=second[1])),
        (603_500, said("three", id="3", start_ms=third[0], end_ms=third[1])),
    )
    (one, first_end, a), (two, second_end, b), (three, third_end, c) = spans(made)
    assert (a, b, c) == ("one", "two", "three")
    assert one == 0
    assert 600_000 <= two + 1_500 <= second_end + 500 <= 603_000
    assert 601_000 <= three <= third_end <= 604_000
    assert all(end - start >= 1_000 for start, end in ((one, first_end), (two, second_end), (three, third_end)))


def test_every_cue_has_its_shortest_time() -> None:
    made = meeting(
        said("one", start_ms=1_000, end_ms=1_000),
        said("two", id="2", start_ms=1_000, end_ms=1_000),
        said("three", id="3", start_ms=1_100, end_ms=1_200),
    )
    assert spans(made) == [(1_000, 2_000, "one"), (2_000, 3_000, "two"), (3_000, 4_000, "three")]


@given(meetings())
def test_cues_are_in_order_and_never_empty(made: Transcript) -> None:
    shown = cues(made)
    assert sorted(cue.spoken.utterance.key for cue in shown) == sorted(u.utterance.key for u in made.utterances)
    assert all(cue.start_ms >= 0 and cue.end_ms >= cue.start_ms + 300 for cue in shown)
    assert all(a.start_ms <= b.start_ms for a, b in pairwise(shown))
    for participant in (ANA, KENJI):
        own = [cue for cue in shown if cue.spoken.utterance.participant == participant]
        assert all(a.end_ms <= b.start_ms for a, b in pairwise(own))


@given(meetings())
@example(
    meeting(
        *((0, said("", by=ANA, id=str(n))) for n in range(4)),
        (0, said("", by=KENJI, id="4")),
        (0, said("", by=ANA, id="5", start_ms=0, end_ms=101)),
    )
)
def test_estimated_cues_keep_the_order_of_acceptance(made: Transcript) -> None:
    accepted = [u.utterance.key for u in made.utterances]
    shown = [cue.spoken for cue in cues(made)]
    for index, (before, after) in enumerate(pairwise(made.utterances)):
        if before.position_ms is None and after.position_ms is None:
            assert shown.index(before) < shown.index(after), (index, accepted)


# ---------------------------------------------------------------- corrections


def correction(text: str, *replaces: str, id: str, by: str = ANA, **times: Any) -> Said:
    made = said(text, by=by, id=id, **times)
    return replace(made, utterance=replace(made.utterance, replaces=replaces))


def test_a_correction_has_the_place_and_the_times_of_what_it_replaces() -> None:
    made = meeting(
        (0, said("On Tuesday.", id="1", start_ms=1_000, end_ms=3_000)),
        (2_000, said("Good.", id="2", by=KENJI, start_ms=4_000, end_ms=5_000)),
        (3_000, translated("火曜日に。", id="1")),
        (9_000, correction("On Thursday.", "1", id="3")),
        (9_500, translated("また火曜日に。", id="1")),
        (9_900, translated("木曜日に。", id="3")),
    )
    assert subrip(made, ["en", "ja"]).split("\n\n")[0] == (
        "1\n00:00:01,000 --> 00:00:03,000\nAna: On Thursday.\n木曜日に。"
    )
    assert "On Tuesday" not in webvtt(made) + plain_text(made)
    assert plain_text(made, ["en"]).splitlines() == ["[00:00:01] Ana: On Thursday.", "[00:00:04] Kenji: Good."]
    corrected = made.utterances[0]
    assert (corrected.at_ms, corrected.offset, corrected.replaces) == (BEGAN_MS, 1, ("1",))
    assert [spans for *spans, _ in spans(made)] == [[1_000, 3_000], [4_000, 5_000]]


def test_a_correction_with_times_has_its_own() -> None:
    made = meeting(said("One.", start_ms=0, end_ms=9), correction("Two.", "1", id="2", start_ms=5, end_ms=8))
    assert made.utterances[0].position_ms == (5, 8)


def test_one_correction_of_several_segments_has_the_time_of_all() -> None:
    made = meeting(
        said("One.", id="1", start_ms=0, end_ms=10),
        said("Two.", id="1~2", start_ms=10, end_ms=20),
        correction("One, two.", "1", "1~2", id="2"),
    )
    assert [(each.utterance.text, each.position_ms) for each in made.utterances] == [("One, two.", (0, 20))]


def test_what_was_taken_back_is_nowhere() -> None:
    made = meeting(
        said("My number.", id="1"),
        said("Well.", id="2"),
        correction(" ", "1", id="3"),
        translated("私の番号。", id="1"),
        correction("Once more.", "1", id="4"),
    )
    assert [each.utterance.text for each in made.utterances] == ["Well.", "Once more."]


def test_nobody_corrects_what_another_said() -> None:
    made = meeting(said("Mine."), correction("Yours.", "1", id="2", by=KENJI))
    assert [each.utterance.text for each in made.utterances] == ["Mine.", "Yours."]

"""From a log to a transcript, its cues and its files; the files are read by other people's parsers."""

from __future__ import annotations

import html
import io
import re
import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from webvtt import Caption, WebVTT

from gateway.domain.engine import Confidence
from gateway.domain.log import LoggedEvent, Publication, Said, Timings, Translated, Untranslated, Utterance
from gateway.meeting.subtitles import marked, plain_text, readable, subrip, webvtt
from gateway.meeting.transcript import Cue, Spoken, Transcript, cues, transcript

BEGAN_MS = 1_767_607_200_000
ANA, KENJI = "a1a1a1a1", "b2b2b2b2"
NAMES = {ANA: "Ana", KENJI: "Kenji"}


def said(
    text: str,
    *,
    by: str = ANA,
    id: str = "1",
    lang: str = "en",
    start_ms: int | None = None,
    end_ms: int | None = None,
    speaker: str | None = None,
) -> Said:
    name = NAMES[by] if speaker is None else speaker
    return Said(Utterance(id, 1, text, lang, by, name, final=True, start_ms=start_ms, end_ms=end_ms))


def translated(text: str, *, by: str = ANA, id: str = "1", lang: str = "ja") -> Translated:
    return Translated(by, id, NAMES[by], lang, 1, text, Timings(0, 1, 2), tokens=3)


def untranslated(*, by: str = ANA, id: str = "1", lang: str = "ja") -> Untranslated:
    return Untranslated(by, id, NAMES[by], lang, 1, "engine_failed", "It failed.")


def log(*events: LoggedEvent | tuple[int, LoggedEvent], first: int = 1) -> list[Publication]:
    """Events, each with its time of arrival in milliseconds where that matters."""
    timed = [event if isinstance(event, tuple) else (0, event) for event in events]
    return [Publication(n, BEGAN_MS + at_ms, event) for n, (at_ms, event) in enumerate(timed, first)]


def meeting(*events: LoggedEvent | tuple[int, LoggedEvent]) -> Transcript:
    return transcript(log(*events))


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


# ---------------------------------------------------------------- files

STANDUP = meeting(
    (2_500, said("Let us move\nthe launch.", start_ms=400, end_ms=2_400)),
    (4_400, said("金曜日なら大丈夫です。", by=KENJI, lang="ja", start_ms=2_900, end_ms=4_300)),
    (4_500, translated("打ち上げを延期しましょう。")),
    (3_665_100, said("Fine & <good>.", id="2", start_ms=3_663_000, end_ms=3_665_000)),
    untranslated(id="2"),
)


def test_subrip() -> None:
    assert subrip(STANDUP) == (
        "1\n00:00:00,400 --> 00:00:02,400\nAna: Let us move the launch.\n\n"
        "2\n00:00:02,900 --> 00:00:04,300\nKenji: 金曜日なら大丈夫です。\n\n"
        "3\n01:01:03,000 --> 01:01:05,000\nAna: Fine & ＜good>.\n"
    )


def test_subrip_side_by_side_leaves_out_what_is_missing() -> None:
    assert subrip(STANDUP, ["ja", "en"]) == (
        "1\n00:00:00,400 --> 00:00:02,400\nAna: 打ち上げを延期しましょう。\nLet us move the launch.\n\n"
        "2\n00:00:02,900 --> 00:00:04,300\nKenji: 金曜日なら大丈夫です。\n\n"
        "3\n01:01:03,000 --> 01:01:05,000\nAna: Fine & ＜good>.\n"
    )
    assert subrip(STANDUP, ["fr"]) == ""
    # Numbered without gap.
    assert re.findall(r"^\d+$", subrip(STANDUP, ["en"]), re.MULTILINE) == ["1", "2"]


def test_webvtt() -> None:
    assert webvtt(STANDUP, ["en"], note="Meeting standup --> en") == (
        "WEBVTT\n\nNOTE Meeting standup → en\n\n"
        "00:00:00.400 --> 00:00:02.400\n<v Ana>Let us move the launch.\n\n"
        "01:01:03.000 --> 01:01:05.000\n<v Ana>Fine &amp; &lt;good&gt;.\n"
    )
    assert webvtt(STANDUP, ["fr"]) == "WEBVTT\n"


def test_plain_text() -> None:
    assert plain_text(STANDUP, ["ja"]) == (
        "[00:00:00] Ana: 打ち上げを延期しましょう。\n"
        "[00:00:02] Kenji: 金曜日なら大丈夫です。\n"
        "[01:01:03] Ana: […]\n"
    )
    assert plain_text(STANDUP, ["ja", "en"]) == (
        "[00:00:00] Ana\n  [ja] 打ち上げを延期しましょう。\n  [en] Let us move the launch.\n\n"
        "[00:00:02] Kenji\n  [ja] 金曜日なら大丈夫です。\n  [en] […]\n\n"
        "[01:01:03] Ana\n  [ja] […]\n  [en] Fine & <good>.\n\n"
    )


def test_a_speaker_without_a_name() -> None:
    made = meeting(said("Hello.", speaker=" \n "), translated("やあ。"))
    assert "\nHello.\n" in subrip(made)
    assert "\nHello.\n" in webvtt(made)
    assert plain_text(made) == "[00:00:00] Hello.\n"
    assert plain_text(made, ["en", "ja"]) == "[00:00:00]\n  [en] Hello.\n  [ja] やあ。\n\n"


def test_a_name_is_no_markup() -> None:
    made = meeting(said("Hello.", speaker="A<b>\n\nna > &amp; --> Co"))
    assert "<v A b  na   &amp;amp; --  Co>Hello." in webvtt(made)
    assert "A＜b> na > ＆amp; → Co: Hello." in subrip(made)
    assert "<v Ana>Hello." in webvtt(meeting(said("Hello.", speaker="Ana --")))


def test_an_empty_translation_is_no_line() -> None:
    made = meeting(said("Hello."), translated(" \n "))
    assert subrip(made, ["ja"]) == ""
    assert plain_text(made, ["ja"]) == "[00:00:00] Ana: […]\n"


def test_a_text_cannot_end_its_cue() -> None:
    attack = (
        "a\r\n\r\n2\n00:00:00,000 --> 00:00:09,000\u2028\n\x0b\n\nNOTE\x85x\n00:00.000 --> 00:09.000\x00 --\u2029>"
    )
    made = meeting(said(attack), translated("00:00:00,000 --> 00:00:09,000"), said("after", id="2"))
    assert len(captions(subrip(made, ["en", "ja"]), "srt")) == 2
    assert len(captions(webvtt(made, ["en", "ja"]), "vtt")) == 2
    assert len(plain_text(made).splitlines()) == 2


# ---------------------------------------------------------------- whatever is said, whenever


def captions(file: str, format: str) -> list[Caption]:
    """What a parser finds in a file; none of it may be malformed."""
    if not file:  # no WebVTT, and a SubRip file without cues
        assert format == "srt"
        return []
    return list(WebVTT.from_buffer(io.StringIO(file), format, strict=format == "vtt").captions)


def times(captions: list[Caption]) -> list[tuple[int, int]]:
    return [(caption.start_time.in_milliseconds(), caption.end_time.in_milliseconds()) for caption in captions]


def visible(text: str) -> str:
    """The text without what its line breaks became, with SubRip's arrow, without width and marks of direction."""
    text = re.sub("[\u200e\u200f\u202a-\u202e]", "", re.sub("-[ -] *>", "→", text))
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", unicodedata.normalize("NFKC", text)).strip()


PIECES = [
    *("\n", "\r\n", "\n\n", "-->", " - -> ", "--", "<b>", "</v>", "&amp;", "&", "1\n", "WEBVTT", "NOTE x"),
    *("🙂", "👩‍👩‍👧", "שלום", "مرحبا", "字幕"),
    *("00:00:01,000 --> 00:00:02,000\n", "00:01.000 --> 00:02.000\n"),
]
TEXTS = st.lists(
    st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.sampled_from(PIECES)), max_size=6
).map("".join)
POSITIONS = st.one_of(st.none(), st.integers(0, 20_000), st.integers(0, 2**63))


@st.composite
def meetings(draw: st.DrawFn) -> Transcript:
    events: list[tuple[int, LoggedEvent]] = []
    at_ms = 0
    for n in range(draw(st.integers(0, 8))):
        at_ms += draw(st.integers(0, 20_000))
        by = draw(st.sampled_from([ANA, KENJI]))
        lang = draw(st.sampled_from(["en", "ja"]))
        times = sorted(draw(st.tuples(POSITIONS, POSITIONS)), key=lambda time: time or 0)
        utterance = said(
            draw(TEXTS),
            by=by,
            id=str(n),
            lang=lang,
            start_ms=times[0],
            end_ms=times[1],
            speaker=draw(st.one_of(st.just(NAMES[by]), TEXTS)),
        )
        events.append((at_ms, utterance))
        if draw(st.booleans()):
            other = "ja" if lang == "en" else "en"
            events.append((at_ms, translated(draw(TEXTS), by=by, id=str(n), lang=other)))
    return meeting(*events)


LANGUAGES = st.sampled_from([[], ["en"], ["ja"], ["en", "ja"], ["ja", "fr", "en"]])


def expected(made: Transcript, languages: list[str]) -> list[tuple[Cue, list[str]]]:
    """The cues that have a line, and their lines, as far as one sees them."""
    found = []
    for cue in cues(made):
        texts = [cue.spoken.text_in(lang) for lang in languages or [cue.spoken.utterance.lang]]
        lines = [seen for text in texts if text is not None and (seen := visible(text))]
        if lines:
            found.append((cue, lines))
    return found


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


@given(meetings(), LANGUAGES)
@example(meeting(said("1\n00:00:01,000 --> 00:00:02,000\nx", speaker="")), [])
@example(meeting(said(">"), translated("-")), ["ja", "en"])
def test_any_subrip_file_is_read_as_it_was_meant(made: Transcript, languages: list[str]) -> None:
    file = subrip(made, languages)
    read, meant = captions(file, "srt"), expected(made, languages)
    assert times(read) == [(cue.start_ms, cue.end_ms) for cue, _ in meant]
    assert [block.split("\n")[0] for block in file.split("\n\n") if block] == [
        str(n + 1) for n in range(len(meant))
    ]
    for caption, (cue, lines) in zip(read, meant, strict=True):
        name = visible(cue.spoken.utterance.speaker)
        if name:
            lines[0] = f"{name}: {lines[0]}"
        # A line each: what ends one and begins the next is no arrow.
        assert visible(caption.raw_text) == " ".join(map(visible, lines))
        assert len(caption.lines) == len(lines)


@given(meetings(), LANGUAGES, TEXTS)
@example(meeting(said("x", speaker="--")), [], "")
@example(meeting(said(">"), translated("-")), ["ja", "en"], "")
def test_any_webvtt_file_is_read_as_it_was_meant(made: Transcript, languages: list[str], note: str) -> None:
    read, meant = captions(webvtt(made, languages, note=note), "vtt"), expected(made, languages)
    assert times(read) == [(cue.start_ms, cue.end_ms) for cue, _ in meant]
    for caption, (cue, lines) in zip(read, meant, strict=True):
        assert visible(html.unescape(caption.text)) == " ".join(map(visible, lines))
        assert len(caption.lines) == len(lines)
        name = visible(re.sub("[<>]", " ", cue.spoken.utterance.speaker)).rstrip("- ")
        assert visible(html.unescape(caption.voice or "")) == name


@given(meetings(), LANGUAGES)
def test_any_plain_text_has_a_line_for_every_text(made: Transcript, languages: list[str]) -> None:
    lines = plain_text(made, languages).splitlines()
    several = len(languages) > 1
    assert len(lines) == len(made.utterances) * (len(languages) + 2 if several else 1)
    heads = lines[:: len(languages) + 2] if several else lines
    assert all(re.match(r"\[\d{2,}:[0-5]\d:[0-5]\d\]", line) for line in heads)


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff"])
def test_half_a_character_is_no_reason_to_fail(text: str) -> None:
    for file in (subrip(meeting(said(text))), webvtt(meeting(said(text))), plain_text(meeting(said(text)))):
        assert file.encode()


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

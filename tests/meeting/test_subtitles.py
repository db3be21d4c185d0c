"""The files of a transcript, read back by parsers that are not ours."""

from __future__ import annotations

import html
import io
import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from webvtt import Caption, WebVTT

from gateway.domain.log import Utterance
from gateway.meeting.subtitles import plain_text, readable, subrip, webvtt
from gateway.meeting.transcript import Cue, Spoken, Transcript, cues
from tests.meeting.transcripts import (
    KENJI,
    TEXTS,
    meeting,
    meetings,
    said,
    translated,
    untranslated,
)

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

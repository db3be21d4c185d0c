"""What other people's readers of SubRip show: the words that were said, nothing less, in their direction."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import imageio_ffmpeg
import pysubs2
import pytest
from ttconv import model
from ttconv.srt import reader
from ttconv.srt.config import SRTReaderConfiguration
from webvtt import WebVTT

from gateway.domain.log import Utterance
from gateway.meeting.subtitles import subrip, webvtt
from tests.meeting.test_subtitles import captions, visible
from tests.meeting.transcripts import ANA, KENJI, meeting, said, translated

# Start and end in milliseconds, what is shown.
Shown = tuple[int, int, str]
Read = Callable[[str], list[Shown]]

ARABIC, HEBREW = "صباح الخير جميعا.", "בוקר טוב לכולם."

# (language, words): what is markup for one reader or another, then the languages, then lengths.
SAID = [
    *(
        ("en", text)
        for text in (
            *(
                "a < b and c > d",
                "x <- y -> z",
                "I <3 it",
                "<>",
                "<1>",
                "<<",
                "-->",
                "a --> b",
                "[b] *x* _y_ /z/ ~#",
            ),
            *("<b>bold</b>", "</i>", "<!-- no -->", "<?x", "<font color=red>red", "<v Ana>who", "<00:01.000>x"),
            *("{\\an8}top", "{b}x{/b}", "{y:i}set", "f({x})", "{1}", "{", "}", "\\{b}", "{\\p1}m 0 0{\\p0}"),
            *("C:\\New\\house", "a\\Nb\\hc", "end\\", "R&D, AT&T & co", "&amp; &lt;b&gt; &copy &#65; &nbsp;x"),
            *("42", "2026", "7\n8", "00:00:01,000 and 00:00:02,000", "0:00:01.5 0:00:02.5"),
            *("1\n00:00:09,000 --> 00:00:10,000", "WEBVTT", "NOTE x", "[b] *x* _y_ /z/", "  two  blanks  ", "a"),
            *("word " * 399 + "last", "x" * 2_000),
        )
    ),
    ("ja", "金曜日なら大丈夫です。<笑>"),
    ("ja", "会議" * 1000),
    ("zh", "会议｛上午｝九点开始。{a}"),
    ("ar", ARABIC),
    ("ar", "افتح <File> ثم Save."),
    ("ar", "نعم " * 500),
    ("he", HEBREW),
    ("he", "Zoom עובד עכשיו (v2)!"),
    ("he", "כ"),
    ("en", f"They say {HEBREW}"),
    ("en", "שלום means hello."),
    ("en", "🙂" * 2_000),
]
TALK = meeting(
    *(
        said(
            text,
            by=ANA if n % 2 else KENJI,
            id=str(n),
            lang=lang,
            start_ms=n * 1_000,
            end_ms=n * 1_000 + 1_900,
            speaker=("", "Ana", "Co<Mike", "<Mike>", "{\\an8}B", "דנה", "Dana & Söhne")[n % 7],
        )
        for n, (lang, text) in enumerate(SAID)
    ),
)
# The last cue of a file has readers of its own kind; this one has two lines, and the second is a number.
SIDE_BY_SIDE = meeting(said("Forty-two", start_ms=0, end_ms=900), translated("42"))


def by_ffmpeg(file: str) -> list[Shown]:
    """As its filter for players has it: braces with what is between them, and breaks, are not shown."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-f", "srt", "-i", "-", "-f", "ass", "-"]
    made = subprocess.run(command, input=file.encode(), capture_output=True, check=True)
    found = []
    for line in made.stdout.decode().splitlines():
        if line.startswith("Dialogue:"):
            _, start, end, *_, text = line.split(",", 9)
            text = re.sub(r"\{[^}]*\}", "", text.replace(r"\N", "\n")).replace(r"\n", "\n").replace(r"\h", " ")
            found.append((_ms(start), _ms(end), text))
    return found


def _ms(time: str) -> int:
    hours, minutes, seconds = time.split(":")
    return round((int(hours) * 3_600 + int(minutes) * 60 + float(seconds)) * 1_000)


def by_pysubs2(file: str) -> list[Shown]:
    return [(event.start, event.end, event.plaintext) for event in pysubs2.SSAFile.from_string(file, "srt")]


def by_ttconv(file: str) -> list[Shown]:
    logging.disable(logging.CRITICAL)  # of what it does not know, it says so
    document = reader.to_model(io.StringIO(file), SRTReaderConfiguration(extended_tags=True, alignment_tags=True))
    logging.disable(logging.NOTSET)
    found = []
    for paragraph in (each for division in document.get_body() for each in division):
        parts = (
            each.get_text() if isinstance(each, model.Text) else "\n" if isinstance(each, model.Br) else ""
            for each in paragraph.dfs_iterator()
        )
        start, end = (round(float(time) * 1_000) for time in (paragraph.get_begin(), paragraph.get_end()))
        found.append((start, end, "".join(parts)))
    return found


def by_webvtt_py(file: str) -> list[Shown]:
    return [
        (caption.start_time.in_milliseconds(), caption.end_time.in_milliseconds(), caption.text)
        for caption in captions(file, "srt")
    ]


def as_webvtt(file: str) -> list[Shown]:
    """As pages do it that hand SubRip to a browser: with other times, and a head."""
    converted = "WEBVTT\n\n" + re.sub(r"(\d\d:\d\d),(\d{3})", r"\1.\2", file)
    return [
        (caption.start_time.in_milliseconds(), caption.end_time.in_milliseconds(), caption.text)
        for caption in WebVTT.from_buffer(io.StringIO(converted), "vtt", strict=True).captions
    ]


READERS = [by_ffmpeg, by_pysubs2, by_ttconv, by_webvtt_py, as_webvtt]


def meant(utterance: Utterance) -> str:
    name = visible(utterance.speaker)
    return spaceless(f"{name}: {utterance.text}" if name else utterance.text)


def spaceless(text: str) -> str:
    """A long line is broken, with a blank or without."""
    return visible(text).replace(" ", "")


@pytest.mark.parametrize("read", READERS)
def test_subrip_shows_what_was_said(read: Read) -> None:
    shown = read(subrip(TALK))
    wanted = [(spoken.utterance.start_ms, meant(spoken.utterance)) for spoken in TALK.utterances]
    assert [(start, spaceless(text)) for start, _, text in shown] == wanted
    # Both speak at once, and every cue has its own end.
    assert [end - start for start, end, _ in shown] == [1_900] * len(SAID)


@pytest.mark.parametrize("read", READERS)
def test_a_last_line_of_digits_is_shown(read: Read) -> None:
    assert [visible(text) for _, _, text in read(subrip(SIDE_BY_SIDE, ["en", "ja"]))] == ["Ana: Forty-two 42"]


def base(text: str) -> str:
    """The direction that a player takes from the first letter."""
    kinds = map(unicodedata.bidirectional, text)
    return next(("rtl" if kind in ("R", "AL") else "ltr" for kind in kinds if kind in ("L", "R", "AL")), "")


@pytest.mark.parametrize(
    ("lang", "text", "speaker", "direction"),
    [
        ("he", HEBREW, "David", "rtl"),
        ("he", HEBREW, "", "rtl"),
        ("ar", ARABIC, "Anna", "rtl"),
        ("ar", "Zoom يعمل", "ليلى", "rtl"),
        ("en", "Good morning.", "דנה", "ltr"),
        ("en", "Good morning.", "Ana", "ltr"),
        ("he", "OK", "Ana", "ltr"),  # not a letter of it
    ],
)
def test_a_line_has_the_direction_of_its_language(lang: str, text: str, speaker: str, direction: str) -> None:
    line = subrip(meeting(said(text, lang=lang, speaker=speaker))).split("\n")[2]
    assert base(line) == direction
    # Players that write all lines from left to right need more than the first letter.
    assert line.endswith("\u202c") == (direction == "rtl") == ("\u202b" in line)
    assert ("\u200e" in line) == (speaker == "דנה" and lang == "en")


def test_each_of_two_lines_has_its_own_direction() -> None:
    made = meeting(said(HEBREW, lang="he", speaker="David"), translated("Good morning.", lang="en"))
    lines = subrip(made, ["he", "en"]).split("\n")[2:4]
    assert lines == [f"\u200f\u202bDavid: {HEBREW}\u202c", "Good morning."]


def test_webvtt_needs_none_of_it() -> None:
    file = webvtt(TALK)
    assert not re.search("[\u200e\u200f\u202a-\u202e＜＆＼]", file)
    read = WebVTT.from_buffer(io.StringIO(file), "vtt", strict=True)
    assert len(read.captions) == len(SAID)
    assert Path(imageio_ffmpeg.get_ffmpeg_exe()).exists()

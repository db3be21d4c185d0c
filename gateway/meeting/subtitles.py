"""The files of a transcript: SubRip, WebVTT and plain text, in cues that can be read.

Without `languages` everything is as it was said. Line ends are those of Unix, and every file ends with one.
Knows: how each format is written, how much text a cue has. Must not know: the log, HTTP.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from itertools import accumulate

from msgspec.structs import replace

from gateway.domain.engine import UNSURE_SIGN
from gateway.domain.languages import is_right_to_left
from gateway.meeting.transcript import CHARS_PER_S, Spoken, Transcript, cues, in_turn
from gateway.text.segments import parts

# Stands in plain text for what is not there (yet).
_MISSING = "[…]"


def marked(transcript: Transcript) -> Transcript:
    """The transcript with a sign before each translation that is unsure."""
    return Transcript(
        tuple(
            replace(
                spoken,
                translations={
                    lang: f"{UNSURE_SIGN}{text}" if lang in spoken.unsure else text
                    for lang, text in spoken.translations.items()
                },
            )
            for spoken in transcript.utterances
        )
    )


def subrip(transcript: Transcript, languages: Sequence[str] = ()) -> str:
    """SubRip (.srt). It has no escapes: what a player takes for markup is written with a wider character."""
    blocks: list[str] = []
    for cue in cues(transcript):
        if lines := _lines(cue.spoken, languages):
            if name := _one_line(cue.spoken.utterance.speaker):
                lines[0] = (lines[0][0], f"{name}: {lines[0][1]}")
            parts = (_directed(part, lang) for lang, line in lines for part in _LONG.findall(line))
            text = _plain("\n".join(parts))
            times = f"{_timestamp(cue.start_ms, ',')} --> {_timestamp(cue.end_ms, ',')}"
            blocks.append(f"{len(blocks) + 1}\n{times}\n{text}\n")
    return "\n".join(blocks)


def webvtt(transcript: Transcript, languages: Sequence[str] = (), *, note: str = "") -> str:
    """WebVTT (.vtt), https://www.w3.org/TR/webvtt1/, with a voice tag where the speaker has a name."""
    blocks = ["WEBVTT\n"]
    if comment := _one_line(note):
        # A comment has no escapes; the arrow alone is forbidden in it.
        blocks.append(f"NOTE {comment.replace('-->', '→')}\n")
    for cue in cues(transcript):
        if lines := _lines(cue.spoken, languages):
            # What ends a tag, readers take for its end even where it is escaped; hyphens before it make an arrow.
            name = _one_line(re.sub("[<>]", " ", cue.spoken.utterance.speaker)).rstrip("- ")
            text = _escaped("\n".join(line for _, line in lines))
            voice = f"<v {_escaped(name)}>" if name else ""
            times = f"{_timestamp(cue.start_ms, '.')} --> {_timestamp(cue.end_ms, '.')}"
            blocks.append(f"{times}\n{voice}{text}\n")
    return "\n".join(blocks)


def plain_text(transcript: Transcript, languages: Sequence[str] = ()) -> str:
    """For people. One language: a line each. Several: a line per language below the speaker's name."""
    written = []
    for cue in cues(transcript):
        time = _timestamp(cue.start_ms, ".").partition(".")[0]
        name = _one_line(cue.spoken.utterance.speaker)
        wanted = languages or (cue.spoken.utterance.lang,)
        texts = [(lang, _one_line(cue.spoken.text_in(lang) or "") or _MISSING) for lang in wanted]
        if len(languages) > 1:
            head = f"[{time}] {name}".rstrip()
            written.append("\n".join([head, *(f"  [{lang}] {text}" for lang, text in texts), ""]))
        else:
            ((_, text),) = texts
            written.append(f"[{time}] {name}: {text}" if name else f"[{time}] {text}")
    return "".join(f"{lines}\n" for lines in written)


def _lines(spoken: Spoken, languages: Sequence[str]) -> list[tuple[str, str]]:
    """What a cue shows: each line with its language; without what is not there."""
    wanted = languages or (spoken.utterance.lang,)
    texts = ((lang, spoken.text_in(lang)) for lang in wanted)
    return [(lang, line) for lang, text in texts if text is not None and (line := _one_line(text))]


# What any reader may take for the end of a line, and other control characters, with the space behind them.
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029][\x00-\x20\x7f-\x9f\u2028\u2029]*")
# What fits into a line: ffmpeg breaks one at 4,095 bytes, which may be in the middle of a character.
_LONG = re.compile(r".{1,1000}(?!\S)\s*|.{1,1000}")
# What readers of SubRip take for something else than words → the same for the eye. docs/http.md: who reads what.
_SUBRIP = (
    (re.compile(r"-[ -] *>"), "→"),
    # Tags, override blocks, and breaks such as `\N`: each begins with one of these.
    (re.compile(r"<"), "\N{FULLWIDTH LESS-THAN SIGN}"),
    (re.compile(r"\{"), "\N{FULLWIDTH LEFT CURLY BRACKET}"),
    (re.compile(r"\\"), "\N{FULLWIDTH REVERSE SOLIDUS}"),
    # Two times in one line are those of a cue, even without an arrow.
    (re.compile(r"(\d:\d{1,2}):(?=\d{1,2}[.,]\d)"), "\\1\N{FULLWIDTH COLON}"),
    # A last line of digits is the number of the next cue, even where none follows.
    (re.compile(r"(\n *\d+ *)$"), "\\1\N{LEFT-TO-RIGHT MARK}"),
)
_REFERENCE = re.compile(r"&(?=(#?\w+;?))")


def _one_line(text: str) -> str:
    """The text without line breaks: one would end the line, and two the cue."""
    return _BREAKS.sub(" ", text).strip()


def _plain(text: str) -> str:
    """The text of a SubRip cue without what looks like markup."""
    for pattern, plain in _SUBRIP:
        text = pattern.sub(plain, text)
    return _REFERENCE.sub(_ampersand, text)


def _ampersand(found: re.Match[str]) -> str:
    reference = f"&{found[1]}"
    return "&" if html.unescape(reference) == reference else "\N{FULLWIDTH AMPERSAND}"


def _directed(line: str, lang: str) -> str:
    """The line of a SubRip cue in the direction of its language.

    Some players take the direction from the first letter, which may be that of a name: the mark is for them.
    Others write every line from left to right: the embedding is for them.
    """
    letters = [unicodedata.bidirectional(char) for char in line]
    if not {"R", "AL"}.intersection(letters):
        return line
    if is_right_to_left(lang):
        return f"\N{RIGHT-TO-LEFT MARK}\N{RIGHT-TO-LEFT EMBEDDING}{line}\N{POP DIRECTIONAL FORMATTING}"
    first = next(kind for kind in letters if kind in ("L", "R", "AL"))
    return line if first == "L" else f"\N{LEFT-TO-RIGHT MARK}{line}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _timestamp(time_ms: int, point: str) -> str:
    seconds, milliseconds = divmod(time_ms, 1_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{point}{milliseconds:03}"


# Two lines of subtitles: BBC, Netflix and others allow 37 to 42 characters a line, and half as many wide ones.
_CUE_CHARS = 84
# In a text with more than this share of wide characters, each character counts twice.
_WIDE = 0.5
# A cue stays no longer, however slowly its words were said.
_LONGEST_MS = 7_000


def readable(transcript: Transcript) -> Transcript:
    """The transcript with an utterance for each cue; each has its share of the words in every language."""
    return Transcript(tuple(part for spoken in in_turn(transcript).utterances for part in _parts(spoken)))


def _parts(spoken: Spoken) -> list[Spoken]:
    """By the language that needs the most cues; the times in proportion to the characters of what was said."""
    said = spoken.utterance
    texts = {said.lang: said.text, **spoken.translations}
    count = max(len(_divided(text, lang, _CUE_CHARS)) for lang, text in texts.items())
    if count == 1:
        return [spoken]
    divided = {lang: _into(text, lang, count) for lang, text in texts.items()}
    lengths = [max(1, len(text)) for text in divided[said.lang]]
    total, ends = sum(lengths), list(accumulate(lengths))
    cues = []
    for number, (length, end) in enumerate(zip(lengths, ends, strict=True)):
        start_ms, end_ms = said.start_ms, said.end_ms
        if start_ms is not None and end_ms is not None:
            span_ms = end_ms - start_ms
            start_ms, end_ms = start_ms + span_ms * (end - length) // total, start_ms + span_ms * end // total
            end_ms = min(end_ms, start_ms + _LONGEST_MS)
        cues.append(
            replace(
                spoken,
                utterance=replace(said, text=divided[said.lang][number], start_ms=start_ms, end_ms=end_ms),
                # Without times, it ended before the words behind it were said.
                at_ms=spoken.at_ms - round((total - end) * 1_000 / CHARS_PER_S),
                translations={lang: divided[lang][number] for lang in spoken.translations},
            )
        )
    return cues


def _divided(text: str, lang: str, chars: int) -> list[str]:
    """The text in parts of at most so many characters; wide ones count twice."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    longest = max(1, chars // 2 if wide > _WIDE * len(text) else chars)
    return [part.strip() for part in parts(text.strip(), lang, longest)]


def _into(text: str, lang: str, count: int) -> list[str]:
    """The text in so many parts, none much longer than the others; the last may be empty."""
    divided: Sequence[str] = [text]
    for chars in range(_CUE_CHARS, 0, -_CUE_CHARS // 12):
        if len(finer := _divided(text, lang, chars)) > count:
            break
        divided = finer
    return [*divided, *[""] * (count - len(divided))]

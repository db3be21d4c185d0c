"""Divides what was said into cues that can be read: two lines of about 42 characters, or 21 wide ones.

Knows: how much text a cue has, and which part of the time belongs to it.
Must not know: when a cue is shown, how files are written (`gateway.meeting.transcript`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import accumulate

from msgspec.structs import replace

from gateway.meeting.transcript import CHARS_PER_S, Spoken, Transcript
from gateway.text.segments import parts

# Two lines of subtitles: BBC, Netflix and others allow 37 to 42 characters a line, and half as many wide ones.
_CUE_CHARS = 84
# In a text with more than this share of wide characters, each character counts twice.
_WIDE = 0.5
# A cue stays no longer, however slowly its words were said.
_LONGEST_MS = 7_000


def readable(transcript: Transcript) -> Transcript:
    """The transcript with an utterance for each cue; each has its share of the words in every language."""
    return Transcript(tuple(part for spoken in transcript.utterances for part in _parts(spoken)))


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

"""Recognisers that say everything they heard so far, again and again: those around Whisper.

Knows: the form of their states; which line is new, by its time and its text, as lines leave the list at its top,
grow, and are divided otherwise later. Must not know: what becomes of what they heard (`utterances`).

    {"lines": [{"text": "Good morning.", "start": "0:00:00.00", "end": "0:00:01.06", "speaker": 1}, …],
     "buffer_transcription": " Can you"}                                         WhisperLiveKit
    {"segments": [{"text": "Good morning.", "start": "0.0", "end": "1.1", "completed": true}, …]}   WhisperLive
    1060 2640 Can you hear me?                                                   whisper_streaming: what was added
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gateway.client.recognisers.texts import common_beginning, join, plain, without_words, words_of
from gateway.client.recognisers.utterances import NO_TIMES, Form, Said, Times, times_of

# Above this probability of silence, Whisper invents words.
_NO_SPEECH = 0.6
# After such a pause, text that was added is another utterance.
_PAUSE_MS = 2_000


class _Line(Struct, frozen=True):
    text: str
    times: Times
    # Whether it will not grow any more.
    complete: bool
    voice: bool | None

    @property
    def begin_ms(self) -> int:
        return self.times.start_ms or 0

    @property
    def until_ms(self) -> int:
        return self.begin_ms if self.times.end_ms is None else self.times.end_ms


class States(Form):
    """Every line so far, each time. The last one still grows, and the buffers belong to it."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix, believes_repeats=False)
        # The newest line that was complete.
        self._done: _Line | None = None

    def hear(self, state: Mapping[str, Any]) -> list[Said]:
        """One state. `ready_to_stop` of WhisperLiveKit: nothing more comes."""
        if state.get("type") == "ready_to_stop":
            return self.rest()
        items = state.get("lines", state.get("segments"))
        if not isinstance(items, list):
            return []  # a setting
        said = []
        lines = _lines(items)
        new = self._new(lines)
        while new and new[0].complete:
            said += self._utterances.final(new[0].text, new[0].times, new[0].voice)
            self._done = lines[len(lines) - len(new)]
            new = new[1:]
        unsure = plain(f"{state.get('buffer_diarization') or ''} {state.get('buffer_transcription') or ''}")
        voice = state.get("voice")
        if new:
            # With a buffer, it ends later than it says.
            times = Times(new[0].times.start_ms) if unsure else new[0].times
            voice = new[0].voice if voice is None else voice
            return said + self._utterances.partial(join(new[0].text, unsure), times, voice)
        if unsure:
            return said + self._utterances.partial(unsure, voice=voice)
        return said + self._utterances.withdrawn(lines[-1].text if lines else "")

    def restarted(self, begin_ms: int | None = None) -> None:
        self._done = None
        super().restarted(begin_ms)

    def _new(self, lines: list[_Line]) -> list[_Line]:
        """The lines behind those that are done; of one that has grown since, the rest."""
        done = self._done
        if done is None:
            return lines
        if not lines or any(line.times.start_ms is None for line in lines) or done.times.start_ms is None:
            return _behind(lines, done)
        if lines[-1].begin_ms < done.begin_ms:
            if self._utterances.is_repeated(lines[-1].text, lines[-1].times):
                return []  # an older state
            self.restarted()  # its clock has begun again
            return lines
        new = []
        done_words = words_of(done.text)
        for line in lines:
            if line.until_ms <= done.until_ms:
                continue
            words = words_of(line.text)
            repeats = line.begin_ms < done.until_ms and words[: len(done_words)] == done_words
            if line.begin_ms <= done.begin_ms or repeats:
                if rest := without_words(line.text, len(done_words)):
                    new.append(replace(line, text=rest, times=Times(done.until_ms, line.times.end_ms)))
            else:
                new.append(line)
        return new


def _behind(lines: list[_Line], done: _Line) -> list[_Line]:
    """Lines without times behind the one that is done: the same text, else a similar one."""
    done_words = words_of(done.text)
    texts = [words_of(line.text) for line in lines]
    same = [at for at, words in enumerate(texts) if words == done_words]
    similar = [at for at, words in enumerate(texts) if 2 * common_beginning(words, done_words) > len(done_words)]
    return lines[(same or similar or [-1])[-1] + 1 :]


def _lines(items: list[Mapping[str, Any]]) -> list[_Line]:
    """The lines with a text. Each but the last is complete, and the last one if there is silence behind it."""
    lines: list[_Line] = []
    for item in items:
        text = plain(item.get("text"))
        if lines:
            lines[-1] = replace(lines[-1], complete=True)
        if text:
            times = times_of(_seconds(item.get("start")), _seconds(item.get("end")))
            silence = item.get("no_speech_prob")
            voice = item.get("voice")
            if isinstance(silence, int | float) and silence > _NO_SPEECH:
                voice = False
            lines.append(_Line(text, times, item.get("completed") is True, voice))
    return lines


def _seconds(time: object) -> float | None:
    """`0:01:05.50`, `65.5` or a number of seconds."""
    if isinstance(time, int | float):
        return time
    if isinstance(time, str):
        with suppress(ValueError):
            seconds = 0.0
            for part in time.split(":"):
                seconds = seconds * 60 + float(part)
            return seconds
    return None


class Increments(Form):
    """Only what was added, which never changes. An utterance ends with a pause."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self._text = ""
        self._times = NO_TIMES

    def hear(self, begin_ms: int, end_ms: int, text: str) -> list[Said]:
        """A piece of text, and where it is in the audio."""
        said = []
        if self._text and begin_ms - (self._times.end_ms or 0) >= _PAUSE_MS:
            said = self.rest()
        start_ms = self._times.start_ms if self._text else begin_ms
        self._text = join(self._text, plain(text))
        self._times = Times(start_ms, end_ms)
        return said + self._utterances.partial(self._text, self._times)

    def restarted(self, begin_ms: int | None = None) -> None:
        self._text = ""
        super().restarted(begin_ms)

    def rest(self) -> list[Said]:
        self._text = ""
        return super().rest()

"""The utterance that a recogniser hears, and those before it: what is said of them, once and whole.

Knows: texts and times. Must not know: the form of any recogniser's results.
"""

from __future__ import annotations

from collections import deque
from math import floor, isfinite
from typing import Literal, NamedTuple

from msgspec import Struct

from gateway.client.recognisers.texts import join, known_words, plain, words_of

# A text of fewer words is a guess: another text in its place is a better one, not another sentence.
GUESS_WORDS = 3
# A text of so many words that comes twice is never chance. A shorter one is if something else was said in between.
_SENTENCE_WORDS = 4
# How many earlier utterances can be repeated.
_EARLIER = 8


class Said(Struct, frozen=True):
    """What is to be said in a meeting. Times are milliseconds from the beginning of the audio."""

    kind: Literal["partial", "final", "cancel"]
    # The utterance's.
    id: str
    text: str = ""
    start_ms: int | None = None
    end_ms: int | None = None


class Times(NamedTuple):
    """Where it is in the audio."""

    start_ms: int | None = None
    end_ms: int | None = None


NO_TIMES = Times()


def times_of(start_s: object, end_s: object) -> Times:
    """Times given in seconds. Those that cannot be are None: nothing is lost for a time."""
    start_ms, end_ms = _milliseconds(start_s), _milliseconds(end_s)
    if start_ms is not None and end_ms is not None and end_ms < start_ms:
        return NO_TIMES
    return Times(start_ms, end_ms)


def _milliseconds(time_s: object) -> int | None:
    if isinstance(time_s, bool) or not isinstance(time_s, int | float) or not isfinite(time_s) or time_s < 0:
        return None
    return floor(time_s * 1000 + 0.5)


class _Open:
    """The utterance that is being said."""

    def __init__(self, id: str) -> None:
        self.id = id
        # What an earlier run of the recogniser heard of it.
        self.kept = ""
        # The newest text that is not just a small part of the one before it.
        self.whole = ""
        self.has_shrunk = False
        self.times = NO_TIMES
        # Whether a voice was there; None where that is not known.
        self.voice: bool | None = None
        # The newest text that was said.
        self.shown = ""


class Utterances:
    """One utterance after another.

    prefix: what ids begin with. believes_repeats: whether a text that was said before is said again.
    """

    def __init__(self, prefix: str, *, believes_repeats: bool = True) -> None:
        self._prefix = prefix
        self._believes_repeats = believes_repeats
        self._count = 0
        self._open: _Open | None = None
        self._earlier: deque[list[str]] = deque(maxlen=_EARLIER)
        # Where the recogniser's clock began, on ours, and the newest time.
        self._begin_ms = 0
        self._latest_ms = 0

    def partial(self, text: object, times: Times = NO_TIMES, voice: object = None) -> list[Said]:
        """What was heard so far. Empty: nothing is known."""
        heard = plain(text)
        if not heard or self._is_repeated(heard):
            return []
        before = self._before(heard)
        now = self._now()
        _note(now, self._on_our_clock(now, times), voice)
        short = 2 * len(words_of(heard)) <= len(words_of(now.whole))
        now.has_shrunk = short and len(words_of(now.whole)) >= GUESS_WORDS
        if not now.has_shrunk:
            now.whole = heard
        shown = join(now.kept, heard)
        if shown == now.shown or now.voice is False:
            return before
        now.shown = shown
        return [*before, Said("partial", now.id, shown, *now.times)]

    def final(self, text: object, times: Times = NO_TIMES, voice: object = None) -> list[Said]:
        """The last word on it. Empty: nothing was said."""
        heard = plain(text)
        if self._open is None and not heard:
            return []
        before = self._before(heard)
        now = self._now()
        _note(now, self._on_our_clock(now, times), voice)
        return [*before, *self._conclude(now, join(now.kept, heard))]

    def rest(self) -> list[Said]:
        """Nothing more comes: what was heard is the last word."""
        now = self._open
        return [] if now is None else self._conclude(now, join(now.kept, now.whole))

    def withdrawn(self) -> list[Said]:
        """The recogniser shows nothing of it any more. A guess is given up; more stays, as it may come back."""
        now = self._open
        if now is None or now.kept or len(words_of(now.whole)) >= GUESS_WORDS:
            return []
        return self._conclude(now, "")

    def restarted(self, begin_ms: int | None = None) -> None:
        """The recogniser begins again: what comes belongs to the same utterance.

        begin_ms: where its clock begins now; by default at the newest time so far.
        """
        self._begin_ms = self._latest_ms if begin_ms is None else begin_ms
        if (now := self._open) is not None:
            now.kept, now.whole = join(now.kept, now.whole), ""

    def _now(self) -> _Open:
        if self._open is None:
            self._count += 1
            self._open = _Open(f"{self._prefix}{self._count}")
        return self._open

    def _before(self, heard: str) -> list[Said]:
        """The utterance so far, made final, if a text without a final begins another one in its place."""
        now = self._open
        if now is None:
            return []
        whole, words = words_of(now.whole), words_of(heard)
        if len(whole) < GUESS_WORDS or not words:
            return []
        if not now.has_shrunk and 2 * len(words) > len(whole):
            return []
        if 2 * known_words(words, whole) >= len(words):
            return []
        return self._conclude(now, join(now.kept, now.whole))

    def _conclude(self, now: _Open, text: str) -> list[Said]:
        self._open = None
        if not text or now.voice is False or self._is_repeated(text):
            return [Said("cancel", now.id)] if now.shown else []
        self._earlier.append(words_of(text))
        return [Said("final", now.id, text, *now.times)]

    def _is_repeated(self, text: str) -> bool:
        if self._believes_repeats or not self._earlier or (self._open is not None and self._open.kept):
            return False
        words = words_of(text)
        return words == self._earlier[-1] or (len(words) >= _SENTENCE_WORDS and words in self._earlier)

    def _on_our_clock(self, now: _Open, times: Times) -> Times:
        start_ms, end_ms = (None if each is None else each + self._begin_ms for each in times)
        self._latest_ms = max(self._latest_ms, start_ms or 0, end_ms or 0)
        return Times(now.times.start_ms if now.kept else start_ms, end_ms)


def _note(now: _Open, times: Times, voice: object) -> None:
    now.times = times
    if isinstance(voice, bool):
        now.voice = now.voice is True or voice

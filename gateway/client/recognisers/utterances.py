"""The utterance that a recogniser hears, and those before it: what is said of them, once and whole.

Knows: texts and times. Must not know: the form of any recogniser's results.
"""

from __future__ import annotations

from collections import deque
from math import floor, isfinite
from typing import Literal, NamedTuple

from msgspec import Struct

from gateway.client.recognisers.texts import common_beginning, join, known_words, plain, words_of

# A text of fewer words is a guess: another text in its place is a better one, not another sentence.
GUESS_WORDS = 3
# A text of fewer words is not known to be a sentence, which another one could follow without its final.
_SENTENCE_WORDS = 5
# How many earlier utterances can be repeated.
_EARLIER = 8
# So often people say the same without a pause. Whisper does it on and on.
_TWICE = 2
# The longest gap between two texts that is not a pause.
_PAUSE_MS = 100


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


class _Earlier(NamedTuple):
    words: list[str]
    times: Times


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
        self.before_restart = ""
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

    prefix: what ids begin with. believes_repeats: whether what was said before of the same audio is said again.
    """

    def __init__(self, prefix: str, *, believes_repeats: bool = True) -> None:
        self._prefix = prefix
        self._believes_repeats = believes_repeats
        self._count = 0
        self._open: _Open | None = None
        self._earlier: deque[_Earlier] = deque(maxlen=_EARLIER)
        # Where the recogniser's clock began, on ours, and the newest time.
        self._begin_ms = 0
        self._latest_ms = 0

    def partial(self, text: object, times: Times = NO_TIMES, voice: object = None) -> list[Said]:
        """What was heard so far. Empty: nothing is known."""
        heard = plain(text)
        if not heard:
            return []
        if not (self._open and self._open.before_restart) and self.is_repeated(heard, times):
            # What was shown of it is not part of another text.
            if (now := self._open) is not None and _goes_on(now.whole, heard):
                now.whole = heard
            return []
        before = self._before(heard)
        now = self._now()
        _note(now, self._on_our_clock(times), voice)
        short = 2 * len(words_of(heard)) <= len(words_of(now.whole))
        now.has_shrunk = short and len(words_of(now.whole)) >= GUESS_WORDS
        if not now.has_shrunk:
            now.whole = heard
        shown = join(now.before_restart, heard)
        if shown == now.shown or now.voice is False:
            return before
        now.shown = shown
        return [*before, Said("partial", now.id, shown, *now.times)]

    def final(self, text: object, times: Times = NO_TIMES, voice: object = None) -> list[Said]:
        """The last word on it. Empty: nothing was said."""
        heard = plain(text)
        if self._open is None and not heard:
            return []
        # A final is the last word on what was heard, however different, unless that had begun again before.
        before = self._before(heard) if self._open is not None and self._open.has_shrunk else []
        now = self._now()
        _note(now, self._on_our_clock(times), voice)
        return [*before, *self._conclude(now, join(now.before_restart, heard))]

    def rest(self) -> list[Said]:
        """Nothing more comes: what was heard is the last word."""
        now = self._open
        return [] if now is None else self._conclude(now, join(now.before_restart, now.whole))

    def withdrawn(self, done: str = "") -> list[Said]:
        """The recogniser shows nothing of it any more. A guess is given up; more stays, as it may come back.

        done: its newest line, which was said. What was shown of it once more is given up, too.
        """
        now = self._open
        if now is None or now.before_restart:
            return []
        if len(words_of(now.whole)) >= GUESS_WORDS and not _goes_on(now.whole, done):
            return []
        return self._conclude(now, "")

    def restarted(self, begin_ms: int | None = None) -> None:
        """The recogniser begins again: what comes belongs to the same utterance.

        begin_ms: where its clock begins now; by default at the newest time so far.
        """
        self._begin_ms = self._latest_ms if begin_ms is None else begin_ms
        if (now := self._open) is not None:
            now.before_restart, now.whole = join(now.before_restart, now.whole), ""

    def is_repeated(self, text: str, times: Times) -> bool:
        """Whether this is what was said before of the same audio, and not the same said again."""
        return not self._believes_repeats and self._repeats(_Earlier(words_of(text), self._on_our_clock(times)))

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
        if len(whole) < _SENTENCE_WORDS or not words:
            return []
        if not now.has_shrunk and 2 * len(words) > len(whole):
            return []
        if 2 * known_words(words, whole) >= len(words):
            return []
        return self._conclude(now, join(now.before_restart, now.whole))

    def _conclude(self, now: _Open, text: str) -> list[Said]:
        self._open = None
        said = _Earlier(words_of(text), now.times)
        repeats = not (self._believes_repeats or now.before_restart) and self._repeats(said)
        if repeats and (last := self._earlier[-1]).words == said.words:
            self._earlier[-1] = _Earlier(last.words, Times(last.times.start_ms, now.times.end_ms))
        if not text or now.voice is False or repeats:
            return [Said("cancel", now.id)] if now.shown else []
        self._earlier.append(said)
        return [Said("final", now.id, text, *now.times)]

    def _repeats(self, said: _Earlier) -> bool:
        same = [earlier.words == said.words for earlier in self._earlier]
        if not any(same):
            return False
        last = self._earlier[-1]
        if said.times.start_ms is None or last.times.start_ms is None:
            return same[-1]
        if any(is_same and _overlap(earlier, said) for earlier, is_same in zip(self._earlier, same, strict=True)):
            return True
        run = [*list(self._earlier)[-_TWICE:], said]
        return len(run) > _TWICE and all(same[-_TWICE:]) and all(map(_follows, run[1:], run))

    def _on_our_clock(self, times: Times) -> Times:
        start_ms, end_ms = (None if each is None else each + self._begin_ms for each in times)
        self._latest_ms = max(self._latest_ms, start_ms or 0, end_ms or 0)
        return Times(start_ms, end_ms)


def _span(times: Times) -> tuple[int, int] | None:
    if times.start_ms is None:
        return None
    return times.start_ms, times.start_ms if times.end_ms is None else times.end_ms


def _overlap(one: _Earlier, other: _Earlier) -> bool:
    if (first := _span(one.times)) is None or (second := _span(other.times)) is None:
        return False
    return first[0] == second[0] or (first[0] < second[1] and second[0] < first[1])


def _follows(one: _Earlier, before: _Earlier) -> bool:
    """Whether there is no pause between them."""
    if (span := _span(one.times)) is None or (earlier := _span(before.times)) is None:
        return False
    return abs(span[0] - earlier[1]) <= _PAUSE_MS


def _goes_on(text: str, more: str) -> bool:
    words = words_of(text)
    return common_beginning(words, words_of(more)) == len(words)


def _note(now: _Open, times: Times, voice: object) -> None:
    now.times = Times(now.times.start_ms if now.before_restart else times.start_ms, times.end_ms)
    if isinstance(voice, bool):
        now.voice = now.voice is True or voice


class Form:
    """What the forms of results have in common."""

    def __init__(self, prefix: str, *, believes_repeats: bool = True) -> None:
        self._utterances = Utterances(prefix, believes_repeats=believes_repeats)

    def restarted(self, begin_ms: int | None = None) -> None:
        """See `Utterances.restarted`."""
        self._utterances.restarted(begin_ms)

    def rest(self) -> list[Said]:
        """See `Utterances.rest`."""
        return self._utterances.rest()

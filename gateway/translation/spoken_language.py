"""Which language each utterance of a session is in, where that is detected while it is being said.

Knows: how sure a detection is, which languages were spoken before. Must not know: detectors, messages, who reads.

The beginning of a sentence says little: of one word, a third is taken for another language. So a detection counts
only where it is certain. Until then, a speaker is taken to go on in the language that they spoke last, of those to
which the detector gives a share; else in the one that is likelier than all others together; else in none.
A certain language gives way only to another certain one, and a guess only to a certain one. What has no share any
more gives way to any. Each time the text has to grow to twice its length, except when it first becomes certain.
So an utterance of n characters changes its language at most 2 + log2(n) times, and mostly never.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct

from gateway.domain.languages import UNDETERMINED

CERTAIN = 0.9
"""The least probability of a language that is certain. Of such, 999 of 1,000 are right, whatever their length."""

# How much likelier a speaker goes on in a language than the detector, which knows only the text, takes it.
_GOES_ON = 5
# The least share, of that of the likeliest language, for which one that was spoken before counts.
_LEAST = 0.02
# Bytes of a text (UTF-8) that says what is spoken from now on. A shorter one does with another like it.
_ENOUGH_BYTES = 16

# Characters that tell the language of a text, at the end of what is being said: a detection takes about 0.2 ms for
# so many. As many more may tell of another language.
DETECTED_CHARS = 400

# Utterances of a session that are remembered: those that are being said, and those that may be sent again.
_MOST_UTTERANCES = 64
_MOST_SPOKEN = 8

# Languages with their probabilities, the likeliest first; none for a text without words.
Ranked = Sequence[tuple[str, float]]


class _Guess(Struct):
    """What one utterance is taken for."""

    lang: str
    # Characters of the text when it was first taken for that, or first certain.
    chars: int
    is_certain: bool = False
    is_final: bool = False


class SpokenLanguages:
    """The languages of one session's utterances."""

    def __init__(self) -> None:
        # Languages that were spoken, the newest first; behind them comes the language that the client tells.
        self._spoken: list[str] = []
        self._told: str | None = None
        # The certain language of the newest final utterance, where it was too short to say what is spoken.
        self._hint: str | None = None
        # The least recently revised first.
        self._guesses: OrderedDict[str, _Guess] = OrderedDict()

    def shown(self, id: str) -> str | None:
        """What an utterance was last taken for."""
        guess = self._guesses.get(id)
        return None if guess is None else guess.lang

    def partial(self, id: str, text: str, ranked: Ranked, languages: Sequence[str]) -> str:
        """The language of an utterance that is being said, or `UNDETERMINED`. languages: in which it may be."""
        best, is_certain = self._best(ranked, languages)
        guess = self._guesses.get(id)
        if guess is None or guess.lang not in languages:
            guess = _Guess(best, len(text), is_certain)
        elif best == guess.lang:
            if is_certain and not guess.is_certain:
                guess.chars, guess.is_certain = len(text), True
        elif (is_certain and not guess.is_certain) or (
            len(text) >= min(2 * guess.chars, guess.chars + DETECTED_CHARS)
            and (is_certain or not _has_share(guess.lang, ranked))
        ):
            guess = _Guess(best, len(text), is_certain)
        self._remember(id, guess)
        return guess.lang

    def final(self, id: str, text: str, ranked: Ranked, languages: Sequence[str]) -> str:
        """The language of a whole utterance, or `UNDETERMINED`; the same if it is sent again."""
        guess = self._guesses.get(id)
        if guess is not None and guess.is_final:
            return guess.lang
        best, is_certain = self._best(ranked, languages)
        is_guess_possible = guess is not None and guess.lang in languages and _has_share(guess.lang, ranked)
        lang = guess.lang if guess is not None and is_guess_possible and not is_certain else best
        if is_certain:
            if len(text.encode("utf-8", "replace")) >= _ENOUGH_BYTES or lang == self._hint or not self._spoken:
                self.spoke(lang)
            self._hint = lang
        self._remember(id, _Guess(lang, len(text), is_certain, is_final=True))
        return lang

    def set_told(self, lang: str) -> None:
        """The client tells what is spoken in this session."""
        self._told = lang

    def spoke(self, lang: str) -> None:
        """A whole utterance was in this language."""
        if lang != UNDETERMINED:
            self._spoken = [lang, *(other for other in self._spoken if other != lang)][:_MOST_SPOKEN]

    def recall(self, id: str, lang: str) -> None:
        """A whole utterance was in this language, as another process has found."""
        self.spoke(lang)
        self._remember(id, _Guess(lang, 0, is_final=True))

    def forget(self, id: str) -> None:
        self._guesses.pop(id, None)

    def _best(self, ranked: Ranked, languages: Sequence[str]) -> tuple[str, bool]:
        """A language, or `UNDETERMINED`, and whether it is certain. languages: at least one."""
        usual = [lang for lang in (*self._spoken, self._told) if lang is not None and lang in languages]
        if len(languages) == 1 or not ranked:
            return (*usual, languages[0])[0], False  # a text without words is the same in every language
        shares = {lang: share for lang, share in ranked if lang in languages and share > 0}
        if not shares:
            return UNDETERMINED, False
        best, most = max(shares.items(), key=lambda each: each[1])
        total = sum(shares.values())
        if self._spoken and best != self._spoken[0]:
            total += (_GOES_ON - 1) * shares.get(self._spoken[0], 0.0)
        if most >= CERTAIN * total:
            return best, True
        for lang in usual:
            if shares.get(lang, 0.0) >= _LEAST * most:
                return lang, False
        return (best if most > total / 2 else UNDETERMINED), False

    def _remember(self, id: str, guess: _Guess) -> None:
        self._guesses[id] = guess
        self._guesses.move_to_end(id)
        if len(self._guesses) > _MOST_UTTERANCES:
            self._guesses.popitem(last=False)


def _has_share(lang: str, ranked: Ranked) -> bool:
    most = max((share for _, share in ranked), default=0.0)
    return not ranked or dict(ranked).get(lang, 0.0) >= max(_LEAST * most, 1e-9)

"""Which language each utterance of a session is in, where that is detected while it is being said.

Knows: how sure a detection is, which language was spoken last. Must not know: detectors, messages, who reads.

The beginning of a sentence says little: of one word, a third is taken for another language. So a detection counts
only where it is certain. Until then, a speaker is taken to go on in the language of the last utterance. A language
that was certain once gives way only to another certain one, and only when the text has grown to twice its length
since. So an utterance of n characters changes its language at most 1 + log2(n) times, and mostly never.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct

CERTAIN = 0.9
"""The least probability of a language that is certain. Of such, 999 of 1,000 are right, whatever their length."""

# Utterances of a session that are remembered: those that are being said, and those that may be sent again.
_MOST_UTTERANCES = 64

# Languages with their probabilities, the likeliest first; none for a text without words.
Ranked = Sequence[tuple[str, float]]


class _Guess(Struct):
    """What one utterance is taken for."""

    lang: str
    # Characters of the text of which it was certain; 0: it never was.
    certain_chars: int = 0
    is_final: bool = False


class SpokenLanguages:
    """The languages of one session's utterances."""

    def __init__(self) -> None:
        # The language of the newest final utterance whose language was certain.
        self._last: str | None = None
        # The least recently revised first.
        self._guesses: OrderedDict[str, _Guess] = OrderedDict()

    def shown(self, id: str) -> str | None:
        """What an utterance was last taken for."""
        guess = self._guesses.get(id)
        return None if guess is None else guess.lang

    def partial(self, id: str, text: str, ranked: Ranked, languages: Sequence[str]) -> str:
        """The language of an utterance that is being said. languages: in which it may be; at least one."""
        best, is_certain = self._best(ranked, languages)
        guess = self._guesses.get(id)
        if guess is None or guess.lang not in languages:
            guess = _Guess(best if is_certain else self._usual(best, languages), len(text) * is_certain)
        elif is_certain and (best == guess.lang or len(text) >= 2 * guess.certain_chars):
            if best != guess.lang or not guess.certain_chars:
                guess.certain_chars = len(text)
            guess.lang = best
        self._remember(id, guess)
        return guess.lang

    def final(self, id: str, text: str, ranked: Ranked, languages: Sequence[str]) -> str:
        """The language of a whole utterance; the same if it is sent again."""
        guess = self._guesses.get(id)
        if guess is not None and guess.is_final:
            return guess.lang
        best, is_certain = self._best(ranked, languages)
        lang = best if is_certain else self.partial(id, text, ranked, languages)
        if is_certain:
            self._last = lang
        self._remember(id, _Guess(lang, is_final=True))
        return lang

    def spoke(self, lang: str) -> None:
        """A whole utterance was in this language, as its client says."""
        self._last = lang

    def recall(self, id: str, lang: str) -> None:
        """A whole utterance was in this language, as another process has found."""
        self._last = lang
        self._remember(id, _Guess(lang, is_final=True))

    def forget(self, id: str) -> None:
        """It will not be finished."""
        self._guesses.pop(id, None)

    def _best(self, ranked: Ranked, languages: Sequence[str]) -> tuple[str, bool]:
        among = [(lang, share) for lang, share in ranked if lang in languages]
        total = sum(share for _, share in among)
        if not total:
            return self._usual(languages[0], languages), False
        best, share = among[0]
        return best, share >= CERTAIN * total

    def _usual(self, otherwise: str, languages: Sequence[str]) -> str:
        return self._last if self._last is not None and self._last in languages else otherwise

    def _remember(self, id: str, guess: _Guess) -> None:
        self._guesses[id] = guess
        self._guesses.move_to_end(id)
        if len(self._guesses) > _MOST_UTTERANCES:
            self._guesses.popitem(last=False)

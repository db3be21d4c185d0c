"""What of a translation that is still growing may be shown, and what for good: the commit policy.

Knows: hypotheses of one utterance in one language, where they agree, where a text may be cut.
Must not know: engines, readers, clocks.

Each revision of an utterance is translated, and each translation is a *hypothesis* that begins with the committed
text. LocalAgreement-2 (Liu et al. 2020, "Low-Latency Sequence-to-Sequence Speech Recognition and Translation by
Partial Hypothesis Selection") takes for granted what two successive hypotheses share. Here that is what `live`
readers see as tentative; it is committed once it has survived `SPAN` further units of the source, because most of
what two neighbouring revisions agree on wrongly is a guess that the next word ends.
"""

from __future__ import annotations

from collections import deque

import regex

__all__ = ["MASK", "SPAN", "TOLERANCE", "UNSPACED", "CommitPolicy", "agreed", "units"]

# Languages written without spaces between words; their units are graphemes, those of the others words.
UNSPACED = frozenset({"ja", "zh", "zh-hant", "th", "km", "my"})

# Units of the source that have to be heard between the first and the last of the hypotheses that agree: two words,
# or about as much where a unit is a grapheme. Indexed by whether the language is unspaced.
SPAN = (2, 4)

# Units at the end of a hypothesis that `live` readers do not see while nothing agrees with them (mask-k).
MASK = (4, 16)

# How much less likely than its own choice, in nats, the model may find a token of the committed text before the
# text is dropped. On the bundled model everything between 0.5 and 6 drops the same; at 10 some bad ones stay.
TOLERANCE = 5.0

# Rejections in a row after which the committed text is continued whatever the model thinks of it: the rest of a
# long utterance is worth more than a perfect joint.
_PATIENCE = 8

# Hypotheses kept; many more than a span needs, unless the recogniser sends the same words again and again.
_KEPT = 16

# Digits in groups stay together, also with the spaces that French puts between them.
_NUMBER = r"\p{N}+(?:(?:[.,:'’]|[ \u00a0\u202f](?=\p{N}{3}(?!\p{N})))\p{N}+)*"
_WORD = r"[\p{L}\p{M}\p{N}]+(?:['’\-.][\p{L}\p{M}\p{N}]+)*"
_SPACED = regex.compile(rf"\s*(?:{_NUMBER}(?![\p{{L}}\p{{M}}])|{_WORD}|(?=\S)\X)|\s+")
# Latin words and numbers inside them are units too.
_LATIN = r"[\p{Latin}\p{M}\p{N}]+(?:['’\-.,:][\p{Latin}\p{M}\p{N}]+)*"
_GRAPHEMES = regex.compile(rf"\s*(?:{_LATIN}|(?=\S)\X)|\s+")

# What a text is not cut behind: it belongs to what follows, or may be the beginning of something longer.
_OPEN = regex.compile(r"(?:\p{N}|['’\-‐‑]|[\p{Ps}\p{Pi}¿¡]|\s)\Z")


def units(text: str, lang: str) -> list[str]:
    """The text in pieces that join to it: words with the space before them, or graphemes; numbers stay whole."""
    found: list[str] = (_GRAPHEMES if lang in UNSPACED else _SPACED).findall(text)
    return found


def agreed(one: str, other: str, lang: str) -> str:
    """The longest common beginning that ends with a unit of both."""
    return "".join(_shared(units(one, lang), units(other, lang)))


def _shared(one: list[str], other: list[str]) -> list[str]:
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        length += 1
    return one[:length]


def _settled(pieces: list[str]) -> str:
    """The pieces joined, without those at the end behind which a text is not cut."""
    end = len(pieces)
    while end and _OPEN.search(pieces[end - 1]):
        end -= 1
    return "".join(pieces[:end])


class CommitPolicy:
    """One utterance in one language while it is being said.

    committed: never taken back while the utterance lives. tentative: what `live` readers see behind it.
    draft: the rest of the newest hypothesis: a guess at what the next one will say behind `committed`.
    """

    def __init__(self, source: str, target: str) -> None:
        self.committed = ""
        self.tentative = ""
        self.draft = ""
        self._source, self._target = source, target
        self._span = SPAN[source in UNSPACED]
        self._mask = MASK[target in UNSPACED]
        # Source units heard, and the hypothesis.
        self._hypotheses: deque[tuple[int, list[str]]] = deque(maxlen=_KEPT)
        self._rejections = 0

    @property
    def tolerance(self) -> float | None:
        """With which tolerance the next revision is to be translated."""
        return TOLERANCE if self._rejections < _PATIENCE else None

    def take(self, source: str, hypothesis: str) -> None:
        """The translation of the newest revision, whose text is `source`."""
        if not hypothesis.startswith(self.committed):
            self.reject()
            return
        self._rejections = 0
        heard, pieces = len(units(source, self._source)), units(hypothesis, self._target)
        visible = shared = _shared(pieces, self._hypotheses[-1][1]) if self._hypotheses else []
        lasting: list[str] = []
        for earlier, others in reversed(self._hypotheses):
            shared = _shared(shared, others)
            if earlier <= heard - self._span:
                lasting = shared
                break
        self._hypotheses.append((heard, pieces))
        self._commit(_settled(lasting))
        if len(unmasked := pieces[: -self._mask]) > len(visible):
            visible = unmasked
        self.draft = hypothesis[len(self.committed) :]
        shown = _settled(visible)
        self.tentative = shown[len(self.committed) :] if shown.startswith(self.committed) else ""

    def interrupted(self, hypothesis: str) -> None:
        """A translation that a newer revision ended: its beginning is a guess, and nothing is shown of it."""
        if hypothesis.startswith(self.committed) and len(hypothesis) > len(self.committed + self.draft):
            self.draft = hypothesis[len(self.committed) :]

    def reject(self) -> None:
        """The model would not go on from the committed text: the source was revised. What is shown stays."""
        self._rejections += 1

    def _commit(self, text: str) -> None:
        if len(text) > len(self.committed) and text.startswith(self.committed):
            self.committed = text

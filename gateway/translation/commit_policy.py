"""What of a translation that is still growing may be shown, and what for good: the commit policy.

Knows: hypotheses of one utterance in one language, where they agree, where a text may be cut.
Must not know: engines, readers, clocks.

Each revision of an utterance is translated, and each translation is a *hypothesis* that begins with the committed
text. LocalAgreement-2 (Liu et al. 2020, "Low-Latency Sequence-to-Sequence Speech Recognition and Translation by
Partial Hypothesis Selection") takes for granted what two successive hypotheses share. Here that is what `live`
readers see as tentative; it is committed once it has survived `SPAN` further units of the source, because most of
what two neighbouring revisions agree on wrongly is a guess that the next word ends. A recogniser or a model that
keeps changing its mind agrees on nothing: then what readers have waited for too long is committed all the same.
"""

from __future__ import annotations

from collections import deque

import regex

from gateway.text.units import SPOKEN, Units

# Units of the source that have to be heard between the first and the last of the hypotheses that agree.
SPAN = 2

# Units at the end of a hypothesis that `live` readers do not see while nothing agrees with them (mask-k).
MASK = 4

# How much less likely than its own choice, in nats, the model may find a token of the committed text before it no
# longer goes on from there: at a revision, which then changes nothing, and at the final, which then replaces what
# was shown. By the time of the final a better sentence is worth a jump.
TOLERANCE = 2.0
FINAL_TOLERANCE = 0.5

# Hypotheses kept within one span, which a recogniser that sends single letters would fill.
_KEPT = 40

# What a text is not cut behind: it belongs to what follows, or may be the beginning of something longer.
_OPEN = regex.compile(
    r"(?:\p{N}[.,:/]?|[〇零一二三四五六七八九十百千万萬億亿兆]|['’\-‐‑\u200c\u200d]|[\p{Ps}\p{Pi}¿¡]|\s)\Z"
)
# What of these is attached to the unit before it, which is open too.
_ATTACHED = frozenset("'’-‐‑.,:/")


class Heard:
    """Counts the units of an utterance in which something is said: each revision once for all its translations."""

    def __init__(self) -> None:
        # Language → the units of its newest revision in it; mostly it is one.
        self._units: dict[str, Units] = {}
        self._newest = ("", "")
        self._count = 0

    def count(self, source: str, lang: str) -> int:
        if self._newest != (source, lang):
            if (in_lang := self._units.get(lang)) is None:
                in_lang = self._units[lang] = Units(lang)
            self._count = sum([SPOKEN.search(unit) is not None for unit in in_lang.divide(source)])
            self._newest = (source, lang)
        return self._count


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
    while end and _OPEN.search("".join(pieces[max(0, end - 2) : end])):
        end -= 1
        if end and pieces[end] in _ATTACHED:
            end -= 1
    return "".join(pieces[:end])


class CommitPolicy:
    """One utterance in one language while it is being said.

    committed: never taken back while the utterance lives. tentative: what `live` readers see behind it.
    draft: the rest of the newest hypothesis: a guess at what the next one will say behind `committed`.
    heard: of the utterance; the same for all its languages.
    """

    def __init__(self, source: str, target: str, committed: str = "", heard: Heard | None = None) -> None:
        self.committed = committed
        self.tentative = ""
        self.draft = ""
        self._source, self._heard, self._units = source, heard or Heard(), Units(target)
        # Source units heard, and the hypothesis.
        self._hypotheses: deque[tuple[int, list[str]]] = deque(maxlen=_KEPT)

    @property
    def shown(self) -> str:
        """What `live` readers see."""
        return self.committed + self.tentative

    def take_hypothesis(self, source: str, hypothesis: str) -> None:
        """The translation of the newest revision, whose text is `source`.

        One that does not go on from the committed text changes nothing: the source was revised behind it, and what
        is shown stays until the recogniser comes back to it, or the final replaces it.
        """
        if not hypothesis.startswith(self.committed):
            return
        heard = self._heard.count(source, self._source)
        pieces = self._units.divide(hypothesis)
        before = self._hypotheses[-1][1] if self._hypotheses else []
        shown, visible = self.shown, _shared(pieces, before)
        shared = visible
        lasting: list[str] = []
        for earlier, others in reversed(self._hypotheses):
            shared = _shared(shared, others)
            if earlier <= heard - SPAN:
                lasting = shared
                break
        while len(self._hypotheses) > 1 and self._hypotheses[1][0] <= heard - SPAN:
            self._hypotheses.popleft()
        self._hypotheses.append((heard, pieces))
        self.committed = max(self.committed, _settled(lasting), key=len)
        self.draft = hypothesis[len(self.committed) :]
        text, early = _settled(visible), _settled(pieces[:-MASK])
        if len(early) > len(text) and early.startswith(shown):
            text = early
        # A single hypothesis that says something else is mostly a misheard word: it takes two to take text back.
        if len(shown) > len(text) and any(said.startswith(shown) for said in ("".join(before), hypothesis)):
            text = max(shown, self.committed, key=len)
        self.tentative = text[len(self.committed) :]

    def commit_overdue(self) -> bool:
        """Readers have waited too long: commit what `live` readers see, else what the newest hypothesis says.

        The last `MASK` units of that only where nothing is before them. False: there is nothing to commit.
        """
        pieces = self._hypotheses[-1][1] if self._hypotheses else []
        for text in (self.shown, _settled(pieces[:-MASK]), _settled(pieces)):
            # The newest may begin otherwise, where what was shown was committed in spite of it.
            if len(text) > len(self.committed) and text.startswith(self.committed):
                self.committed, self.tentative = text, ""
                newest = "".join(pieces)
                self.draft = newest[len(text) :] if newest.startswith(text) else ""
                return True
        return False

    def show_overdue(self) -> bool:
        """`live` readers have waited too long for other words: they see what the newest hypothesis says.

        What goes on from the words that they see comes first. False: there is nothing else to see.
        """
        pieces = self._hypotheses[-1][1] if self._hypotheses else []
        texts = _settled(pieces[:-MASK]), _settled(pieces)
        for least in (self.shown, self.committed):
            for text in texts:
                if text.startswith(least) and len(text) > len(least) and not self.shown.startswith(text):
                    self.tentative = text[len(self.committed) :]
                    return True
        return False

    def interrupted(self, hypothesis: str) -> None:
        """A translation that a newer revision ended: its beginning is a guess, and nothing is shown of it."""
        if hypothesis.startswith(self.committed) and len(hypothesis) > len(self.committed + self.draft):
            self.draft = hypothesis[len(self.committed) :]

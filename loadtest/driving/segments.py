"""A line of several sentences comes from a gateway in segments, each of which is an utterance to readers: how many
there are, and what they are together.

Knows: ids of segments, what a speaker is told of an utterance. Must not know: sockets, clocks, records.
"""

from __future__ import annotations

from gateway.domain.log import segment_number, whole_id
from loadtest.results import joined


class Segments:
    """How many segments utterances have: what is accepted last is at the offset that the speaker is told."""

    def __init__(self) -> None:
        # Utterance → its number of segments, once it is known.
        self.many: dict[str, int] = {}
        # Utterance → the offset with which it was accepted, or the segments by their offsets, until then.
        self._accepted: dict[str, int] = {}
        self._captions: dict[str, dict[int, int]] = {}

    def accepted(self, id: str, offset: int) -> bool:
        """All of it is accepted. Returns whether it is known now how many segments there are."""
        self._accepted[id] = offset
        return self._count(id)

    def caption(self, utterance: str, offset: int) -> bool:
        """The caption of a segment, or of all, has come that is in the log. Returns as `accepted` does."""
        id = whole_id(utterance)
        if id in self.many:
            return False
        self._captions.setdefault(id, {})[offset] = segment_number(utterance)
        return self._count(id)

    def forget(self, id: str) -> None:
        """Drop what is known of an utterance."""
        for known in (self.many, self._accepted, self._captions):
            known.pop(id, None)

    def _count(self, id: str) -> bool:
        number = self._captions.get(id, {}).get(self._accepted.get(id, -1))
        if number is None:
            return False
        self.many[id] = number
        del self._captions[id], self._accepted[id]
        return True


class Translations:
    """Translations of one line into one language: those of the segments that have come."""

    __slots__ = ("_texts", "tokens")

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self.tokens = 0

    def add(self, utterance: str, text: str, tokens: int) -> None:
        """One has come."""
        self._texts[segment_number(utterance)] = text
        self.tokens += tokens

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, lang: str) -> str:
        """All that has come, in order."""
        return joined([self._texts[number] for number in sorted(self._texts)], lang)

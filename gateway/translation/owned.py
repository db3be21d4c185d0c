"""What this gateway has promised and is to conclude.

Knows: utterances and languages, by meeting. Must not know: whether anything of it runs, the log, the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gateway.domain.log import Utterance
from gateway.meeting.room import Room


class Owned:
    """Every promise that has no outcome yet."""

    def __init__(self) -> None:
        # (offset of the `Said`, language) → utterance.
        self._promises: dict[Room, dict[tuple[int, str], Utterance]] = {}

    def __contains__(self, room: Room) -> bool:
        return room in self._promises

    def __iter__(self) -> Iterator[Room]:
        """The meetings in which something is owned."""
        return iter(tuple(self._promises))

    def add(self, room: Room, utterance: Utterance, said: int, languages: Iterable[str]) -> None:
        for lang in languages:
            self._promises.setdefault(room, {})[said, lang] = utterance

    def remove(self, room: Room, said: int, lang: str) -> None:
        """It has its outcome, or is left to others."""
        if (promises := self._promises.get(room)) is not None:
            promises.pop((said, lang), None)
            if not promises:
                del self._promises[room]

    def where(
        self, room: Room, missing: Callable[[Utterance, str], bool]
    ) -> list[tuple[Utterance, int, list[str]]]:
        """Utterance, offset of its `Said` and missing languages, in the order in which it was said."""
        found: dict[int, tuple[Utterance, int, list[str]]] = {}
        for (said, lang), utterance in self._promises.get(room, {}).items():
            if missing(utterance, lang):
                found.setdefault(said, (utterance, said, []))[2].append(lang)
        return [found[said] for said in sorted(found)]

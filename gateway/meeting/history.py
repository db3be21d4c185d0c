"""The newest utterances of a meeting and what became of them, as the log tells it.

Knows: which translations were promised and which have an outcome. Must not know: who reads them, where the log is.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from gateway.domain.log import Publication, Said, Translated, Untranslated, Utterance

__all__ = ["Recent", "RecentUtterances"]

_Key = tuple[str, str]


@dataclass(eq=False)
class Recent:
    """An utterance of late.

    said: its offset. languages: those it was accepted for. ended: the languages in which it has an outcome →
    whether that is a translation.
    """

    utterance: Utterance
    said: int
    languages: set[str] = field(default_factory=set)
    ended: dict[str, bool] = field(default_factory=dict)

    def missing(self) -> list[str]:
        """The languages that were promised and have no outcome."""
        return sorted(self.languages - self.ended.keys())

    def note(self, outcome: Translated | Untranslated) -> None:
        """A translation that follows a failure counts."""
        done = isinstance(outcome, Translated)
        self.ended[outcome.lang] = done or self.ended.get(outcome.lang, False)


class RecentUtterances:
    """The newest `keep`, and those that are not finished, which are as few as may be in flight."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._by_key: OrderedDict[_Key, Recent] = OrderedDict()

    def note(self, publication: Publication) -> None:
        """The next entry of the log; one that was noted before changes nothing."""
        match publication.event:
            case Said(utterance=utterance, languages=languages):
                if utterance.key not in self._by_key:
                    self._by_key[utterance.key] = Recent(utterance, publication.offset, set(languages))
                self._forget(but=utterance.key)
            case Translated() | Untranslated() as outcome:
                if (recent := self._by_key.get((outcome.participant, outcome.utterance))) is not None:
                    recent.note(outcome)

    def get(self, key: _Key) -> Recent | None:
        return self._by_key.get(key)

    def newest(self) -> list[Recent]:
        """At most `keep`, oldest first."""
        recent = list(self._by_key.values())
        return recent[max(0, len(recent) - self._keep) :]

    def unfinished(self) -> dict[_Key, Recent]:
        """Those of which a promised translation has no outcome."""
        return {key: recent for key, recent in self._by_key.items() if recent.missing()}

    def trim(self, first: int) -> None:
        """The log holds nothing before the offset `first` any more."""
        while self._by_key and (oldest := next(iter(self._by_key.values()))).said < first:
            del self._by_key[oldest.utterance.key]

    def _forget(self, but: _Key) -> None:
        """What is older than the newest `keep`, and finished; never a newer one in place of an older one."""
        for key in list(self._by_key)[: max(0, len(self._by_key) - self._keep)]:
            if key != but and not self._by_key[key].missing():
                del self._by_key[key]

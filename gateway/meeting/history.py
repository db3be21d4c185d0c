"""The newest utterances of a meeting and what became of them, as the log tells it.

Knows: which translations were promised and which have an outcome. Must not know: who reads them, where the log is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile

from gateway.domain.log import (
    Publication,
    Recent,
    Said,
    Translated,
    Untranslated,
    Utterance,
    UtteranceKey,
    segment_number,
)

# For each utterance that latecomers are shown, so many are held, with those that were replaced or take something
# back: a client that corrects without end does not fill the memory, nor make latecomers read without end.
HELD_FOR_EACH = 4


@dataclass(eq=False)
class Record:
    """An accepted utterance and its outcomes."""

    utterance: Utterance
    # Offset of its `Said`.
    said: int
    # Those it was ever to be translated into.
    languages: set[str] = field(default_factory=set)
    # Language with an outcome → whether that is a translation.
    outcomes: dict[str, bool] = field(default_factory=dict)

    # Language → offset of its newest outcome.
    ended: dict[str, int] = field(default_factory=dict)

    # Outcomes up to this offset are noted, and what was promised again since.
    noted: int = 0

    # The key of the utterance that stands in its place; None: it is not corrected or taken back.
    replaced_by: UtteranceKey | None = None

    # Those it was last promised in: all of them, or those that a client asked for again.
    promised: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.promised = set(self.languages)

    @property
    def stands(self) -> bool:
        """Whether a latecomer is shown it."""
        return self.replaced_by is None and not self.utterance.is_taking_back

    @property
    def failed(self) -> bool:
        """Whether a promised translation of it failed."""
        return any(self.outcomes.get(lang) is False for lang in self.promised)

    def missing(self) -> list[str]:
        """The languages that were promised and have no outcome."""
        return sorted(self.languages - self.outcomes.keys())

    def note(self, outcome: Translated | Untranslated, offset: int) -> None:
        """A translation that follows a failure counts."""
        self.ended[outcome.lang] = offset
        done = isinstance(outcome, Translated)
        self.outcomes[outcome.lang] = done or self.outcomes.get(outcome.lang, False)


class History:
    """The newest `keep` utterances that stand, what was replaced or taken back since, and what is not finished.

    The last are as few as may be in flight.
    """

    def __init__(self, keep: int) -> None:
        # How many of the newest utterances that stand.
        self.keep = keep
        self._records: OrderedDict[UtteranceKey, Record] = OrderedDict()
        self._unfinished: dict[UtteranceKey, Record] = {}
        # Those that are being accepted, and are neither among the newest nor unfinished.
        self._followed: dict[UtteranceKey, Record] = {}
        # Utterances in several segments that are closed, and of which an earlier segment is not finished.
        self._closed: set[UtteranceKey] = set()

    def recall(self, recent: Recent) -> int:
        """What the log tells to begin with. Returns an offset.

        All publications behind it are to be noted after this, also those that were noted before.
        """
        for owed in recent.unfinished:
            key = owed.utterance.key
            if key not in self._unfinished and key not in self._records:
                languages = {*owed.languages, *owed.outcomes}
                record = Record(owed.utterance, owed.said, languages, dict(owed.outcomes), noted=recent.page.last)
                self._unfinished[key] = record
        for publication in recent.page.publications:
            self.note(publication)
        return recent.page.publications[-1].offset if recent.page.publications else recent.page.last

    def note(self, publication: Publication) -> Record | None:
        """The next entry of the log. The utterance that is finished with it, if one is: each is told of once.

        An entry that was noted before changes nothing.
        """
        match publication.event:
            case Said(utterance=utterance, languages=languages):
                if utterance.key in self._records:
                    return None
                record = self._add(Record(utterance, publication.offset, set(languages)))
                for replaced in self.replaced(utterance):
                    replaced.replaced_by = utterance.key
                self._drop_older(utterance.key)
                return None if record.missing() else self._finished(record)
            case Translated() | Untranslated() as outcome:
                return self.end(outcome, publication.offset)

    def end(self, outcome: Translated | Untranslated, offset: int = 0) -> Record | None:
        """A translation ended. The utterance, if it is finished with that. offset: 0 if the log has no outcome."""
        record = self.get((outcome.participant, outcome.utterance))
        if record is None or 0 < offset <= record.noted:
            return None
        record.note(outcome, offset)
        return None if record.missing() else self._finished(self._unfinished.pop(record.utterance.key, None))

    def _finished(self, record: Record | None) -> Record | None:
        if record is not None and not self.keep:
            self._records.pop(record.utterance.key, None)
        return record

    def promise(self, record: Record, languages: Iterable[str]) -> None:
        """An utterance that was accepted before is translated into these languages, perhaps once more."""
        if not record.missing():
            record.promised.clear()
        for lang in languages:
            record.languages.add(lang)
            record.promised.add(lang)
            record.outcomes.pop(lang, None)
        if record.missing():
            self._unfinished[record.utterance.key] = record

    def ends_whole(self, record: Record) -> bool:
        """Whether with this record, which is finished, all that its client calls one utterance is finished."""
        whole = record.utterance.whole
        return (not record.utterance.continues or whole in self._closed) and self.close(whole)

    def close(self, whole: UtteranceKey) -> bool:
        """No further segment of an utterance follows. Returns whether all of it is finished."""
        if self.unfinished_segments(whole):
            self._closed.add(whole)
            return False
        self._closed.discard(whole)
        return True

    def unfinished_segments(self, whole: UtteranceKey) -> list[UtteranceKey]:
        """Those of one utterance that are not finished, by their keys; it may be known by its sender."""
        unfinished = [(key, record.utterance) for key, record in self._unfinished.items()]
        return [key for key, each in unfinished if whole in (each.whole, (each.sender, each.id))]

    def unfinished_by(self, participant: str) -> int:
        """How much of what a participant said is not finished."""
        return sum(record.utterance.sent_by == participant for record in self._unfinished.values())

    def segments(self, whole: UtteranceKey) -> list[Utterance]:
        """The newest segments of one utterance without a gap, oldest first, as far as they are held."""
        numbered = {segment_number(record.utterance.id): record.utterance for record in self._segments(whole)}
        newest = max(numbered, default=0)
        found = [numbered[number] for number in takewhile(numbered.__contains__, range(newest, 0, -1))]
        return found[::-1]

    def failed(self, whole: UtteranceKey) -> bool:
        """Whether a promised translation of some segment failed, as far as they are held."""
        return any(record.failed for record in self._segments(whole))

    def _segments(self, whole: UtteranceKey) -> Iterator[Record]:
        """What is held of the segments of one utterance, in no order; some of them twice."""
        for records in (self._records, self._unfinished, self._followed):
            yield from (record for record in records.values() if record.utterance.whole == whole)

    def get(self, key: UtteranceKey) -> Record | None:
        return self._unfinished.get(key) or self._records.get(key) or self._followed.get(key)

    @contextmanager
    def following(self, utterance: Utterance) -> Iterator[Callable[[], Record]]:
        """While it is being accepted, its outcomes are noted, however old it is. Yields what finds its record."""
        key = utterance.key
        followed = self._followed.setdefault(key, Record(utterance, 0))
        try:
            yield lambda: self.get(key) or followed
        finally:
            self._followed.pop(key, None)

    def replaced(self, utterance: Utterance) -> list[Record]:
        """What stands, as far as it is held, where this utterance is to stand."""
        found = []
        for id in utterance.replaces:
            key = (utterance.participant, id)
            record = self.get(key) or self._correction_of(key, utterance)
            while record is not None and record.replaced_by is not None and record.replaced_by != utterance.key:
                record = self.get(record.replaced_by)
            # Where something was taken back nothing stands: what corrects it then is a new line.
            if record is not None and not record.utterance.is_taking_back and record not in found:
                found.append(record)
        return found

    def was_taken_back(self, key: UtteranceKey) -> bool:
        """Whether nothing stands where this utterance stood, as far as that is held."""
        record = self.get(key)
        while record is not None and record.replaced_by is not None:
            record = self.get(record.replaced_by)
        return record is not None and record.utterance.is_taking_back

    def _correction_of(self, key: UtteranceKey, by: Utterance) -> Record | None:
        """What stands in place of an utterance that is not held any more, before `by` does."""
        for record in self._records.values():
            replaced = [(record.utterance.participant, id) for id in record.utterance.replaces]
            is_newest = record.replaced_by in (None, by.key) and record.utterance.key != by.key
            if key in replaced and is_newest:
                return record
        return None

    def is_replaced(self, publication: Publication) -> bool:
        """Whether it has words that were corrected or taken back since, as far as that is held."""
        match publication.event:
            case Said(utterance=utterance):
                record = self.get(utterance.key)
            case Translated() as done:
                record = self.get((done.participant, done.utterance))
            case _:
                return False
        return record is not None and record.replaced_by is not None

    def newest(self) -> list[Record]:
        """At most `keep` that stand, oldest first."""
        records = [record for record in self._records.values() if record.stands]
        return records[max(0, len(records) - self.keep) :]

    def begins(self) -> int | None:
        """Offset where a latecomer begins: of the oldest that is shown, or of what that replaces, if held."""
        oldest = next((record.said for record in self._records.values()), 0)
        places = ((record.utterance.place, record.said) for record in self.newest())
        return min((place if place >= oldest else said for place, said in places), default=None)

    def said_by(self, participant: str) -> list[Record]:
        """What a participant said of all that is held here, oldest first."""
        held = {**self._records, **self._unfinished}
        own = [record for record in held.values() if record.utterance.sent_by == participant]
        return sorted(own, key=lambda record: record.said)

    def trim(self, first: int) -> None:
        """The log holds nothing before the offset `first` any more. What is not finished is still waited for."""
        while self._records and (oldest := next(iter(self._records.values()))).said < first:
            del self._records[oldest.utterance.key]

    def clear(self) -> None:
        for records in (self._records, self._unfinished, self._followed):
            records.clear()
        self._closed.clear()

    def _add(self, record: Record) -> Record:
        key = record.utterance.key
        newest = next(reversed(self._records.values()), record)
        self._records[key] = record
        if record.said < newest.said:
            # What is delivered while a room opens is noted before what is older.
            self._records = OrderedDict(sorted(self._records.items(), key=lambda each: each[1].said))
        if record.languages:
            self._unfinished[key] = record
        return record

    def _drop_older(self, added: UtteranceKey) -> None:
        """What is older than the newest `keep` and finished goes; never a newer one in place of an older one."""
        if len(self._records) <= self.keep:
            return
        standing = 0
        for held, record in enumerate(reversed(list(self._records.values()))):
            key = record.utterance.key
            is_old = standing >= self.keep or held >= HELD_FOR_EACH * self.keep
            if is_old and key != added and key not in self._unfinished:
                del self._records[key]
            standing += record.stands

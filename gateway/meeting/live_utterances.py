"""What is being said in one meeting: utterances that are not final, and what was shown of their translations.

Knows: which of them are open, what readers have seen of each. Must not know: how they are translated, who reads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway import metrics
from gateway.domain.log import Utterance
from gateway.meeting.payload import Payload
from gateway.protocol.messages import Caption, TranslationDelta
from gateway.translation.commit_policy import CommitPolicy
from gateway.translation.scheduler import Ticket

__all__ = ["LiveTranslation", "LiveUtterance", "LiveUtterances"]

_Key = tuple[str, str]

# Open utterances of one participant: a recogniser has one, rarely two. One more ends the live translation of the
# one that was revised least recently, which may have been forgotten by its client.
_OPEN = 3

# Utterances of one participant whose live translation has ended and that may still be revised: taken up again,
# they would be shown from their beginning to readers who have a part of them.
_CLOSED = 100


@dataclass(eq=False)
class LiveTranslation:
    """One unfinished utterance in one language.

    revision: the newest; translated: the text whose translation readers see. pending: whether the newest is
    still to be translated; begun_s: when the last was begun, by the monotonic clock. ticket: of the generation in
    flight, whose revision is `running`. committed, tentative: what readers were shown. stopped: nothing happens to
    it until another revision comes. superseded: the last generation was ended by a newer revision. broken: the
    engine died of it or with it, and it is left to the final.
    """

    lang: str
    policy: CommitPolicy
    revision: Utterance
    begun_s: float
    translated: str | None = None
    running: Utterance | None = None
    pending: bool = False
    stopped: bool = False
    superseded: bool = False
    broken: bool = False
    committed: str = ""
    tentative: str = ""
    ticket: Ticket | None = None

    def delta(self, *, tentative: bool) -> TranslationDelta | None:
        """All that was shown so far, for somebody who saw nothing of it."""
        shown = self.tentative if tentative else ""
        if not self.committed and not shown:
            return None
        said = self.revision
        return TranslationDelta(said.participant, said.id, self.lang, said.rev, self.committed, shown)

    def stop(self) -> None:
        """Nothing more of it is translated or shown until another revision comes."""
        if self.pending:
            metrics.PARTIALS.labels("superseded", self.lang).inc()
        self.pending, self.stopped = False, True
        if self.ticket is not None:
            self.policy.interrupted(self.ticket.text)
            self.ticket.withdraw()


@dataclass(eq=False)
class LiveUtterance:
    """One utterance that is not final. caption: its newest revision as it is shown."""

    utterance: Utterance
    caption: Payload
    translations: dict[str, LiveTranslation] = field(default_factory=dict)

    def stop(self) -> None:
        for translation in self.translations.values():
            translation.stop()


class LiveUtterances:
    """The open utterances of a meeting, by participant."""

    def __init__(self) -> None:
        self._open: dict[str, OrderedDict[str, LiveUtterance]] = {}
        self._closed: dict[str, OrderedDict[str, LiveUtterance]] = {}

    def __iter__(self) -> Iterator[LiveUtterance]:
        for utterances in self._open.values():
            yield from utterances.values()

    def translations(self, lang: str) -> Iterator[LiveTranslation]:
        """What readers of a language have of utterances that are not final."""
        for utterances in (*self._open.values(), *self._closed.values()):
            for live in utterances.values():
                if (translation := live.translations.get(lang)) is not None:
                    yield translation

    def get(self, key: _Key) -> LiveUtterance | None:
        """An utterance with what was shown of its translations."""
        participant, utterance = key
        for utterances in (self._closed.get(participant), self._open.get(participant)):
            if utterances is not None and utterance in utterances:
                return utterances[utterance]
        return None

    def revise(self, utterance: Utterance) -> LiveUtterance:
        """A revision came."""
        payload = Payload(
            Caption(
                participant=utterance.participant,
                utterance=utterance.id,
                speaker=utterance.speaker,
                lang=utterance.lang,
                rev=utterance.rev,
                text=utterance.text,
                final=False,
            )
        )
        utterances = self._open.setdefault(utterance.participant, OrderedDict())
        if (live := utterances.get(utterance.id)) is None:
            live = utterances[utterance.id] = LiveUtterance(utterance, payload)
        live.utterance, live.caption = utterance, payload
        utterances.move_to_end(utterance.id)
        if len(utterances) > _OPEN:
            self._close(utterances.popitem(last=False)[1])
        return live

    def is_closed(self, key: _Key) -> bool:
        """Whether its live translation has ended before it became final."""
        participant, utterance = key
        return utterance in self._closed.get(participant, ())

    def end(self, key: _Key) -> None:
        """It is final."""
        participant, utterance = key
        if (closed := self._closed.get(participant)) is not None:
            closed.pop(utterance, None)
        if (utterances := self._open.get(participant)) is None:
            return
        if (live := utterances.pop(utterance, None)) is not None:
            live.stop()
        if not utterances:
            del self._open[participant]

    def close_all(self, participant: str) -> None:
        """Who said them is away: what they were about to say nobody knows."""
        for live in self._open.pop(participant, OrderedDict[str, LiveUtterance]()).values():
            self._close(live)

    def forget(self, participant: str) -> None:
        """Who said them has left, and will not come back."""
        for live in self._open.pop(participant, OrderedDict[str, LiveUtterance]()).values():
            live.stop()
        self._closed.pop(participant, None)

    def _close(self, live: LiveUtterance) -> None:
        live.stop()
        participant, utterance = live.utterance.key
        closed = self._closed.setdefault(participant, OrderedDict())
        closed.setdefault(utterance, live)
        if len(closed) > _CLOSED:
            closed.popitem(last=False)

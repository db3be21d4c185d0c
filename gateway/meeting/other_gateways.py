"""The same meeting at other gateways: what is read and said there, and what they are told of what happens here.

Nothing of it is promised. What is lost is asked for again, and what does not fit what was shown is not shown.

Knows: the live channel, which gateways are there. Must not know: how translations are made, sockets.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from gateway.domain.live import Asked, Ended, GrowingFinal, LiveEvent, Partial, Reads, Revised, Unwanted, Withdrawn
from gateway.domain.log import Utterance, UtteranceKey
from gateway.domain.ports import LiveChannel
from gateway.meeting.history import History
from gateway.meeting.live_view import HERE, MOST_OPEN, MOST_SHOWN, LiveTranslation, LiveView
from gateway.meeting.turns import Key

# How often a gateway says that it is there, and after which silence it is taken to be gone.
_PRESENT_S = 3.0
_GONE_S = 10.0
# How often it asks for what it has missed at most.
_ASK_S = 1.0
# How long the answers may take.
_DOUBT_S = 5.0
# Texts of translations that came before the log has delivered what they translate.
_MOST_EARLY = 200


@dataclass(eq=False)
class _Gateway:
    heard_s: float
    languages: frozenset[str] = field(default_factory=frozenset)
    live_languages: frozenset[str] = field(default_factory=frozenset)


class Here(Protocol):
    """The meeting at this gateway."""

    @property
    def offset(self) -> int:
        """The offset of the newest publication that was delivered."""

    def reads(self) -> Reads:
        """What is read here."""

    def cancel(self, key: UtteranceKey) -> None:
        """Stop the translations that are made here of an utterance."""

    def take_turn(self, participant: str, key: Key, job: Callable[[], None], *, most: int) -> object:
        """Tell all members of something, at once or when it is the meeting's turn; see `Turns.do`."""

    def lose_turn(self, participant: str, key: Key) -> bool:
        """Do not do what waits under this key."""


class OtherGateways:
    """One meeting's other gateways. channel: None if there are none."""

    def __init__(
        self,
        meeting: str,
        channel: LiveChannel | None,
        view: LiveView,
        history: History,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._meeting = meeting
        self._channel = channel
        self._view = view
        self._history = history
        self._clock = clock
        # While it listens.
        self._here: Here | None = None
        self._gateways: dict[str, _Gateway] = {}
        # The gateways that fell silent last: they have to be asked, as nothing is told twice.
        self._silent: set[str] = set()
        # What is being said elsewhere, whose end may have been missed → until when it may be told again.
        self._doubtful: dict[UtteranceKey, float] = {}
        self._told_reads: Reads | None = None
        self._told_s = self._asked_s = float("-inf")
        # With the gateway that it came from.
        self._early: list[tuple[str, GrowingFinal]] = []

    @asynccontextmanager
    async def listening(self, here: Here) -> AsyncIterator[None]:
        """Other gateways are heard while the context lasts. Raises `LogUnavailable`."""
        if self._channel is None:
            yield
            return
        self._here = here
        try:
            async with self._channel.listen(self._meeting, self._heard, self._may_have_missed):
                yield
        finally:
            self._here = None
            self._lose(tuple(self._gateways))

    # ------------------------------------------------------------ what is there

    @property
    def languages(self) -> frozenset[str]:
        """What is read at other gateways."""
        return frozenset().union(*[gateway.languages for gateway in self._gateways.values()])

    @property
    def live_languages(self) -> frozenset[str]:
        """Those of them that are read while it is being said."""
        return frozenset().union(*[gateway.live_languages for gateway in self._gateways.values()])

    def sweep(self) -> None:
        """Forget gateways that are silent, and what was missed the end of; called every second."""
        now_s = self._clock()
        if silent := [name for name, gateway in self._gateways.items() if gateway.heard_s < now_s - _GONE_S]:
            for key in self._being_said(silent):
                self._view.withdraw(key)
            self._lose(silent)
            self._silent = set(silent)
        for key in [key for key, until_s in self._doubtful.items() if until_s < now_s]:
            del self._doubtful[key]
            if self._history.get(key) is None:
                self._view.withdraw(key)
        for shown in [shown for shown in self._view.text.finals() if shown.origin != HERE]:
            if not self._is_unfinished(shown.key, shown.lang):
                self._view.text.end_final(shown.key, shown.lang)
        if self._is_heard() and now_s - self._told_s >= _PRESENT_S:
            self._tell_reads()

    # ------------------------------------------------------------ what happens here

    def tell_reads(self) -> None:
        """Other languages may be read here."""
        if self._is_heard() and self._here is not None and self._here.reads() != self._told_reads:
            self._tell_reads()

    def tell_caption(self, utterance: Utterance) -> None:
        if self._is_heard():
            self._send(Revised(replace(utterance, glossary=(), context=(), formality=None)))

    def tell_partial(self, shown: LiveTranslation) -> None:
        if self._is_heard() and shown.lang in self.live_languages:
            self._send(Partial(*shown.key, shown.lang, shown.rev, shown.committed, shown.tentative))

    def tell_final(self, shown: LiveTranslation) -> None:
        """It has grown. What they were not told is sent with it."""
        if self._is_heard() and shown.lang in self.live_languages and shown.said is not None:
            text = shown.committed[shown.told :]
            self._send(GrowingFinal(*shown.key, shown.lang, shown.rev, shown.said, shown.told, text))
            shown.told = len(shown.committed)

    def tell_withdrawn(self, key: UtteranceKey) -> None:
        if self._is_heard():
            self._send(Withdrawn(*key))

    def tell_ended(self, key: UtteranceKey, *, for_good: bool) -> None:
        if self._is_heard():
            self._send(Ended(*key, for_good))

    def tell_cancelled(self, key: UtteranceKey) -> None:
        if self._is_heard():
            self._send(Unwanted(*key))

    def _tell_reads(self) -> None:
        if self._here is not None:
            self._told_reads, self._told_s = self._here.reads(), self._clock()
            self._send(self._told_reads)

    def _tell_everything(self) -> None:
        text = self._view.text
        self._tell_reads()
        for caption in [caption for caption in text.captions if caption.origin == HERE]:
            self.tell_caption(caption.utterance)
        for shown in [shown for shown in text.partials() if shown.origin == HERE]:
            self.tell_partial(shown)
        for shown in [shown for shown in text.finals() if shown.origin == HERE]:
            shown.told = 0
            self.tell_final(shown)

    def _is_heard(self) -> bool:
        return self._channel is not None and self._channel.is_heard(self._meeting)

    def _send(self, event: LiveEvent) -> None:
        if self._channel is not None:
            self._channel.send(self._meeting, event)

    # ------------------------------------------------------------ what happens elsewhere

    def said(self, key: UtteranceKey) -> None:
        """The log has a final, which readers get now: what waits of it comes before that, or never."""
        if (here := self._here) is not None:
            self._drop_revised(here, key)
            if here.lose_turn(key[0], ("given up", key[1])):
                self._view.withdraw(key)

    def delivered(self) -> None:
        """The log has delivered something more."""
        if self._early and self._here is not None:
            early, self._early = self._early, []
            for origin, event in early:
                self._grow(self._here, origin, event)

    def _may_have_missed(self) -> None:
        """Others may have missed what happened here as well."""
        self._asked_s = self._clock()
        self._doubtful = dict.fromkeys(self._being_said(self._gateways), self._asked_s + _DOUBT_S)
        self._send(Asked())
        self._tell_everything()

    def _heard(self, origin: str, event: LiveEvent) -> None:
        if (here := self._here) is None:
            return
        now_s = self._clock()
        gateway = self._gateways.setdefault(origin, _Gateway(now_s))
        gateway.heard_s = now_s
        if origin in self._silent:
            self._silent.remove(origin)
            self._ask()
        match event:
            case Asked():
                self._tell_everything()
            case Reads(languages=languages, live=live):
                gateway.languages, gateway.live_languages = frozenset(languages), frozenset(live)
            case Ended(participant=participant, utterance=utterance_id, for_good=True):
                # The session may have moved here meanwhile, and what is said goes on.
                here.lose_turn(participant, ("revised", (utterance_id, origin)))
                self._view.text.end_partial((participant, utterance_id), origin)
            case Ended(participant=participant, utterance=utterance_id):
                self._drop_revised(here, (participant, utterance_id))
                self._view.text.end_caption((participant, utterance_id))
            case Unwanted(participant=participant, utterance=utterance_id):
                here.cancel((participant, utterance_id))
            case Revised(utterance=utterance):
                self._doubtful.pop(utterance.key, None)
                speaker = utterance.participant
                key, revise = ("revised", (utterance.id, origin)), partial(self._revise, origin, utterance)
                here.take_turn(speaker, key, revise, most=MOST_OPEN)
            case Partial():
                self._show_partial(origin, event)
            case GrowingFinal():
                self._grow(here, origin, event)
            case Withdrawn(participant=participant, utterance=utterance_id):
                self._drop_revised(here, (participant, utterance_id))
                withdraw = partial(self._withdraw, (participant, utterance_id))
                here.take_turn(participant, ("given up", utterance_id), withdraw, most=MOST_SHOWN)

    def _drop_revised(self, here: Here, key: UtteranceKey) -> None:
        """Revisions that wait are not shown."""
        for origin in self._gateways:
            here.lose_turn(key[0], ("revised", (key[1], origin)))

    def _revise(self, origin: str, utterance: Utterance) -> None:
        shown = self._view.text.caption_of(utterance.key)
        is_newer = shown is None or utterance.rev >= shown.utterance.rev
        if origin in self._gateways and is_newer and self._history.get(utterance.key) is None:
            self._view.show_caption(utterance, origin)
            self._keep_few_captions(utterance.participant)

    def _withdraw(self, key: UtteranceKey) -> None:
        if self._history.get(key) is None:
            self._view.withdraw(key)

    def _being_said(self, origins: Collection[str]) -> set[UtteranceKey]:
        """What these gateways show of what is not final."""
        text = self._view.text
        captions = {caption.utterance.key for caption in text.captions if caption.origin in origins}
        return captions | {shown.key for shown in text.partials() if shown.origin in origins}

    def _show_partial(self, origin: str, event: Partial) -> None:
        key = (event.participant, event.utterance)
        self._doubtful.pop(key, None)
        if self._history.get(key) is not None:
            return  # it is final already
        if event.committed.startswith(self._view.text.committed(key, event.lang)):
            shown = self._view.text.partial_of(key, event.rev, event.lang, origin)
            self._view.show_partial(shown, event.rev, event.committed, event.tentative)

    def _grow(self, here: Here, origin: str, event: GrowingFinal) -> None:
        key = (event.participant, event.utterance)
        if event.said > here.offset:
            self._early = [*self._early, (origin, event)][-_MOST_EARLY:]
            return
        if not self._is_unfinished(key, event.lang):
            return
        shown = self._view.text.final_of(key, event.rev, event.lang, event.said, origin)
        known = shown.committed[event.at :]
        if event.at > len(shown.committed):
            self._ask()
        elif event.text.startswith(known) and (fresh := event.text[len(known) :]):
            self._view.show_final(shown, fresh)

    def _is_unfinished(self, key: UtteranceKey, lang: str) -> bool:
        record = self._history.get(key)
        return record is not None and not record.outcomes.get(lang)

    def _ask(self) -> None:
        """Something was lost."""
        if self._clock() - self._asked_s >= _ASK_S:
            self._asked_s = self._clock()
            self._send(Asked())

    def _keep_few_captions(self, participant: str) -> None:
        text = self._view.text
        captions = [
            each for each in text.captions if each.utterance.participant == participant and each.origin != HERE
        ]
        for caption in captions[: max(0, len(captions) - MOST_OPEN)]:
            text.end_partial(caption.utterance.key)

    def _lose(self, origins: Collection[str]) -> None:
        for origin in origins:
            self._gateways.pop(origin, None)
        self._view.text.forget(origins)

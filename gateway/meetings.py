"""The meeting: who is in it, what was said lately, what is being said, and who gets to read what.

Knows: members and their languages, the running translations, the newest utterances of the log.
Must not know: how a translation is made (`publisher`), who may join and for how long (`attendance`), sockets.

What happened reaches every member through the log alone: whoever accepts or translates appends to it, and the
subscription delivers. What is not logged (deltas, partial captions, participants) goes to live members directly.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from gateway.errors import CloseCode, GatewayError, LogUnavailable
from gateway.events import LoggedEvent, Publication, Said, Translated, Untranslated, Utterance
from gateway.feed import Feed
from gateway.messages import (
    Caption,
    Participant,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    ServerMessage,
    TranslationDelta,
    publication_message,
)
from gateway.payload import Payload
from gateway.ports import EventLog
from gateway.scheduler import Ticket
from gateway.session import Session

__all__ = ["Meeting", "Member", "Recent", "Translation"]

_Key = tuple[str, str]

# Utterances whose translations a meeting keeps an eye on, so that what is missing can be made up for.
_RECENT = 200

# Partial utterances of one member that are shown to late joiners.
_PARTIALS = 8


@dataclass(eq=False, kw_only=True)
class Member:
    """One session's presence, over one or more connections.

    session: the secret it is resumed with; participant: its public id. since: the offset from which on utterances
    are its business. stopped: languages it read once → the offset up to which utterances were said while it did.
    announced: whether the others were told of it.
    state: the protocol's state, taken over by the next connection. feed, finish: null while it is away, since
    `away_since_s`; finish closes its connection.
    """

    meeting: Meeting
    session: str
    participant: str
    name: str
    speaks: str | None
    reads: tuple[str, ...]
    state: Session
    since: int = 0
    feed: Feed | None = None
    finish: Callable[[CloseCode, GatewayError | None], None] | None = None
    stopped: dict[str, int] = field(default_factory=dict)
    announced: bool = False
    away_since_s: float | None = None

    def reads_of(self, lang: str, said: int) -> bool:
        """Whether it is owed what becomes in `lang` of an utterance that was said at offset `said`."""
        return said >= self.since and (lang in self.reads or said <= self.stopped.get(lang, -1))

    def wants(self, publication: Publication) -> bool:
        """Captions go to their speaker and to readers of their language; outcomes to readers of theirs."""
        match publication.event:
            case Said(utterance=said):
                own = said.participant == self.participant
                return own or self.reads_of(said.lang, publication.offset)
            case Translated() | Untranslated() as outcome:
                return self.reads_of(outcome.lang, outcome.said)

    def described(self) -> Participant:
        return Participant(self.participant, self.name, self.speaks, list(self.reads))


@dataclass(eq=False)
class Translation:
    """One translation that waits or runs. said: the offset of its utterance."""

    utterance: Utterance
    said: int
    lang: str
    ticket: Ticket


@dataclass(eq=False)
class Recent:
    """An utterance of late. ended: the languages in which it has an outcome → whether that is a translation."""

    utterance: Utterance
    said: int
    ended: dict[str, bool] = field(default_factory=dict)


class Meeting:
    """Speakers publish into it, readers receive from it. `open` before anything else, `close` at the end.

    offset: of the newest publication. running: utterance → language → translation, kept by the publisher.
    snapshot: utterances that a newcomer is shown.
    """

    def __init__(self, meeting_id: str, log: EventLog, *, private: bool, snapshot: int) -> None:
        self.id = meeting_id
        self.private = private
        self.log = log
        self.epoch = ""
        self.offset = 0
        self.running: dict[_Key, dict[str, Translation]] = {}
        self.members: dict[str, Member] = {}
        self._snapshot = snapshot
        self._recent: OrderedDict[_Key, Recent] = OrderedDict()
        self._partials: dict[str, OrderedDict[str, Payload]] = {}
        self._readers: dict[str, list[Member]] = {}
        self._opening = asyncio.Lock()
        self._subscription = AsyncExitStack()
        self._is_open = False

    # ------------------------------------------------------------ life

    async def open(self) -> None:
        """Subscribe to the log, and read of it what a newcomer needs. Raises `LogUnavailable`."""
        async with self._opening:
            if self._is_open:
                return
            start = await self._subscription.enter_async_context(self.log.subscribe(self.id, self._deliver))
            self.epoch, self.offset = start.epoch, start.last
            # Publications that arrive meanwhile are noted twice, which changes nothing.
            after = start.first - 1
            while (page := await self.log.read(self.id, after)).publications:
                for publication in page.publications:
                    self._note(publication)
                after = page.publications[-1].offset
            self._is_open = True

    async def close(self) -> None:
        """Let go of the log; what it holds stays there as long as it keeps it."""
        async with self._opening:
            self._is_open = False
            await self._subscription.aclose()

    # ------------------------------------------------------------ members

    def join(self, member: Member, announced: int) -> None:
        """A newcomer. `announced`: how many participants are announced to the others at most."""
        member.announced = sum(other.announced for other in self.members.values()) < announced
        if member.announced:
            self._tell_others(member, ParticipantJoined(*_fields(member)))
        self.members[member.session] = member
        self._readers.clear()

    def leave(self, member: Member) -> None:
        if self.members.pop(member.session, None) is None:
            return
        self._readers.clear()
        self._partials.pop(member.participant, None)
        if member.announced:
            self._tell_others(member, ParticipantLeft(*_fields(member)))

    def update(self, member: Member, *, name: str, speaks: str | None, reads: tuple[str, ...]) -> None:
        """Other languages, or another name, in force from the next utterance on."""
        before = (member.name, member.speaks, member.reads)
        if before == (name, speaks, reads):
            return
        added = [lang for lang in reads if lang not in member.reads]
        for lang in member.reads:
            if lang not in reads:
                member.stopped[lang] = self.offset
        for lang in added:
            member.stopped.pop(lang, None)
        member.name, member.speaks, member.reads = name, speaks, reads
        self._readers.clear()
        if member.feed is not None and member.feed.live:
            for payload in self._live_translations(member, added):
                member.feed.show(payload)
        if member.announced:
            self._tell_others(member, ParticipantUpdated(*_fields(member)))

    def participants(self, but: Member) -> list[Participant]:
        """Who else is here and was announced."""
        return [member.described() for member in self.members.values() if member.announced and member is not but]

    def languages(self) -> tuple[str, ...]:
        """Every language somebody reads, in the order of first mention; who is away still reads."""
        return tuple(dict.fromkeys(lang for member in self.members.values() for lang in member.reads))

    # ------------------------------------------------------------ what was said

    def recent(self) -> list[Recent]:
        """The newest utterances that the log still holds, oldest first."""
        return list(self._recent.values())

    def snapshot(self) -> list[Recent]:
        """The newest utterances that a newcomer is shown."""
        return self.recent()[-self._snapshot :]

    def said(self, key: _Key) -> Recent | None:
        """An utterance of late, if it is one."""
        return self._recent.get(key)

    def snapshot_position(self) -> int:
        """The position behind which a newcomer's stream begins."""
        return snapshot[0].said - 1 if (snapshot := self.snapshot()) else self.offset

    async def stream_to(self, member: Member, feed: Feed) -> None:
        """Bring a member up to date and make its feed live: see `Feed`.

        Raises `LogUnavailable`, or `SlowReader` when the log was trimmed faster than the member reads.
        """
        while not feed.live:
            page = await self.log.read(self.id, feed.position)
            if page.epoch != self.epoch:
                raise LogUnavailable("The meeting's log was begun anew; reconnect.", retry_after_ms=0)
            await feed.replay(page)
        for payload in (*self._live_captions(member), *self._live_translations(member, member.reads)):
            feed.show(payload)

    # ------------------------------------------------------------ what is being said

    def show_partial(self, member: Member, utterance: Utterance) -> None:
        """A partial: to its speaker and to readers of its language, and to late joiners while it is one."""
        payload = Payload(
            Caption(
                participant=member.participant,
                utterance=utterance.id,
                speaker=utterance.speaker,
                lang=utterance.lang,
                rev=utterance.rev,
                text=utterance.text,
                final=False,
            )
        )
        partials = self._partials.setdefault(member.participant, OrderedDict())
        partials[utterance.id] = payload
        partials.move_to_end(utterance.id)
        if len(partials) > _PARTIALS:
            partials.popitem(last=False)
        readers = self.readers(utterance.lang)
        for reader in readers if member in readers else (member, *readers):
            if reader.feed is not None and (reader is member or utterance.lang in reader.reads):
                reader.feed.show(payload)

    def forget_partial(self, participant: str, utterance: str) -> None:
        """It is final, or will never be."""
        if (partials := self._partials.get(participant)) is not None:
            partials.pop(utterance, None)
            if not partials:
                del self._partials[participant]

    def show_delta(self, translation: Translation, fresh: str) -> None:
        """New text of a running translation."""
        utterance, lang = translation.utterance, translation.lang
        payload = Payload(
            TranslationDelta(utterance.participant, utterance.id, lang, utterance.rev, committed=fresh)
        )
        for reader in self.readers(lang):
            if reader.feed is not None and reader.reads_of(lang, translation.said):
                reader.feed.show(payload)

    def readers(self, lang: str) -> list[Member]:
        """Who reads `lang` now, or did for utterances that may still be translated."""
        readers = self._readers.get(lang)
        if readers is None:
            readers = [m for m in self.members.values() if lang in m.reads or lang in m.stopped]
            self._readers[lang] = readers
        return readers

    # ------------------------------------------------------------ delivery

    def _deliver(self, publication: Publication) -> None:
        """Called by the log for every publication, in order."""
        self.offset = max(self.offset, publication.offset)
        self._note(publication)
        payload = Payload(publication_message(publication))
        for member in self.members.values():
            if member.feed is not None:
                member.feed.publish(publication, payload)

    def _note(self, publication: Publication) -> None:
        event: LoggedEvent = publication.event
        match event:
            case Said(utterance=utterance):
                self.forget_partial(utterance.participant, utterance.id)
                if utterance.key not in self._recent:
                    self._recent[utterance.key] = Recent(utterance, publication.offset)
                if len(self._recent) > _RECENT:
                    self._recent.popitem(last=False)
            case Translated() | Untranslated() as outcome:
                if (recent := self._recent.get((outcome.participant, outcome.utterance))) is not None:
                    done = isinstance(outcome, Translated)
                    recent.ended[outcome.lang] = done or recent.ended.get(outcome.lang, False)

    def _live_captions(self, member: Member) -> Iterator[Payload]:
        for participant, partials in self._partials.items():
            for payload in partials.values():
                caption = payload.message
                assert isinstance(caption, Caption)  # noqa: S101 -- nothing else is put there
                if participant == member.participant or caption.lang in member.reads:
                    yield payload

    def _live_translations(self, member: Member, langs: Iterable[str]) -> Iterator[Payload]:
        """All that was shown so far of every running translation."""
        for by_lang in self.running.values():
            for lang in langs:
                translation = by_lang.get(lang)
                if translation is None or not member.reads_of(lang, translation.said):
                    continue
                if translation.ticket.shown:
                    utterance = translation.utterance
                    yield Payload(
                        TranslationDelta(
                            utterance.participant, utterance.id, lang, utterance.rev, translation.ticket.shown
                        )
                    )

    def _tell_others(self, member: Member, message: ServerMessage) -> None:
        payload = Payload(message)
        for other in self.members.values():
            if other is not member and other.feed is not None:
                other.feed.tell(payload)


def _fields(member: Member) -> tuple[str, str, str | None, list[str]]:
    return (member.participant, member.name, member.speaks, list(member.reads))

"""The meeting: what was said lately, what is being said, and who of its members gets to read what.

Knows: its members, the running translations, the newest utterances of the log.
Must not know: how a translation is made (`publisher`), who may join and for how long (`attendance`), sockets.

What happened reaches every member through the log alone: whoever accepts or translates appends to it, and the
subscription delivers. What is not logged (deltas, partial captions, participants) goes to live members directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

from msgspec.structs import replace

from gateway.domain.errors import LogUnavailable
from gateway.domain.log import LoggedEvent, Publication, Said, Translated, Untranslated, Utterance
from gateway.domain.ports import EventLog
from gateway.domain.sessions import Stability
from gateway.meeting.feed import Feed
from gateway.meeting.history import Recent, RecentUtterances
from gateway.meeting.live_utterances import LiveTranslation, LiveUtterance, LiveUtterances
from gateway.meeting.members import Member, Members
from gateway.meeting.payload import Payload
from gateway.protocol.from_domain import publication_message
from gateway.protocol.messages import (
    Participant,
    ParticipantJoined,
    ParticipantLeft,
    ParticipantUpdated,
    ServerMessage,
    TranslationDelta,
    UtteranceCancelled,
)
from gateway.translation.scheduler import Ticket

__all__ = ["Meeting", "Translation"]

_Key = tuple[str, str]


@dataclass(eq=False)
class Translation:
    """One translation that waits or runs. said: the offset of its utterance."""

    utterance: Utterance
    said: int
    lang: str
    ticket: Ticket


class Meeting:
    """Speakers publish into it, readers receive from it. `open` before anything else, `close` at the end.

    offset: of the newest publication. running: utterance → language → translation, kept by the publisher.
    debts: what another process accepted and did not finish, until the publisher takes it up. snapshot: utterances
    that a newcomer is shown; recent: these, and those that are not finished.
    """

    def __init__(self, meeting_id: str, log: EventLog, *, private: bool, snapshot: int) -> None:
        self.id = meeting_id
        self.private = private
        self.log = log
        self.epoch = ""
        self.offset = 0
        self.running: dict[_Key, dict[str, Translation]] = {}
        self.debts: dict[_Key, Recent] = {}
        self.members = Members()
        # Those whom the others were told of.
        self._announced: dict[Member, None] = {}
        self.recent = RecentUtterances(snapshot)
        self.live = LiveUtterances()
        self._opening = asyncio.Lock()
        self._subscription = AsyncExitStack()
        self._is_open = False

    # ------------------------------------------------------------ life

    async def open(self) -> None:
        """Subscribe to the log, and read of it what a newcomer needs. Raises `LogUnavailable`."""
        async with self._opening:
            if self._is_open:
                return
            async with AsyncExitStack() as subscription:
                start = await subscription.enter_async_context(self.log.subscribe(self.id, self._deliver))
                self.epoch, self.offset = start.epoch, start.last
                # Publications that arrive meanwhile are noted twice, which changes nothing.
                async for publication in self._logged(start.first - 1):
                    self.recent.note(publication)
                self._subscription = subscription.pop_all()
            self.debts = self.recent.unfinished()
            self._is_open = True

    async def close(self) -> None:
        """Let go of the log; what it holds stays there as long as it keeps it."""
        async with self._opening:
            self._is_open = False
            await self._subscription.aclose()

    # ------------------------------------------------------------ members

    def join(self, member: Member, announced: int) -> None:
        """A newcomer. `announced`: how many participants are announced to the others at most."""
        if len(self._announced) < announced:
            self._announced[member] = None
            self._tell_others(member, ParticipantJoined(*_fields(member)))
        self.members.add(member)

    def leave(self, member: Member) -> None:
        if not self.members.remove(member):
            return
        self.live.forget(member.participant)
        if member in self._announced:
            del self._announced[member]
            self._tell_others(member, ParticipantLeft(*_fields(member)))

    def update(
        self,
        member: Member,
        *,
        name: str,
        speaks: str | None,
        reads: tuple[str, ...],
        stability: Stability,
        originals: bool = False,
    ) -> None:
        """Another name or other languages, from the next utterance on; how they are shown, from now on."""
        before = (member.name, member.speaks, member.reads)
        self._show_as(member, stability)
        self._show_originals(member, originals)
        if before == (name, speaks, reads):
            return
        # A language that is still owed from before shows its deltas already.
        added = [
            payload
            for lang in reads
            if lang not in member.reads
            for payload in self._shown_so_far(member, lang, member.stopped.get(lang, member.since - 1))
        ]
        for lang in member.reads:
            if lang not in reads:
                member.stopped[lang] = self.offset
        for lang in reads:
            member.stopped.pop(lang, None)
        member.name, member.speaks, member.reads = name, speaks, reads
        self.members.note(member)
        if member.feed is not None:
            for payload in added:
                member.feed.show(payload)
        if member in self._announced:
            self._tell_others(member, ParticipantUpdated(*_fields(member)))

    def begin_anew(self, member: Member, since: int) -> None:
        """As for anybody who comes late, what was said before the offset `since` is not its business any more."""
        member.since = since
        member.stopped.clear()
        self.members.note(member)

    def participants(self, but: Member) -> list[Participant]:
        """Who else is here and was announced."""
        return [member.described() for member in self._announced if member is not but]

    def languages(self, but: Member | None = None) -> tuple[str, ...]:
        """Every language somebody (else) reads, in the order of first mention; who is away still reads."""
        return self.members.languages(but)

    def live_languages(self) -> tuple[str, ...]:
        """Those of them that somebody reads while it is being said."""
        return self.members.live_languages()

    # ------------------------------------------------------------ what was said

    async def newcomers_position(self) -> int:
        """The position behind which a newcomer's stream begins. Raises `LogUnavailable`."""
        page = await self.log.read(self.id, self.offset, 1)
        self.recent.trim(page.first)
        return newest[0].said - 1 if (newest := self.recent.newest()) else self.offset

    async def find(self, key: _Key) -> Recent | None:
        """An utterance that was accepted, as far as the log goes back. Raises `LogUnavailable`."""
        if (recent := self.recent.get(key)) is not None:
            return recent
        participant, utterance = key
        said = await self.said_by(participant)
        return next((recent for recent in said if recent.utterance.id == utterance), None)

    async def said_by(self, participant: str) -> list[Recent]:
        """Every utterance of a participant that the log holds, oldest first. Raises `LogUnavailable`."""
        found: dict[str, Recent] = {}
        async for publication in self._logged(0):
            match publication.event:
                case Said(utterance=utterance, languages=languages) if utterance.participant == participant:
                    found[utterance.id] = Recent(utterance, publication.offset, set(languages))
                case Translated() | Untranslated() as outcome if outcome.participant == participant:
                    if (recent := found.get(outcome.utterance)) is not None:
                        recent.note(outcome)
        return list(found.values())

    async def stream_to(self, member: Member, feed: Feed) -> None:
        """Bring a member up to date and make its feed live: see `Feed`.

        Raises `LogUnavailable`, or `SlowReader` when the log was trimmed faster than the member reads.
        """
        while not feed.live:
            page = await self.log.read(self.id, feed.position)
            if page.epoch != self.epoch:
                raise LogUnavailable("The meeting's log was begun anew; reconnect.", retry_after_ms=0)
            await feed.replay(page)
        for payload in self._live_captions(member):
            feed.show(payload)
        for lang in member.reads:
            for payload in self._shown_so_far(member, lang, member.since - 1):
                feed.show(payload)

    # ------------------------------------------------------------ what is being said

    def show_partial(self, utterance: Utterance) -> LiveUtterance | None:
        """A partial: to its speaker and to readers of its language, and to late joiners while it is one.

        Null where its live translation has ended already.
        """
        live = self.live.revise(utterance)
        for reader in self.members.hearers(utterance):
            if reader.feed is not None and _hears(reader, utterance):
                reader.feed.show(live.caption)
        return None if self.live.is_closed(utterance.key) else live

    def withdraw(self, key: _Key) -> None:
        """An utterance that is being said will not be finished."""
        self.live.end(key)
        payload = Payload(UtteranceCancelled(*key))
        for member in self.members:
            if member.feed is not None:
                member.feed.show(payload)

    def show_live(self, translation: LiveTranslation) -> None:
        """What its policy lets readers see now of an utterance that is still being said."""
        said, lang, policy = translation.revision, translation.lang, translation.policy
        fresh = policy.committed[len(translation.committed) :]
        if not fresh and policy.tentative == translation.tentative:
            return
        translation.committed, translation.tentative = policy.committed, policy.tentative
        delta = TranslationDelta(said.participant, said.id, lang, said.rev, fresh, policy.tentative)
        live, stable = Payload(delta), Payload(replace(delta, tentative="")) if fresh else None
        for reader in self.members.readers(lang):
            payload = live if reader.stability == "live" else stable if reader.stability == "stable" else None
            if payload is not None and reader.feed is not None and lang in reader.reads:
                reader.feed.show(payload)

    def show_delta(self, translation: Translation, fresh: str) -> None:
        """New text of the running translation of a final utterance."""
        utterance, lang = translation.utterance, translation.lang
        payload = Payload(
            TranslationDelta(utterance.participant, utterance.id, lang, utterance.rev, committed=fresh)
        )
        for reader in self.members.readers(lang):
            if reader.stability != "final" and reader.feed is not None and reader.reads_of(lang, translation.said):
                reader.feed.show(payload)

    # ------------------------------------------------------------ delivery

    def _deliver(self, publication: Publication) -> None:
        """Called by the log for every publication, in order."""
        self.offset = max(self.offset, publication.offset)
        self.recent.note(publication)
        payload = Payload(publication_message(publication))
        event: LoggedEvent = publication.event
        if isinstance(event, Said):
            self.live.end(event.utterance.key)
            readers = self.members.hearers(event.utterance)
        else:
            readers = self.members.readers(event.lang)
        for reader in readers:
            if reader.feed is not None:
                reader.feed.publish(publication, payload)

    async def _logged(self, after: int) -> AsyncIterator[Publication]:
        """Everything behind a position that the log holds when it is read. Raises `LogUnavailable`."""
        while (page := await self.log.read(self.id, after)).publications:
            for publication in page.publications:
                yield publication
            after = page.publications[-1].offset

    def _live_captions(self, member: Member) -> Iterator[Payload]:
        for live in self.live:
            if _hears(member, live.utterance):
                yield live.caption

    def _shown_so_far(self, member: Member, lang: str, after: int) -> Iterator[Payload]:
        """All that readers like this one saw of what is not translated yet and was said behind a position."""
        if member.stability == "final":
            return
        for by_lang in self.running.values():
            translation = by_lang.get(lang)
            if translation is not None and translation.said > after and translation.ticket.shown:
                utterance = translation.utterance
                yield Payload(
                    TranslationDelta(
                        utterance.participant, utterance.id, lang, utterance.rev, translation.ticket.shown
                    )
                )
        for unfinished in self.live.translations(lang):
            delta = unfinished.delta(tentative=member.stability == "live")
            if delta is not None:
                yield Payload(delta)

    def _show_as(self, member: Member, stability: Stability) -> None:
        """Another stability: what is being said is shown as it would have been all along."""
        before, member.stability = member.stability, stability
        if before == stability:
            return
        self.members.note(member)
        if member.feed is None:
            return
        for lang in member.reads:
            if before == "final":
                deltas = list(self._shown_so_far(member, lang, member.since - 1))
            else:
                deltas = list(self._tentative(lang, shown=stability == "live"))
            for payload in deltas:
                member.feed.show(payload)

    def _show_originals(self, member: Member, originals: bool) -> None:
        """Captions of every language, or of those that are read: what is being said is shown at once."""
        if member.originals == originals:
            return
        seen = [] if member.feed is None else list(self._live_captions(member))
        member.originals = originals
        self.members.note(member)
        if member.feed is not None:
            for caption in self._live_captions(member):
                if caption not in seen:
                    member.feed.show(caption)

    def _tentative(self, lang: str, *, shown: bool) -> Iterator[Payload]:
        """The tentative text of what is being said, or its end."""
        for unfinished in self.live.translations(lang):
            if unfinished.tentative:
                said, tentative = unfinished.revision, unfinished.tentative if shown else ""
                yield Payload(TranslationDelta(said.participant, said.id, lang, said.rev, "", tentative))

    def _tell_others(self, member: Member, message: ServerMessage) -> None:
        payload = Payload(message)
        for other in self.members:
            if other is not member and other.feed is not None:
                other.feed.tell(payload)


def _hears(member: Member, utterance: Utterance) -> bool:
    """Whether what is being said is for this member to see, as it was said."""
    own = member.participant == utterance.participant
    return own or member.originals or utterance.lang in member.reads


def _fields(member: Member) -> tuple[str, str, str | None, list[str]]:
    return (member.participant, member.name, member.speaks, list(member.reads))

"""A meeting: its members, what was said lately, and who of them gets to read what.

Knows: members, the newest utterances of the log, what was shown of the rest.
Must not know: how a translation is made, who may join and for how long, sockets.

What happened reaches every member through the log alone: whoever accepts or translates appends to it, and the
subscription delivers. What is not logged (deltas, partial captions, participants) goes to live members directly.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from msgspec.structs import replace

from gateway.domain.errors import LogUnavailable
from gateway.domain.log import Accepted, Publication, Said, Translated, Untranslated, Utterance, UtteranceKey
from gateway.domain.ports import EventLog, Subscription
from gateway.domain.register import Present
from gateway.domain.sessions import Stability
from gateway.meeting.feed import Feed
from gateway.meeting.history import History, Record
from gateway.meeting.live_text import LiveCaption, LiveText, LiveTranslation
from gateway.meeting.members import Member, Members
from gateway.meeting.payload import Payload
from gateway.meeting.presence import Presence
from gateway.protocol.from_domain import caption_message, publication_message
from gateway.protocol.messages import TranslationDelta, UtteranceCancelled

__all__ = ["Room"]

_TellPresent = Callable[[str, Present | None], None]

# A publication that is not delivered within so many seconds is not waited for.
_DELIVERY_S = 5.0


class Room:
    """Speakers publish into it, readers receive from it. `open` before anything else, `close` at the end."""

    def __init__(
        self,
        meeting: str,
        log: EventLog,
        *,
        private: bool,
        snapshot: int,
        account: str = "",
        # Tells who is present while the context lasts: see `Register.subscribe`.
        present: Callable[[str, _TellPresent], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        # The meeting's id.
        self.id = meeting
        # Whether it has one member, who named no meeting.
        self.private = private
        # Who is charged for its log.
        self._account = account
        self.log = log
        self.epoch = ""
        # Of the newest publication.
        self.offset = 0
        self.members = Members()
        self.presence = Presence(self.members)
        self._present = present
        # The `snapshot` newest utterances, which a latecomer is shown, and those that are not finished.
        self.history = History(snapshot)
        self.live = LiveText()
        # Language → how many are about to read it.
        self._expected: Counter[str] = Counter()
        # The languages that the log knows to be read here.
        self._known_to_be_read: frozenset[str] = frozenset()
        self._telling = asyncio.Lock()
        # Set when a publication is delivered.
        self._delivered = asyncio.Event()
        self._opening = asyncio.Lock()
        self._subscription: Subscription | None = None
        self._unsubscribe = AsyncExitStack()
        self._is_open = False

    # ------------------------------------------------------------ life

    async def open(self) -> None:
        """Subscribe to the log and to who is present, and read what a latecomer needs. Raises `LogUnavailable`."""
        async with self._opening:
            if self._is_open:
                return
            async with AsyncExitStack() as subscription:
                delivery = self.log.subscribe(self.id, self._deliver, account=self._account)
                self._subscription = await subscription.enter_async_context(delivery)
                start = self._subscription.start
                self.epoch, self.offset = start.epoch, start.last
                # Publications that arrive meanwhile are noted twice, which changes nothing.
                async for publication in self._logged(start.first - 1):
                    self.history.note(publication)
                if self._present is not None:
                    await subscription.enter_async_context(self._present(self.id, self.presence.put))
                self._unsubscribe = subscription.pop_all()
            self._is_open = True

    async def close(self) -> None:
        """Let go of the log; what it holds stays there as long as it keeps it."""
        async with self._opening:
            self._is_open, self._subscription, self._known_to_be_read = False, None, frozenset()
            self._delivered.set()
            await self._unsubscribe.aclose()

    # ------------------------------------------------------------ languages

    def languages(self, but: Member | None = None) -> frozenset[str]:
        """Those that somebody reads, or somebody else, and those that somebody is about to read."""
        return frozenset((*self._expected, *self.members.languages(but)))

    @asynccontextmanager
    async def reading(self, languages: Collection[str]) -> AsyncIterator[None]:
        """Somebody is about to read these: what is said from now on is translated into them.

        What was said before has been delivered. Raises `LogUnavailable`.
        """
        self._expected.update(languages)
        try:
            await self.tell_languages()
            yield
        finally:
            self._expected -= Counter(languages)

    async def tell_languages(self) -> None:
        """Tell the log which languages are read here, if it knows otherwise. Raises `LogUnavailable`."""
        async with self._telling:
            languages = self.languages()
            if self._subscription is None or languages == self._known_to_be_read:
                return
            said_before = await self._subscription.reads(languages)
            self._known_to_be_read = languages
        await self.reached(said_before)

    # ------------------------------------------------------------ members

    def join(self, member: Member) -> None:
        """A newcomer."""
        self.members.add(member)

    def leave(self, member: Member) -> None:
        self.members.remove(member)

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
        # Of a language that it still gets from before it has the deltas already.
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
        _show(member, added)

    def start_over(self, member: Member, since: int) -> None:
        """As a latecomer: what was said before the offset `since` is not for it any more."""
        member.since = since
        member.stopped.clear()
        self.members.note(member)

    def cut_off(self, member: Member, allowed: Callable[[str], bool]) -> None:
        """Of languages that are not allowed it gets nothing, not even of what was said while it read them."""
        member.stopped = {lang: last for lang, last in member.stopped.items() if allowed(lang)}
        self.members.note(member)

    def account_of(self, participant: str) -> str:
        """Who is charged for what a participant says."""
        speaker = self.members.get(participant)
        return speaker.account if speaker is not None else self._account

    # ------------------------------------------------------------ what was said

    async def latecomers_position(self) -> int:
        """The position behind which a latecomer's stream begins. Raises `LogUnavailable`."""
        page = await self.log.read(self.id, self.offset, 1)
        self.history.trim(page.first)
        return newest[0].said - 1 if (newest := self.history.newest()) else self.offset

    async def reached(self, offset: int) -> None:
        """Wait until everything up to this offset was delivered; not for ever, and not once the room is closed."""
        if self.offset >= offset:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DELIVERY_S):
                while self._subscription is not None and self.offset < offset:
                    self._delivered.clear()
                    await self._delivered.wait()

    def promise(self, record: Record, accepted: Accepted) -> None:
        """An utterance that was accepted before is to be translated, as far as it is unfinished."""
        record.said = accepted.offset
        unfinished = [lang for lang in accepted.unfinished if record.ended.get(lang, 0) <= accepted.last]
        self.history.promise(record, unfinished)
        if not record.missing():
            self._finished(record)

    def end_unlogged(self, outcome: Translated | Untranslated) -> None:
        """A translation ended, and the log cannot hold that: nobody is to wait for it any more."""
        if (finished := self.history.end(outcome)) is not None:
            self._finished(finished)

    async def stream_to(self, member: Member, feed: Feed) -> None:
        """Bring a member up to date and make its feed live: see `Feed`.

        Raises `LogUnavailable`, or `SlowReader` when the log was trimmed faster than the member reads.
        """
        while not feed.live:
            page = await self.log.read(self.id, feed.position)
            if page.epoch != self.epoch:
                raise LogUnavailable("The meeting's log was begun again; reconnect.", retry_after_ms=0)
            await feed.replay(page)
        for payload in self._live_captions(member):
            feed.show(payload)
        for lang in member.reads:
            for payload in self._shown_so_far(member, lang, member.since - 1):
                feed.show(payload)

    # ------------------------------------------------------------ what is being said

    def show_caption(self, utterance: Utterance) -> None:
        """A revision of an utterance that is being said: to its speaker and to readers of its language."""
        caption = LiveCaption(utterance, Payload(caption_message(utterance)))
        self.live.caption(caption)
        for reader in self.members.hearers(utterance):
            if reader.feed is not None and reader.sees(utterance):
                reader.feed.show(caption.payload)

    def show_partial(self, shown: LiveTranslation, utterance: Utterance, committed: str, tentative: str) -> None:
        """The translation of an utterance that is being said: all of it now. `shown` is of `live`, and changes."""
        fresh = committed[len(shown.committed) :]
        if not fresh and tentative == shown.tentative:
            return
        shown.utterance, shown.committed, shown.tentative = utterance, committed, tentative
        lang = shown.lang
        delta = TranslationDelta(utterance.participant, utterance.id, lang, utterance.rev, fresh, tentative)
        live, stable = Payload(delta), Payload(replace(delta, tentative="")) if fresh else None
        for reader in self.members.readers(lang):
            payload = live if reader.stability == "live" else stable if reader.stability == "stable" else None
            if payload is not None and reader.feed is not None and lang in reader.reads:
                reader.feed.show(payload)

    def show_final(self, shown: LiveTranslation, fresh: str) -> None:
        """New text of the translation of an utterance in the log. `shown` is of `live`, and changes."""
        shown.committed += fresh
        utterance, lang, said = shown.utterance, shown.lang, shown.said or 0
        payload = Payload(
            TranslationDelta(utterance.participant, utterance.id, lang, utterance.rev, committed=fresh)
        )
        for reader in self.members.readers(lang):
            if reader.stability != "final" and reader.feed is not None and reader.gets(lang, said):
                reader.feed.show(payload)

    def withdraw(self, key: UtteranceKey) -> None:
        """An utterance that is being said will not be finished."""
        self.live.end_partial(key)
        payload = Payload(UtteranceCancelled(*key))
        for member in self.members:
            if member.feed is not None:
                member.feed.show(payload)

    # ------------------------------------------------------------ delivery

    def _deliver(self, publication: Publication) -> None:
        """Called by the log for every publication, in order."""
        self.offset = max(self.offset, publication.offset)
        self._delivered.set()
        finished = self.history.note(publication)
        payload = Payload(publication_message(publication))
        event = publication.event
        if isinstance(event, Said):
            self.live.end_partial(event.utterance.key)
            readers = self.members.hearers(event.utterance)
        else:
            readers = self.members.readers(event.lang)
        for reader in readers:
            if reader.feed is not None:
                reader.feed.publish(publication, payload)
        if finished is not None:
            self._finished(finished)

    def _finished(self, record: Record) -> None:
        speaker = self.members.get(record.utterance.participant)
        if speaker is not None and speaker.on_finished is not None:
            speaker.on_finished(record.utterance.id, record.failed)

    async def _logged(self, after: int) -> AsyncIterator[Publication]:
        """Everything behind a position that the log holds when it is read. Raises `LogUnavailable`."""
        while (page := await self.log.read(self.id, after)).publications:
            for publication in page.publications:
                yield publication
            after = page.publications[-1].offset
            await asyncio.sleep(0)  # a log in memory does not wait, and others have their turn meanwhile

    def _live_captions(self, member: Member) -> Iterator[Payload]:
        for caption in self.live.captions:
            if member.sees(caption.utterance):
                yield caption.payload

    def _shown_so_far(self, member: Member, lang: str, after: int) -> Iterator[Payload]:
        """All that readers like this one saw of what is not translated yet and was said behind a position."""
        if member.stability == "final":
            return
        behind = (shown for shown in self.live.finals(lang) if (shown.said or 0) > after)
        for shown in (*behind, *self.live.partials(lang)):
            if (delta := shown.delta(tentative=member.stability == "live")) is not None:
                yield Payload(delta)

    def _show_as(self, member: Member, stability: Stability) -> None:
        """Another stability: what is being said is shown as it would have been all along."""
        before, member.stability = member.stability, stability
        if before == stability:
            return
        self.members.note(member)
        for lang in member.reads:
            if before == "final":
                _show(member, self._shown_so_far(member, lang, member.since - 1))
            else:
                _show(member, self._tentative(lang, shown=stability == "live"))

    def _show_originals(self, member: Member, originals: bool) -> None:
        """Captions of every language, or of those that are read: what is being said is shown at once."""
        if member.originals == originals:
            return
        seen = list(self._live_captions(member))
        member.originals = originals
        self.members.note(member)
        _show(member, [caption for caption in self._live_captions(member) if caption not in seen])

    def _tentative(self, lang: str, *, shown: bool) -> Iterator[Payload]:
        """The tentative text of what is being said, or its end."""
        for partial in self.live.partials(lang):
            if partial.tentative:
                said, tentative = partial.utterance, partial.tentative if shown else ""
                yield Payload(TranslationDelta(said.participant, said.id, lang, said.rev, "", tentative))


def _show(member: Member, payloads: Iterator[Payload] | list[Payload]) -> None:
    if member.feed is not None:
        for payload in payloads:
            member.feed.show(payload)

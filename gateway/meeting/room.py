"""A meeting: its members, what was said lately, who of them gets to read what; and all open meetings.

Knows: members, the newest utterances of the log, what was shown of the rest, when a room is not needed any more.
Must not know: how a translation is made, who may join and for how long, sockets.

What happened reaches every member through the log alone: what accepts or translates appends to it, and the
subscription delivers. What is not logged (deltas, partial captions, participants) goes to live members directly.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial

from gateway.domain.errors import LogUnavailable
from gateway.domain.live import Reads
from gateway.domain.log import (
    NO_TITLE,
    Accepted,
    Page,
    Publication,
    Said,
    Title,
    Translated,
    Untranslated,
    Utterance,
    UtteranceKey,
)
from gateway.domain.ports import EventLog, LiveChannel, Subscription
from gateway.domain.session_store import Hosted, Present
from gateway.domain.sessions import Preferences
from gateway.meeting import traces
from gateway.meeting.feed import Feed
from gateway.meeting.history import HELD_FOR_EACH, History, Record
from gateway.meeting.live_view import LiveText, LiveTranslation, LiveView
from gateway.meeting.members import Member, Members, Presence
from gateway.meeting.other_gateways import OtherGateways
from gateway.meeting.outbox import Payload
from gateway.meeting.turns import CHAR_S, FRAME_S, Job, Key, Payer, Turns
from gateway.protocol.from_domain import publication_message
from gateway.protocol.messages import MeetingTitled
from gateway.tracing import utterances

_TellPresent = Callable[[str, Present | None], None]
_TellHosted = Callable[[Hosted], None]

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
        # Whether the meeting is to be recorded, if this begins it: see `EventLog.subscribe`.
        record: bool | None = None,
        # Tells who is present, and what hosts have set, while the context lasts: see `SessionStore.subscribe`.
        present: Callable[[str, _TellPresent, _TellHosted], AbstractAsyncContextManager[None]] | None = None,
        # To other gateways; None if there are none.
        channel: LiveChannel | None = None,
        # Stops the translations that this gateway makes of an utterance.
        cancel: Callable[[Room, UtteranceKey], None] = lambda _room, _key: None,
        # Those of all rooms; None: it has its own.
        turns: Turns | None = None,
    ) -> None:
        # The meeting's id.
        self.id = meeting
        # Whether it has one member, who named no meeting.
        self.private = private
        # Who is charged for its log.
        self._account = account
        self._record = record
        # Whether what is said is kept. If not, newcomers are not shown what was said before.
        self.recorded = record is not False
        self._snapshot = snapshot
        # What it is called.
        self.title = NO_TITLE
        # Whether that was set, or taken away, since somebody is there.
        self.has_set_title = False
        self.log = log
        self.epoch = ""
        # The offset of the newest publication.
        self.offset = 0
        self.members = Members()
        self.turns = turns or Turns()
        self.presence = Presence(self.members)
        self._present = present
        # The `snapshot` newest utterances, which a latecomer is shown, and those that are not finished.
        self.history = History(snapshot)
        self._view = LiveView(self.members)
        self.other_gateways = OtherGateways(meeting, channel, self._view, self.history)
        self._cancel = cancel
        # Language → how many are about to read it.
        self._expected: Counter[str] = Counter()
        # The languages that the log knows to be read here.
        self._known_to_be_read: frozenset[str] = frozenset()
        self._telling = asyncio.Lock()
        # Set when a publication is delivered.
        self._delivered = asyncio.Event()
        self._opening = asyncio.Lock()
        # Attempts to open it that have failed.
        self._failures = 0
        self._subscription: Subscription | None = None
        self._unsubscribe = AsyncExitStack()
        self._is_open = False
        # Whether another log has taken the place of the one that this room has read.
        self.has_lost_its_log = False

    @property
    def live(self) -> LiveText:
        """What is not in the log."""
        return self._view.text

    # ------------------------------------------------------------ life

    async def open(self) -> None:
        """Subscribe to the log and to who is present, and read what a latecomer needs. Raises `LogUnavailable`."""
        failures = self._failures
        async with self._opening:
            if self._is_open:
                return
            if self._failures != failures:
                # Others have waited for the store in vain; everybody after them would as well.
                raise LogUnavailable("The meeting's log cannot be reached.", retry_after_ms=1_000)
            self._failures += 1  # until it has worked
            self.offset = 0
            async with AsyncExitStack() as subscription:
                delivery = self.log.subscribe(
                    self.id,
                    self._deliver,
                    account=self._account,
                    record=self._record,
                    begun_again=self._begun_again,
                )
                self._subscription = await subscription.enter_async_context(delivery)
                start = self._subscription.start
                # Something may have been delivered since.
                self.epoch, self.offset = start.epoch, max(self.offset, start.last)
                self.recorded = self._record = start.recorded
                self.title, self.has_set_title = start.title, False
                self.history.keep = self._snapshot if self.recorded else 0
                await self._read_newest()
                if self._present is not None:
                    await subscription.enter_async_context(self._present(self.id, self._put_present, self._host))
                await subscription.enter_async_context(self.other_gateways.listening(self))
                self._unsubscribe = subscription.pop_all()
            self._is_open = True
            self._failures -= 1

    async def _read_newest(self) -> None:
        """Note the newest utterances of the log. Raises `LogUnavailable`."""
        keep = self.history.keep
        page = await self._recall(keep)
        has_older = page.publications and page.publications[0].offset > page.first
        if has_older and len(self.history.newest()) < keep:
            # The log has counted those that were corrected or taken back, too: it cannot read them.
            self.history.clear()
            await self._recall(HELD_FOR_EACH * keep)

    async def _recall(self, utterances: int) -> Page:
        recent = await self.log.recent(self.id, utterances)
        # Publications that arrive meanwhile are noted twice, which changes nothing.
        async for publication in self._logged(self.history.recall(recent)):
            self.history.note(publication)
        return recent.page

    async def begin_again(self) -> None:
        """Read the log that has taken the place of the one before. Raises `LogUnavailable`."""
        await self.close()
        self.history.clear()
        self.live.clear()
        self.presence.clear()
        self.has_lost_its_log = False
        await self.open()

    async def close(self) -> None:
        """Let go of the log; what it holds stays there as long as it keeps it."""
        async with self._opening:
            self._is_open, self._subscription, self._known_to_be_read = False, None, frozenset()
            self._delivered.set()
            await self._unsubscribe.aclose()

    def cancel(self, key: UtteranceKey) -> None:
        """Stop the translations that this gateway makes of an utterance."""
        self._cancel(self, key)

    # ------------------------------------------------------------ languages

    def languages(self, but: Member | None = None) -> frozenset[str]:
        """Those that are read, or about to be, here or at another gateway. but: a member that does not count."""
        return self._languages_here(but) | self.other_gateways.languages

    def live_languages(self) -> frozenset[str]:
        """Those that are read while it is being said, at this gateway or another one."""
        return self.other_gateways.live_languages.union(self.members.live_languages())

    def _languages_here(self, but: Member | None = None) -> frozenset[str]:
        return frozenset((*self._expected, *self.members.languages(but)))

    def reads(self) -> Reads:
        """What is read at this gateway."""
        return Reads(tuple(sorted(self._languages_here())), tuple(sorted(self.members.live_languages())))

    @asynccontextmanager
    async def reading(self, languages: Collection[str]) -> AsyncIterator[None]:
        """A member is about to read these: what is said from now on is translated into them.

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
            languages = self._languages_here()
            if self._subscription is None or languages == self._known_to_be_read:
                return
            said_before = await self._subscription.reads(languages)
            self._known_to_be_read = languages
        self.other_gateways.tell_reads()
        await self.reached(said_before)

    # ------------------------------------------------------------ members

    def join(self, member: Member) -> None:
        """A newcomer."""
        self.members.add(member)
        self.other_gateways.tell_reads()

    def leave(self, member: Member) -> None:
        self.members.remove(member)

    def update(self, member: Member, name: str, wanted: Preferences) -> None:
        """Another name or other languages, from the next utterance on; how they are shown, from now on."""
        before, reads = (member.name, member.speaks, member.reads), wanted.reads
        self._view.show_as(member, wanted.stability)
        self._view.show_originals(member, wanted.originals)
        if before == (name, wanted.speaks, reads):
            self.other_gateways.tell_reads()
            return
        # It has the deltas already of a language that it still gets from before.
        added = [
            payload
            for lang in reads
            if lang not in member.reads
            for payload in self._view.so_far(member, lang, member.stopped.get(lang, member.since - 1))
        ]
        for lang in member.reads:
            if lang not in reads:
                member.stopped[lang] = self.offset
        for lang in reads:
            member.stopped.pop(lang, None)
        member.name, member.speaks, member.reads = name, wanted.speaks, reads
        self.members.note(member)
        self.other_gateways.tell_reads()
        if member.feed is not None:
            for payload in added:
                member.feed.show(payload)

    def start_over(self, member: Member, since: int) -> None:
        """As a latecomer: what was said before the offset `since` is not for it any more."""
        member.since = since
        member.stopped.clear()
        self.members.note(member)

    def cut_off(self, member: Member, allowed: Callable[[str], bool]) -> None:
        """It gets nothing of languages that are not allowed, not even of what was said while it read them."""
        member.stopped = {lang: last for lang, last in member.stopped.items() if allowed(lang)}
        self.members.note(member)

    def account_of(self, participant: str) -> str:
        """Who is charged for what a participant says."""
        speaker = self.members.get(participant)
        return speaker.account if speaker is not None else self._account

    def shows(self, member: Member, publication: Publication) -> bool:
        """Whether a member gets an entry of the log, now or when it comes back."""
        return member.wants(publication) and not self.history.is_replaced(publication)

    # ------------------------------------------------------------ what it costs

    def _payer(self, participant: str) -> Payer:
        """For whom something is done that a participant has caused."""
        return Payer(self.account_of(participant), self.id, participant)

    def take_turn(
        self, participant: str, key: Key, job: Job, *, chars: int = 0, most: int = 1
    ) -> asyncio.Task[None] | None:
        """Tell all members of something, at once or when it is the meeting's turn; see `Turns.do`.

        chars: how many are compared with what was shown before.
        """
        cost_s = FRAME_S * len(self.members) + CHAR_S * chars
        return self.turns.do(self._payer(participant), cost_s, key, job, most)

    def lose_turn(self, participant: str, key: Key) -> bool:
        """Do not do what waits under this key. Returns whether something did."""
        return self.turns.take_back(self.id, participant, key)

    def _put_present(self, participant: str, present: Present | None) -> None:
        if self.presence.put(participant, present):
            self.take_turn(participant, ("present", ""), partial(self.presence.tell_members, participant))

    def entitle(self, title: Title) -> None:
        """It is called so now: members are told, unless they know."""
        if title == self.title:
            return
        self.title = title
        payload = Payload(MeetingTitled(title.text, title.held_by))
        for member in self.members:
            if member.feed is not None:
                member.feed.send_now(payload)

    def _host(self, hosted: Hosted) -> None:
        self.has_set_title = hosted.title is not None
        if hosted.title is not None:
            self.entitle(hosted.title)
        changed, concerned = self.presence.host(hosted)
        for member in concerned:
            if member.on_muted is not None and self.presence.is_muted(member):
                member.on_muted()
        for participant in changed:
            self.take_turn(participant, ("present", ""), partial(self.presence.tell_members, participant))

    # ------------------------------------------------------------ what was said

    async def latecomers_position(self) -> int:
        """The position behind which a latecomer's stream begins. Raises `LogUnavailable`."""
        page = await self.log.read(self.id, self.offset, 1)
        self.history.trim(page.first)
        return self.offset if (begins := self.history.begins()) is None else begins - 1

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
        """A translation ended, and the log cannot hold that: the session does not wait for it any more."""
        if (finished := self.history.end(outcome)) is not None:
            self._finished(finished)

    def close_utterance(self, whole: UtteranceKey, sender: str = "") -> None:
        """No further segment of an utterance follows those that are in the log. sender: as in `Utterance`."""
        if self.history.close(whole):
            self._tell_finished(sender or whole[0], whole[1], failed=self.history.failed(whole))

    async def stream_to(self, member: Member, feed: Feed) -> None:
        """Bring a member up to date and make its feed live. Raises `LogUnavailable` or `SlowReader`, as `Feed`."""
        while not feed.live:
            page = await self.log.read(self.id, feed.position)
            if page.epoch != self.epoch:
                raise LogUnavailable("The meeting's log was begun again; reconnect.", retry_after_ms=0)
            await feed.replay(page)
            # Neither a log in memory nor an outbox with room makes this wait; others have their turn.
            await asyncio.sleep(0)
        if member.feed is feed:
            self._view.bring_up_to_date(member)

    # ------------------------------------------------------------ what is being said

    def show_caption(self, utterance: Utterance) -> None:
        """A revision of an utterance that is being said. One that says what the last one said is not sent on."""
        if self._view.show_caption(utterance):
            self.other_gateways.tell_caption(utterance)

    def show_partial(self, utterance: Utterance, lang: str, committed: str, tentative: str) -> None:
        """The translation of an utterance that is being said: all of it now."""
        shown = self.live.partial(utterance, lang)
        if self._view.show_partial(shown, utterance.rev, committed, tentative):
            self.other_gateways.tell_partial(shown)

    def show_final(self, shown: LiveTranslation, fresh: str) -> None:
        """New text of the translation of an utterance in the log, as `live.final` has begun it."""
        self._view.show_final(shown, fresh)
        self.other_gateways.tell_final(shown)

    def end_caption(self, key: UtteranceKey) -> None:
        """An utterance is not being said any more, as far as is known; its translations so far stay."""
        self.live.end_caption(key)
        self.other_gateways.tell_ended(key, for_good=False)

    def withdraw(self, key: UtteranceKey) -> None:
        """An utterance that is being said will not be finished."""
        self._view.withdraw(key)
        self.other_gateways.tell_withdrawn(key)

    # ------------------------------------------------------------ delivery

    def _deliver(self, publication: Publication) -> None:
        """Called by the log for every publication, in order."""
        if self.has_lost_its_log:
            return
        self.offset = max(self.offset, publication.offset)
        self._delivered.set()
        delivery = traces.delivery(publication, self.history)
        finished = self.history.note(publication)
        payload = Payload(publication_message(publication), delivery)
        event = publication.event
        if isinstance(event, Said):
            participant = event.utterance.sent_by
            self.other_gateways.said(event.utterance.key)
            self.live.accepted(event.utterance, publication.offset, event.languages)
            for replaced in self.history.replaced(event.utterance):
                self.cancel(replaced.utterance.key)
            readers = self.members.hearers(event.utterance)
        else:
            participant = event.participant
            self.live.end_final_elsewhere((participant, event.utterance), event.lang)
            readers = self.members.readers(event.lang)
        # It does not wait; what is not final waits for it.
        self.turns.charge(self._payer(participant), FRAME_S * len(readers))
        for reader in readers:
            if reader.feed is not None:
                reader.feed.publish(publication, payload)
        if delivery is not None:
            delivery.all_queued()
        self.other_gateways.delivered()
        if finished is not None:
            self._finished(finished)

    def _begun_again(self) -> None:
        """Called by the log. Offsets are those of other publications now."""
        self.has_lost_its_log = True

    def _finished(self, record: Record) -> None:
        if self.history.ends_whole(record):
            failed = record.failed or (record.utterance.is_segment and self.history.failed(record.utterance.whole))
            self._tell_finished(record.utterance.sent_by, record.utterance.whole[1], failed=failed)
        if record.utterance.traceparent:
            utterances.finished(record.utterance.traceparent)

    def _tell_finished(self, sender: str, utterance: str, *, failed: bool) -> None:
        speaker = self.members.get(sender)
        if speaker is not None and speaker.on_finished is not None:
            speaker.on_finished(utterance, failed)

    async def _logged(self, after: int) -> AsyncIterator[Publication]:
        """Everything behind a position that the log holds when it is read. Raises `LogUnavailable`."""
        while (page := await self.log.read(self.id, after)).publications:
            for publication in page.publications:
                yield publication
            after = page.publications[-1].offset
            await asyncio.sleep(0)  # a log in memory does not wait, and others have their turn meanwhile


class Rooms:
    """new_room: makes a room that is not open yet, from the arguments of `enter` and with `turns`."""

    def __init__(self, new_room: Callable[..., Room]) -> None:
        self._new_room = new_room
        self._turns = Turns()
        # By the meeting's key.
        self._rooms: dict[str, Room] = {}
        # Rooms that are about to get a member → how many.
        self._entering: dict[Room, int] = {}

    def __len__(self) -> int:
        return len(self._rooms)

    def __iter__(self) -> Iterator[Room]:
        return iter(self._rooms.values())

    @contextlib.asynccontextmanager
    async def enter(
        self, meeting: str, *, private: bool, account: str = "", record: bool | None = None
    ) -> AsyncIterator[Room]:
        """The meeting's room, open while the context lasts and it has members. record: as `EventLog.subscribe`."""
        room = self._rooms.get(meeting)
        if room is None:
            room = self._new_room(meeting, private=private, account=account, record=record, turns=self._turns)
            self._rooms[meeting] = room
        # It may have been opened for what was left unfinished.
        room.private = room.private or private
        self._entering[room] = self._entering.get(room, 0) + 1
        try:
            await room.open()
            yield room
        finally:
            self._entering[room] -= 1
            if not self._entering[room]:
                del self._entering[room]

    def without_their_log(self) -> list[Room]:
        return [room for room in self if room.has_lost_its_log]

    async def close(self) -> None:
        self._turns.close()
        await asyncio.gather(*(room.close() for room in self))

    async def sweep(self, busy: Callable[[Room], bool]) -> None:
        """Let go of rooms without members, and of languages without readers.

        busy: whether something is still to be done in a room. Raises `LogUnavailable`.
        """
        self._turns.sweep()
        empty = [room for room in self if not (room.members or busy(room) or room in self._entering)]
        for room in empty:
            del self._rooms[room.id]
        await asyncio.gather(*(room.close() for room in empty))
        for room in list(self):
            room.other_gateways.sweep()
            await room.tell_languages()

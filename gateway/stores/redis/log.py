"""The event log in Redis: one gateway's access to a store that gateways share.

Every operation is one script, and can be repeated. A meeting and an account have a bound each. All together
have none: `maxmemory` bounds the store, and a full one refuses.

Publications reach subscribers by pushes, and by reading where a push is missing; in whichever order that happens.

Knows: the scripts' arguments, positions, what was delivered to whom, what was promised without an answer.
Must not know: how scripts work, the wire, who translates.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import Struct

from gateway.domain.errors import LogUnavailable, SessionReplaced, UtteranceFinished
from gateway.domain.log import (
    Accepted,
    LogBounds,
    Logged,
    LoggedMeeting,
    LogUsage,
    Page,
    Publication,
    Recent,
    Said,
    Title,
    Translated,
    Unfinished,
    Untranslated,
    Utterance,
    UtteranceKey,
)
from gateway.domain.ports import LEASE_S, Subscription
from gateway.domain.session_store import Fence
from gateway.stores.delivery import deliver_to
from gateway.stores.redis import entries
from gateway.stores.redis.commands import tried, unavailable
from gateway.stores.redis.entries import Position, Push
from gateway.stores.redis.pushes import Missed
from gateway.stores.redis.store import RedisStore

_log = logging.getLogger(__name__)

# Pushes that wait for an earlier one; more are read again instead.
_MOST_WAITING = 1_000
# Every so many sweeps, a meeting's position is compared with the store's; so many meetings in one script.
_CHECK_SWEEPS = 3
_CHECKED = 100
# How long a sweep, and a gateway that stops reading or leaves, waits for the store.
_SHORT_PATIENCE_S = 1.0
# Meetings that one sweep looks at for something that has expired; utterances taken over at once; publications read
# at once where pushes are missing; meetings and entries that one append makes room in.
_DUE_MEETINGS = 100
_TAKEN = 200
_PAGE = 200
_QUIETEST = 20
_DROPPED = 500
# How long the store is asked for what was not answered: a command may lie in the network, or before a server that
# does not run, and be done later. How many utterances are remembered, and asked for at once.
_UNANSWERED_S = 60.0
_MOST_UNANSWERED = 10_000
_ASKED_AT_ONCE = 100
# How often an append finds another epoch than it was sealed for.
_MOST_EPOCHS = 5
_NO_LOG = Page("", first=1, last=0)


@dataclass(slots=True, eq=False)
class Subscriber:
    """A reader to whom publications are delivered."""

    deliver: Callable[[Publication], None]
    # Is told of another epoch.
    begun_again: Callable[[], None] = lambda: None
    # Offset behind which delivery begins.
    after: int = 0
    languages: frozenset[str] = frozenset()


class Topic:
    """How far one meeting was delivered here."""

    def __init__(self, meeting: str, account: str, *, recorded: bool) -> None:
        self.meeting = meeting
        # Who is charged for the log if this gateway begins it.
        self.account = account
        # Whether the meeting is recorded; before that is known, whether it is to be if this gateway begins it.
        self.recorded = recorded
        # How many have subscribed, or are about to.
        self.users = 0
        # Empty until its position is known.
        self.epoch = ""
        # Offset of the newest publication that was delivered.
        self.position = 0
        # Offset of the newest publication in this epoch that this gateway knows of.
        self.newest = 0
        # Offset of the newest publication that came by a push, or was there before.
        self.pushed = 0
        # What `pushed` must have reached at the next check, or the subscription is dead.
        self._due = 0
        # (epoch, offset) → a push that came before its turn.
        self._early: dict[tuple[str, int], Push] = {}
        self._subscribers: dict[Subscriber, None] = {}

    @property
    def languages(self) -> str:
        """What is read here, as the scripts take it."""
        return ",".join(sorted(frozenset().union(*(each.languages for each in self._subscribers))))

    def add(self, subscriber: Subscriber, position: Position) -> Page:
        """From the position on, which the store has told. Returns where delivery begins."""
        self.take_position(position)
        subscriber.after = max(self.position, position.last)
        self._subscribers[subscriber] = None
        return Page(
            position.epoch, position.first, subscriber.after, recorded=position.recorded, title=position.title
        )

    def remove(self, subscriber: Subscriber) -> None:
        self._subscribers.pop(subscriber, None)

    def take_position(self, position: Position) -> bool:
        """The store's position. Returns whether it is ahead of what was delivered: pushes may be missing."""
        self.recorded = position.recorded
        if not self.epoch:
            self._begin(position.epoch, position.last)
        elif self.epoch != position.epoch:
            # The old log was lost, or has expired: all of the new one is new.
            for subscriber in tuple(self._subscribers):
                subscriber.after = position.start
                subscriber.begun_again()
            self._begin(position.epoch, position.start)
        self.newest = max(self.newest, position.last)
        return self.position < position.last

    def note_newest(self, epoch: str, offset: int) -> None:
        """The store has told of a publication with this offset."""
        if epoch == self.epoch:
            self.newest = max(self.newest, offset)

    def push(self, push: Push) -> bool:
        """A push came. Returns whether something is missing before it."""
        if push.epoch == self.epoch:
            self.pushed = max(self.pushed, push.offset)
            self.newest = max(self.newest, push.offset)
            if push.offset <= self.position:
                return False
        if len(self._early) < _MOST_WAITING:
            self._early[push.epoch, push.offset] = push
        self._deliver_early()
        return bool(self.epoch) and (push.epoch != self.epoch or push.offset > self.position)

    def fill(self, page: Page, upto: int) -> None:
        """What was read in this topic's epoch; `upto`: the offset up to which nothing else is held."""
        for publication in page.publications:
            if publication.offset > self.position:
                self._deliver(publication.offset, publication)
        self.position = max(self.position, upto)
        self._deliver_early()

    def has_dead_subscription(self) -> bool:
        """Whether what was known at the last check has not come by a push until now. To be asked regularly."""
        dead = self.pushed < self._due
        self._due = self.position
        if dead:
            self.pushed = self.position
        return dead

    def _begin(self, epoch: str, position: int) -> None:
        self.epoch = epoch
        self.position = self.newest = self.pushed = self._due = position
        self._forget(key for key in self._early if key[0] != epoch)
        self._deliver_early()

    def _deliver_early(self) -> None:
        while self._early and (push := self._early.pop((self.epoch, self.position + 1), None)) is not None:
            self.pushed = max(self.pushed, push.offset)
            self._deliver(push.offset, push.publication)
        if self._early:
            self._forget(key for key in self._early if key[0] == self.epoch and key[1] <= self.position)

    def _forget(self, keys: Iterable[tuple[str, int]]) -> None:
        for key in tuple(keys):
            del self._early[key]

    def _deliver(self, offset: int, publication: Publication | None) -> None:
        self.position = offset
        self.newest = max(self.newest, offset)
        if publication is None:
            return
        for subscriber in tuple(self._subscribers):
            # An earlier delivery of this loop may have removed it.
            if offset <= subscriber.after or subscriber not in self._subscribers:
                continue
            deliver_to(subscriber.deliver, publication)


class UnansweredPromise(Struct, frozen=True):
    """An utterance of which this gateway may own something."""

    # The meeting's key.
    meeting: str
    # Digest of the utterance's key; empty where its offset is known.
    key: bytes = b""
    offset: int = 0


class UnansweredPromises:
    """Utterances that were accepted or claimed without an answer."""

    def __init__(self) -> None:
        # With the time at which it was asked.
        self._unanswered: dict[UnansweredPromise, float] = {}

    @contextmanager
    def until_answered(self, *promises: UnansweredPromise) -> Iterator[None]:
        """Where this raises, or is cancelled, the store may have done it."""
        try:
            yield
        except BaseException:
            for promise in promises:
                if len(self._unanswered) < _MOST_UNANSWERED:
                    self._unanswered[promise] = time.monotonic()
            raise
        for promise in promises:
            self._unanswered.pop(promise, None)

    def to_be_settled(self) -> tuple[UnansweredPromise, ...]:
        """Some of them; others the next time."""
        some = tuple(self._unanswered)[:_ASKED_AT_ONCE]
        for promise in some:  # to the end
            self._unanswered[promise] = self._unanswered.pop(promise)
        return some

    def settle(self, promise: UnansweredPromise, *, found: bool) -> None:
        """The store was asked. If it had not done it, it may still do it later."""
        if found or time.monotonic() - self._unanswered.get(promise, 0.0) > _UNANSWERED_S:
            self._unanswered.pop(promise, None)


class RedisEventLog:
    """One gateway's log, once it has started.

    account_bytes: account → bytes of all its logs; None: `bounds.max_bytes`. Of what is far too much, each append
    drops a part.
    """

    def __init__(
        self,
        store: RedisStore,
        bounds: LogBounds,
        *,
        account_bytes: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        self.store = store
        self._account_bytes = account_bytes
        self._account_most = bounds.max_bytes
        self._bounds = (round(bounds.keep_s * 1_000), bounds.max_publications, bounds.meeting_bytes)
        self._unrecorded_ms = round(bounds.unrecorded_s * 1_000)
        self._record = bounds.record
        # By the meeting's key.
        self._topics: dict[str, Topic] = {}
        self._missed = Missed("the log of a meeting")
        # Meetings that the store does not know to be left.
        self._left: dict[str, None] = {}
        self._unanswered = UnansweredPromises()
        # The same until what was taken over is known here.
        self._taking = secrets.token_hex(4)
        self._sweeps = 0
        self._is_closed = False

    async def start(self) -> None:
        """Be there, once the store has started; `close` ends it."""
        self._missed.start()
        await self.sweep()

    async def accept(self, meeting: str, utterance: Utterance, fence: Fence | None = None) -> Accepted:
        key = entries.key_digest(utterance.key)
        text = entries.text_digest(utterance, self.store.seal.digest_key)
        attempt = secrets.token_bytes(8)
        source = "" if utterance.is_taking_back else utterance.lang
        session, number = (fence.session, fence.number) if fence is not None else (b"", 0)
        with self._unanswered.until_answered(UnansweredPromise(meeting, key=key)):
            own = (key, text, attempt, source, session, number, int(utterance.continues))
            reply = await self._append("accept", meeting, utterance, *own)
            if len(reply) > 1:
                await self._hold_account_to_bound(meeting, *reply[6:])
        if reply == [b"moved"]:
            raise SessionReplaced("This session goes on at another gateway.")
        if not reply:
            raise UtteranceFinished(
                "This utterance is final already, with another text or language; use a new id.", field="id"
            )
        known, offset, unfinished, owned, epoch, last = reply[:6]
        self._know(meeting, epoch, last)
        return Accepted(
            int(offset),
            entries.languages_of(unfinished),
            entries.languages_of(owned),
            known == b"1",
            last=int(last),
        )

    async def find_utterance(self, meeting: str, key: UtteranceKey) -> Logged | None:
        reply = await self._run("find_utterance", meeting, entries.key_digest(key))
        if not reply:
            return None
        page = await self.read(meeting, int(reply[0]) - 1, 1)
        for publication in page.publications:
            if isinstance(said := publication.event, Said) and said.utterance.key == key:
                return Logged(said.utterance, publication.offset, publication.at_ms)
        return None

    async def conclude(self, meeting: str, outcome: Translated | Untranslated) -> Publication | None:
        translated = int(isinstance(outcome, Translated))
        key = entries.key_digest((outcome.participant, outcome.utterance))
        reply = await self._append("conclude", meeting, outcome, outcome.said, key, outcome.lang, translated)
        if not reply:
            return None
        epoch, offset, at_ms, account, held = reply
        self._know(meeting, epoch, offset)
        await self._hold_account_to_bound(meeting, account, held)
        return Publication(int(offset), int(at_ms), outcome)

    async def _hold_account_to_bound(self, meeting: str, account: bytes, held: bytes) -> None:
        """After an append: hold the account to its bound. What cannot be done now is done after the next one."""
        own = self._account_bytes(account.decode())
        most = self._account_most if own is None else own
        if int(held) > most:
            with contextlib.suppress(LogUnavailable):
                limits = (_QUIETEST, _DROPPED)
                await self._run("fit_account", meeting, account, most, *limits, patience_s=_SHORT_PATIENCE_S)

    async def claim(self, meeting: str, wanted: Mapping[int, Collection[str]]) -> dict[int, tuple[str, ...]]:
        pairs = [part for offset, languages in wanted.items() for part in (offset, ",".join(languages))]
        with self._unanswered.until_answered(*(UnansweredPromise(meeting, offset=offset) for offset in wanted)):
            reply = await self._run("claim", meeting, *pairs)
        offsets = map(int, reply[::2])
        return dict(zip(offsets, map(entries.languages_of, reply[1::2]), strict=True))

    async def take_over(self) -> tuple[Unfinished, ...]:
        replies = await self._run("take_over", "", _TAKEN, self._taking, patience_s=_SHORT_PATIENCE_S)
        self._taking = secrets.token_hex(4)
        for promise in self._unanswered.to_be_settled():
            try:
                reply = await self._run("find_promise", promise.meeting, promise.key, promise.offset)
            except LogUnavailable:
                break  # what was taken over must not be lost
            if reply:
                replies.append(reply)
            self._unanswered.settle(promise, found=bool(reply))
        return tuple(
            work for reply in replies if (work := entries.unfinished_of(reply, self.store.seal)) is not None
        )

    async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
        reply = await self._run("read", meeting, after, limit)
        if not reply:
            return _NO_LOG
        return entries.page_of(meeting, entries.position_of(reply[0]), reply[1], self.store.seal)

    async def recent(self, meeting: str, utterances: int, limit: int = 200) -> Recent:
        reply = await self._run("recent", meeting, utterances, limit)
        return entries.recent_of(meeting, reply, self.store.seal) if reply else Recent(_NO_LOG)

    @asynccontextmanager
    async def subscribe(
        self,
        meeting: str,
        deliver: Callable[[Publication], None],
        *,
        account: str = "",
        record: bool | None = None,
        begun_again: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[Subscription]:
        if (topic := self._topics.get(meeting)) is None:
            recorded = self._record if record is None else record
            topic = self._topics[meeting] = Topic(meeting, account, recorded=recorded)
        topic.users += 1
        subscriber = Subscriber(deliver, begun_again)
        try:
            await self.store.pushes.subscribe(
                self._channel(meeting), partial(self._pushed, topic), partial(self._note_behind, topic)
            )
            position = await self._open_log(topic)
            epoch = topic.epoch
            start = topic.add(subscriber, position)
            self._note_change(topic, epoch)
            yield Subscription(start, partial(self._reads, topic, subscriber))
        finally:
            topic.users -= 1
            topic.remove(subscriber)
            with contextlib.suppress(LogUnavailable):
                await self._stop_reading(topic, subscriber)

    async def sweep(self) -> None:
        self._sweeps += 1
        with tried("the store of the meetings' logs could not be swept"):
            # First of all, this gateway is there.
            await self._run("sweep", "", round(LEASE_S * 1_000), _DUE_MEETINGS, patience_s=_SHORT_PATIENCE_S)
            for meeting in tuple(self._left):
                await self._leave(meeting)
            await self._check_positions()

    async def usage(self) -> LogUsage:
        reply = await self.store.commands.run("HGETALL", f"{self.store.prefix}usage", patience_s=_SHORT_PATIENCE_S)
        fields = dict(zip((field.decode() for field in reply[::2]), map(int, reply[1::2]), strict=True))
        accounts = {field[3:]: held for field, held in fields.items() if field.startswith("of:")}
        return LogUsage(fields.get("publications", 0), sum(accounts.values()), accounts)

    async def meetings(self) -> tuple[LoggedMeeting, ...]:
        found: dict[str, LoggedMeeting] = {}
        cursor = None
        while cursor != b"0":
            cursor, replies = await self._run("meetings", "", cursor or b"0", _CHECKED)
            for name, publications, held, newest_ms in replies:
                meeting = name.decode()
                found[meeting] = LoggedMeeting(meeting, int(publications), int(held), int(newest_ms) or None)
        return tuple(found.values())

    async def entitle(self, meeting: str, title: Title) -> None:
        await self._run("entitle", meeting, entries.title_text(title))

    async def erase(self, meeting: str) -> bool:
        return bool(await self._run("erase", meeting))

    async def close(self) -> None:
        self._is_closed = True
        await self._missed.close()
        with tried("this gateway could not leave the store"):
            await self._run("close", "", *{*self._topics, *self._left}, patience_s=_SHORT_PATIENCE_S)

    # ------------------------------------------------------------ scripts

    async def _append(
        self,
        script: str,
        meeting: str,
        event: Utterance | Translated | Untranslated,
        *arguments: bytes | str | int,
    ) -> Any:
        """Run a script with the event, sealed for the log's epoch; again where that is another one than known."""
        topic = self._topics.get(meeting)
        epoch = topic.epoch if topic is not None else ""
        for _ in range(_MOST_EPOCHS):
            new_epoch = secrets.token_hex(4)
            payload = entries.encode(event, self.store.seal, meeting, epoch or new_epoch)
            reply = await self._run(script, meeting, epoch or new_epoch, payload, *arguments, new_epoch=new_epoch)
            if reply[:1] != [b"epoch"]:
                return reply
            epoch = reply[1].decode()
        raise unavailable("The log of the meeting is begun again all the time.")

    async def _run(
        self,
        script: str,
        meeting: str,
        *arguments: bytes | str | int,
        patience_s: float | None = None,
        new_epoch: str = "",
    ) -> Any:
        topic = self._topics.get(meeting)
        seen = (topic.epoch, topic.newest) if topic is not None else ("", 0)
        recorded = topic.recorded if topic is not None else self._record
        begins = (self._unrecorded_ms, int(not recorded))
        new_epoch = new_epoch or secrets.token_hex(4)
        shared = (self.store.prefix, meeting, self.store.id, new_epoch, *self._bounds, *seen, *begins)
        return await self.store.run_script(script, *shared, *arguments, patience_s=patience_s)

    def _know(self, meeting: str, epoch: bytes, offset: bytes) -> None:
        if (topic := self._topics.get(meeting)) is not None:
            topic.note_newest(epoch.decode(), int(offset))

    # ------------------------------------------------------------ subscriptions

    def _channel(self, meeting: str) -> bytes:
        return self.store.channel(meeting, "push")

    async def _open_log(self, topic: Topic, patience_s: float | None = None) -> Position:
        """Tell the store what is read here. Returns the log's position."""
        reply = await self._run("open", topic.meeting, topic.account, topic.languages, patience_s=patience_s)
        return entries.position_of(reply)

    async def _reads(self, topic: Topic, subscriber: Subscriber, languages: Collection[str]) -> int:
        subscriber.languages = frozenset(languages)
        position = await self._open_log(topic)
        epoch = topic.epoch
        topic.take_position(position)
        self._note_change(topic, epoch)
        return position.last

    def _note_change(self, topic: Topic, epoch: str) -> None:
        """It was in this epoch. What is in another one already was not pushed in the order of offsets."""
        if epoch not in ("", topic.epoch):
            self._note_behind(topic)

    async def _stop_reading(self, topic: Topic, subscriber: Subscriber) -> None:
        if self._is_closed:
            return  # the store knows that nothing is read here any more
        if topic.users:
            if not subscriber.languages <= frozenset(topic.languages.split(",")):
                await self._open_log(topic, _SHORT_PATIENCE_S)
            return
        del self._topics[topic.meeting]
        self._left[topic.meeting] = None
        await self.store.pushes.unsubscribe(self._channel(topic.meeting))
        await self._leave(topic.meeting)

    async def _leave(self, meeting: str) -> None:
        if meeting not in self._topics:
            await self._run("leave", meeting, patience_s=_SHORT_PATIENCE_S)
        self._left.pop(meeting, None)

    def _pushed(self, topic: Topic, data: bytes) -> None:
        if topic.push(entries.push_of(topic.meeting, data, self.store.seal)):
            self._note_behind(topic)

    def _note_behind(self, topic: Topic) -> None:
        if topic.epoch and self._topics.get(topic.meeting) is topic:
            self._missed.note(topic.meeting, partial(self._catch_up, topic))

    async def _check_positions(self) -> None:
        """Find out which of a part of the meetings are behind. Raises `LogUnavailable`."""
        turn = self._sweeps % _CHECK_SWEEPS
        topics = [topic for topic in self._topics.values() if hash(topic.meeting) % _CHECK_SWEEPS == turn]
        if any([topic.has_dead_subscription() for topic in topics]):
            _log.warning("the store pushes nothing any more; subscribing again")
            await self.store.pushes.renew()
        for start in range(0, len(topics), _CHECKED):
            known = [
                part
                for topic in topics[start : start + _CHECKED]
                for part in (topic.meeting, topic.epoch, topic.position, topic.languages)
            ]
            others = await self._run("positions", "", *known, patience_s=_SHORT_PATIENCE_S)
            for meeting in others:
                if (topic := self._topics.get(meeting.decode())) is not None:
                    self._note_behind(topic)

    async def _catch_up(self, topic: Topic) -> None:
        """Deliver what pushes have missed. Raises `LogUnavailable`."""
        if self._topics.get(topic.meeting) is not topic:
            return
        position = await self._open_log(topic)
        if self._topics.get(topic.meeting) is not topic:
            self._left[topic.meeting] = None  # it was left meanwhile, and the store told otherwise
            return
        ahead = topic.take_position(position)
        while ahead and topic.position < position.last:
            page = await self.read(topic.meeting, topic.position, _PAGE)
            if page.epoch != topic.epoch:
                raise LogUnavailable("The log was begun again while it was read.")
            read_to = min(max(topic.position, page.first - 1) + _PAGE, page.last)
            topic.fill(page, read_to)

"""The event log in this process's memory. It ends with the process unless handed over.

Knows: what is promised in each meeting, who owns that, and which gateways are there.
Must not know: bounds (`bounded_logs`), sessions, files. Nothing here awaits, so every operation is atomic in the
event loop that owns the store.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from gateway.domain.errors import SessionReplaced, UtteranceFinished
from gateway.domain.log import (
    Accepted,
    LogBounds,
    Logged,
    LoggedMeeting,
    LogUsage,
    Owed,
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
from gateway.domain.sessions import KeptMeeting
from gateway.stores.bounded_logs import BoundedLogs

# How many trimmed segments of a meeting are still known.
_MOST_KEPT = 1_000


@dataclass(slots=True)
class _Promise:
    """One language of an utterance that is not finished."""

    # The gateway that is to conclude it.
    owner: str
    # One more than gateways have died with it.
    tries: int = 1
    # Its owner has taken it over, and not begun.
    waits: bool = False


@dataclass(slots=True)
class _Said:
    """An utterance that the log holds, or that is not finished."""

    utterance: Utterance
    offset: int
    # Language with an outcome → whether that is a translation.
    outcomes: dict[str, bool] = field(default_factory=dict)
    unfinished: dict[str, _Promise] = field(default_factory=dict)
    # Whether the log holds it.
    held: bool = True

    def says(self, utterance: Utterance) -> bool:
        """Whether that one has the same text and language."""
        return (self.utterance.text, self.utterance.lang) == (utterance.text, utterance.lang)


class _Kept(NamedTuple):
    """What is left of a segment that was trimmed and is finished, and after which another one follows."""

    offset: int
    # A digest of its text and language; no words can be made of it.
    hash: int

    def says(self, utterance: Utterance) -> bool:
        """Whether that one has the same text and language."""
        return self.hash == hash((utterance.text, utterance.lang))


@dataclass(slots=True)
class _Meeting:
    """What a meeting's log is about."""

    by_key: dict[UtteranceKey, _Said] = field(default_factory=dict)
    by_offset: dict[int, _Said] = field(default_factory=dict)
    kept: dict[UtteranceKey, _Kept] = field(default_factory=dict)
    # The offsets of those with a promise.
    unfinished: set[int] = field(default_factory=set)
    # Subscription → its gateway, what is read there.
    languages: dict[object, tuple[str, frozenset[str]]] = field(default_factory=dict)
    # Subscription → what is told that the log was erased.
    begun_again: dict[object, Callable[[], None]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.by_offset and not self.kept and not self.languages and not self.begun_again

    def newest(self, count: int) -> Iterator[_Said]:
        """The newest utterances that the log holds, newest first."""
        return islice((said for said in reversed(self.by_offset.values()) if said.held), count)

    def add(self, said: _Said) -> None:
        self.by_key[said.utterance.key] = self.by_offset[said.offset] = said

    def promise(self, said: _Said, lang: str, promise: _Promise) -> None:
        said.unfinished[lang] = promise
        self.unfinished.add(said.offset)

    def end(self, said: _Said, lang: str, *, translated: bool) -> None:
        """A translation that follows a failure counts."""
        said.outcomes[lang] = translated or said.outcomes.get(lang, False)
        said.unfinished.pop(lang, None)
        if not said.unfinished:
            self.unfinished.discard(said.offset)
            self.forget_if_over(said)

    def forget_if_over(self, said: _Said) -> None:
        if not said.held and not said.unfinished:
            del self.by_offset[said.offset]
            if self.by_key.get(said.utterance.key) is said:
                del self.by_key[said.utterance.key]
                if said.utterance.continues:
                    self._keep(said)

    def _keep(self, said: _Said) -> None:
        """Where its talk goes on at another gateway, that one asks for it from the first segment on."""
        self.kept[said.utterance.key] = _Kept(said.offset, hash((said.utterance.text, said.utterance.lang)))
        if len(self.kept) > _MOST_KEPT:
            del self.kept[min(self.kept, key=lambda key: self.kept[key].offset)]


class MemoryStore:
    """What gateways of one process share. earlier: meetings of another process, whose work nobody owns."""

    def __init__(
        self,
        bounds: LogBounds,
        *,
        account_bytes: Callable[[str], int | None] = lambda _: None,
        earlier: Iterable[KeptMeeting] = (),
        # The newest fence of a session, if there is one.
        fence_of: Callable[[bytes], int | None] = lambda _: None,
        # Unix time in seconds.
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.fence_of = fence_of
        self.wall_clock = wall_clock
        self.logs = BoundedLogs(
            bounds,
            account_bytes=account_bytes,
            wall_clock=wall_clock,
            dropped=self._dropped,
            needed=self._is_unfinished,
            ended=self._ended,
        )
        # By the meeting's key.
        self.meetings: dict[str, _Meeting] = {}
        # Gateway → until when it counts as being there.
        self.leases: dict[str, float] = {}
        # Gateways that have left by themselves; "" stands for those of an earlier process.
        self.left = {""}
        self._restore(tuple(earlier))

    def meeting(self, key: str) -> _Meeting:
        return self.meetings.setdefault(key, _Meeting())

    def is_there(self, gateway: str) -> bool:
        return self.leases.get(gateway, 0.0) > self.wall_clock()

    def sweep(self) -> None:
        self.logs.sweep()
        for key in [key for key, meeting in self.meetings.items() if meeting.is_empty]:
            del self.meetings[key]

    def stop_reading(self, key: str, subscription: object) -> None:
        """What this subscription reads is not read any more, if it ever was."""
        if (meeting := self.meetings.get(key)) is not None:
            meeting.languages.pop(subscription, None)
            meeting.begun_again.pop(subscription, None)

    def erase(self, key: str) -> bool:
        """As `EventLog.erase`."""
        meeting = self.meeting(key)
        meeting.by_key.clear()
        meeting.by_offset.clear()
        meeting.kept.clear()
        meeting.unfinished.clear()
        was_there = self.logs.erase(key)
        for begun_again in tuple(meeting.begun_again.values()):
            begun_again()
        return was_there

    def _dropped(self, key: str, publication: Publication) -> None:
        meeting = self.meetings.get(key)
        if meeting is not None and (said := meeting.by_offset.get(publication.offset)) is not None:
            said.held = False
            meeting.forget_if_over(said)

    def _ended(self, key: str) -> None:
        if (meeting := self.meetings.get(key)) is not None:
            meeting.kept.clear()

    def is_unfinished(self, key: str) -> bool | None:
        """Whether something of a transcript is not finished; None if there is none."""
        if not (page := self.logs.read(key, 0, 1)).recorded:
            return None
        return self._is_unfinished(key) or (False if page.publications else None)

    def _is_unfinished(self, key: str) -> bool:
        return key in self.meetings and bool(self.meetings[key].unfinished)

    def _restore(self, earlier: tuple[KeptMeeting, ...]) -> None:
        for kept in earlier:
            meeting = _Meeting()
            for publication in kept.publications:
                match publication.event:
                    case Said(utterance=utterance, languages=languages):
                        said = _Said(utterance, publication.offset)
                        meeting.add(said)
                        for lang in languages:
                            meeting.promise(said, lang, _Promise(""))
                    case Translated() | Untranslated() as outcome:
                        if (ended := meeting.by_offset.get(outcome.said)) is not None:
                            meeting.end(ended, outcome.lang, translated=isinstance(outcome, Translated))
            for work in kept.unfinished:
                if (said_before := meeting.by_offset.get(work.said)) is None:
                    said_before = _Said(work.utterance, work.said, held=False)
                    meeting.add(said_before)
                for lang in work.languages:
                    meeting.promise(said_before, lang, _Promise(""))
            self.meetings[kept.meeting] = meeting
        self.logs.restore(earlier)
        for key, meeting in self.meetings.items():
            for said in [said for said in meeting.by_offset.values() if not self.logs.holds(key, said.offset)]:
                said.held = False
                meeting.forget_if_over(said)
            meeting.kept.clear()  # the next process knows what it holds


class MemoryEventLog:
    """One gateway's access to a store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._gateway = secrets.token_hex(4)
        self._renew()

    async def accept(self, meeting: str, utterance: Utterance, fence: Fence | None = None) -> Accepted:
        last = self._store.logs.read(meeting, 0, 0).last  # what has expired goes before
        known = self._store.meeting(meeting)
        said = known.by_key.get(utterance.key)
        before = said or known.kept.get(utterance.key)
        has_moved = fence is not None and self._store.fence_of(fence.session) not in (None, fence.number)
        if before is not None and not before.says(utterance):
            raise UtteranceFinished(
                "This utterance is final already, with another text or language; use a new id.", field="id"
            )
        if said is not None:
            for lang in self._targets(known, utterance):
                is_done = lang in said.outcomes if has_moved else said.outcomes.get(lang)
                if lang not in said.unfinished and not is_done:
                    known.promise(said, lang, _Promise(self._gateway))
            return self._accepted(said, last, known=True)
        if before is not None:
            return Accepted(before.offset, known=True, last=last)
        if has_moved:
            raise SessionReplaced("This session goes on at another gateway.")
        languages = self._targets(known, utterance)
        publication = self._store.logs.append(meeting, Said(utterance, tuple(languages)))
        said = _Said(utterance, publication.offset)
        known.add(said)
        for lang in languages:
            known.promise(said, lang, _Promise(self._gateway))
        return self._accepted(said, publication.offset, known=False)

    def _targets(self, meeting: _Meeting, utterance: Utterance) -> list[str]:
        """The languages in which it is read, wherever that is."""
        if utterance.is_taking_back:
            return []
        there = (languages for gateway, languages in meeting.languages.values() if self._is_there(gateway))
        return sorted(frozenset().union(*there) - {utterance.lang})

    def _is_there(self, gateway: str) -> bool:
        return gateway == self._gateway or self._store.is_there(gateway)

    def _accepted(self, said: _Said, last: int, *, known: bool) -> Accepted:
        unfinished = tuple(said.unfinished)
        owned = tuple(lang for lang, promise in said.unfinished.items() if promise.owner == self._gateway)
        return Accepted(said.offset, unfinished, owned, known, last)

    async def find_utterance(self, meeting: str, key: UtteranceKey) -> Logged | None:
        known = self._store.meetings.get(meeting)
        said = known.by_key.get(key) if known is not None else None
        if said is None or not said.held:
            return None
        for publication in self._store.logs.read(meeting, said.offset - 1, 1).publications:
            if publication.offset == said.offset:
                return Logged(said.utterance, said.offset, publication.at_ms)
        return None

    async def conclude(self, meeting: str, outcome: Translated | Untranslated) -> Publication | None:
        known = self._store.meetings.get(meeting)
        said = known.by_offset.get(outcome.said) if known is not None else None
        if said is not None and said.utterance.key != (outcome.participant, outcome.utterance):
            return None  # of another log, before this one was begun
        promise = said.unfinished.get(outcome.lang) if said is not None else None
        if known is None or said is None or promise is None:
            return None
        translated = isinstance(outcome, Translated)
        if not translated and promise.owner != self._gateway:
            return None
        publication = self._store.logs.append(meeting, outcome)
        known.end(said, outcome.lang, translated=translated)
        return publication

    async def claim(self, meeting: str, wanted: Mapping[int, Collection[str]]) -> dict[int, tuple[str, ...]]:
        known = self._store.meetings.get(meeting)
        if known is None:
            return {}
        claimed = {}
        for offset, languages in wanted.items():
            if (said := known.by_offset.get(offset)) is not None:
                claimed[offset] = tuple(lang for lang in languages if self._claim(known, said, lang))
        return {offset: languages for offset, languages in claimed.items() if languages}

    def _claim(self, known: _Meeting, said: _Said, lang: str) -> bool:
        if (promise := said.unfinished.get(lang)) is not None:
            if promise.owner != self._gateway:
                return False
            promise.waits = False
            return True
        if lang in said.outcomes or lang == said.utterance.lang:
            return False
        known.promise(said, lang, _Promise(self._gateway))
        return True

    def _take_promise(self, promise: _Promise) -> bool:
        """Own what a gateway that is gone has left. False: it is there, or is this one."""
        if self._is_there(promise.owner):
            return False
        if promise.owner not in self._store.left and not promise.waits:
            promise.tries += 1
        promise.owner, promise.waits = self._gateway, True
        return True

    async def take_over(self) -> tuple[Unfinished, ...]:
        taken = []
        for key, meeting in self._store.meetings.items():
            for said in [meeting.by_offset[offset] for offset in sorted(meeting.unfinished)]:
                languages = tuple(lang for lang, promise in said.unfinished.items() if self._take_promise(promise))
                if languages:
                    taken.append(self._unfinished(key, said, languages))
        return tuple(taken)

    def _unfinished(self, key: str, said: _Said, languages: tuple[str, ...]) -> Unfinished:
        tries = max(said.unfinished[lang].tries for lang in languages)
        account = self._store.logs.account_of(key)
        return Unfinished(key, said.utterance, said.offset, languages, tries, account)

    async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
        return self._store.logs.read(meeting, after, limit)

    async def recent(self, meeting: str, utterances: int, limit: int = 200) -> Recent:
        page = self._store.logs.read(meeting, 0, 0)
        if (known := self._store.meetings.get(meeting)) is None:
            return Recent(page)
        first = min((said.offset for said in known.newest(utterances)), default=page.last + 1)
        older = [known.by_offset[offset] for offset in sorted(known.unfinished) if offset < first]
        return Recent(self._store.logs.read(meeting, first - 1, limit), tuple(map(_owed, older)))

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
        with self._store.logs.subscribe(meeting, deliver, account=account, record=record) as start:
            subscription = object()
            self._store.meeting(meeting).begun_again[subscription] = begun_again

            async def reads(languages: Collection[str]) -> int:
                self._store.meeting(meeting).languages[subscription] = (self._gateway, frozenset(languages))
                return self._store.logs.read(meeting, 0, 0).last

            try:
                yield Subscription(start, reads)
            finally:
                self._store.stop_reading(meeting, subscription)

    async def sweep(self) -> None:
        self._renew()
        self._store.sweep()

    async def usage(self) -> LogUsage:
        logs = self._store.logs
        return LogUsage(logs.publications, logs.bytes, logs.bytes_by_account())

    async def meetings(self) -> tuple[LoggedMeeting, ...]:
        return self._store.logs.meetings()

    async def entitle(self, meeting: str, title: Title) -> None:
        self._store.logs.entitle(meeting, title)

    async def erase(self, meeting: str) -> bool:
        return self._store.erase(meeting)

    def kept_meetings(self) -> tuple[KeptMeeting, ...]:
        """For the next process."""
        return tuple(self._kept(meeting) for meeting in self._store.logs.dump())

    def _kept(self, kept: KeptMeeting) -> KeptMeeting:
        if not kept.recorded:  # no more than what is in flight
            kept = replace(kept, first=kept.last + 1, publications=())
        if (meeting := self._store.meetings.get(kept.meeting)) is None or not meeting.unfinished:
            return kept
        saids = [meeting.by_offset[offset] for offset in sorted(meeting.unfinished)]
        unfinished = tuple(self._unfinished(kept.meeting, said, tuple(said.unfinished)) for said in saids)
        return replace(kept, unfinished=unfinished)

    async def start(self) -> None:
        self._renew()

    async def close(self) -> None:
        self._store.leases.pop(self._gateway, None)
        self._store.left.add(self._gateway)

    def _renew(self) -> None:
        self._store.leases[self._gateway] = self._store.wall_clock() + LEASE_S


def _owed(said: _Said) -> Owed:
    outcomes = {lang: done for lang, done in said.outcomes.items() if lang not in said.unfinished}
    return Owed(said.utterance, said.offset, tuple(sorted(said.unfinished)), outcomes)

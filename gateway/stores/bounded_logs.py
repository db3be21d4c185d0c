"""The publications of every meeting in this process's memory, bounded by count, age and bytes.

Knows: the publications of each meeting, its subscribers, and an estimate of the bytes.
Must not know: what was promised, who translates, sessions, files. It must not be used from several threads.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import assert_never

from gateway.domain.log import (
    NO_TITLE,
    LogBounds,
    LoggedEvent,
    LoggedMeeting,
    Page,
    Publication,
    Said,
    Title,
    Translated,
    Untranslated,
)
from gateway.domain.sessions import KeptMeeting
from gateway.stores.delivery import deliver_to

# Estimated bytes of a meeting that is not empty, besides its publications.
MEETING_BYTES = 1_024

# Estimated bytes of a publication, besides its texts.
_PUBLICATION_BYTES = 512
# Estimated bytes of what is remembered of an utterance and its outcomes.
_UTTERANCE_BYTES = 640
# Estimated bytes of a text, besides its characters.
_TEXT_BYTES = 80
# Bytes of a character at most, in a text of ASCII alone and in any other. The widest has four; a text that is
# not ASCII also keeps its UTF-8 form once it was encoded.
_ASCII_CHAR_BYTES = 4
_CHAR_BYTES = 8

_Rank = tuple[int, int]


def publication_bytes(publication: Publication) -> int:
    """The memory of a publication in bytes; a high estimate."""
    texts = 0
    chars_bytes = _UTTERANCE_BYTES if isinstance(publication.event, Said) else 0
    for text in _texts(publication.event):
        texts += 1
        chars_bytes += len(text) * (_ASCII_CHAR_BYTES if text.isascii() else _CHAR_BYTES)
    return _PUBLICATION_BYTES + _TEXT_BYTES * texts + chars_bytes


def _texts(event: LoggedEvent) -> Iterator[str]:
    match event:
        case Said(utterance=said, languages=languages):
            yield from (said.id, said.text, said.lang, said.participant, said.speaker, *said.context, *languages)
            for lang, terms in said.glossary:
                yield lang
                for term in terms:
                    yield from (*term, "")  # the empty text counts for the pair itself
        case Translated():
            yield from (event.participant, event.utterance, event.speaker, event.lang, event.text)
        case Untranslated():
            yield from (event.participant, event.utterance, event.speaker, event.lang, event.code, event.message)
        case _:
            assert_never(event)


class _Order:
    """Names by a rank that changes; the lowest comes first."""

    def __init__(self, rank: Callable[[str], _Rank | None]) -> None:
        # None for a name that does not count.
        self._rank = rank
        # A heap. An outdated rank stays until it reaches the top, or until there are too many of them.
        self._ranks: list[tuple[_Rank, str]] = []
        self._names: set[str] = set()

    def changed(self, name: str) -> None:
        """Its rank is another now."""
        if (rank := self._rank(name)) is None:
            self._names.discard(name)
            return
        self._names.add(name)
        heappush(self._ranks, (rank, name))
        if len(self._ranks) > 2 * len(self._names) + 64:
            self._ranks = [(rank, each) for each in self._names if (rank := self._rank(each)) is not None]
            heapify(self._ranks)

    def first(self, but: str | None = None) -> str | None:
        """The name that comes first, `but` excepted; None if there is none."""
        skipped = None
        while self._ranks:
            rank, name = self._ranks[0]
            if self._rank(name) == rank and name != but:
                break
            heappop(self._ranks)
            if name == but:
                skipped = name
        found = self._ranks[0][1] if self._ranks else None
        if skipped is not None:
            self.changed(skipped)
        return found


class _Ring:
    """One meeting's log."""

    __slots__ = (
        *("account", "bytes", "epoch", "first", "last", "meeting", "newest", "publications", "recorded"),
        *("subscribers", "title"),
    )

    def __init__(self, meeting: str, epoch: str, first: int = 1, account: str = "", *, recorded: bool) -> None:
        self.meeting = meeting
        self.epoch = epoch
        # Whether it keeps what is said.
        self.recorded = recorded
        self.title = NO_TITLE
        # Who is charged for it.
        self.account = account
        self.first = first
        self.last = first - 1
        # Number of its newest append, counted over all meetings.
        self.newest = 0
        # Estimated bytes, `MEETING_BYTES` included.
        self.bytes = 0
        # Offset → publication, from `first` to `last` without gaps. Reading and dropping need no search.
        self.publications: dict[int, Publication] = {}
        self.subscribers: dict[object, Callable[[Publication], None]] = {}

    def page(self, after: int, limit: int) -> Page:
        start = max(after + 1, self.first)
        stop = min(start + limit, self.last + 1)
        held = tuple(self.publications[offset] for offset in range(start, stop))
        return Page(self.epoch, self.first, self.last, held, self.recorded, self.title)

    def rank(self) -> _Rank:
        """Its place in the order in which an account's meetings lose publications when the log is full."""
        return (bool(self.subscribers), self.newest)


class BoundedLogs:
    """A log per meeting, bounded by count, age and bytes, and in total by bytes. Bytes are estimates.

    account_bytes: account → bytes of all its meetings; None: no bound of its own.
    wall_clock: Unix time in seconds. If it goes backwards, `at_ms` within a meeting does not.
    dropped: is told of each publication that is let go of. needed: whether a meeting is kept with nothing in it.
    ended: is told of each meeting whose log ends.

    An empty meeting without subscribers is forgotten; if it begins again, it has a new epoch.
    If a meeting exceeds its share (`LogBounds.meeting_bytes`), it loses its oldest publications, but keeps its
    newest one, however large. If the total exceeds `max_bytes`, the account that holds the most loses entries; if
    an account exceeds its own bound, it does. Of its meetings, the one whose newest append is oldest loses its
    oldest publications first, and those with subscribers come last. What was appended last is never dropped.

    Age is checked when a meeting is used, and by `sweep`, which must be called regularly.
    """

    def __init__(
        self,
        bounds: LogBounds,
        *,
        account_bytes: Callable[[str], int | None] = lambda _: None,
        wall_clock: Callable[[], float] = time.time,
        dropped: Callable[[str, Publication], None] = lambda _meeting, _publication: None,
        needed: Callable[[str], bool] = lambda _: False,
        ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._bounds = bounds
        # Whether a meeting is recorded → how long it keeps what was said.
        self._keeps_ms = {True: round(bounds.keep_s * 1_000), False: round(bounds.unrecorded_s * 1_000)}
        self._account_bytes = account_bytes
        self._wall_clock = wall_clock
        self._dropped = dropped
        self._needed = needed
        self._ended = ended
        self._rings: dict[str, _Ring] = {}
        # Account → estimated bytes of its meetings; those that hold the most come first.
        self._held: dict[str, int] = {}
        self._accounts = _Order(lambda account: (-self._held[account], 0) if account in self._held else None)
        # Account → its meetings, in the order in which they lose publications.
        self._orders: dict[str, _Order] = {}
        self._appended = 0
        self._publications = 0
        self._bytes = 0

    @property
    def publications(self) -> int:
        """How many publications all meetings hold."""
        return self._publications

    @property
    def bytes(self) -> int:
        """Estimated bytes of all meetings."""
        return self._bytes

    def bytes_by_account(self) -> Mapping[str, int]:
        """Estimated bytes of each account's meetings."""
        return self._held

    def append(self, meeting: str, event: LoggedEvent) -> Publication:
        """The next publication of a meeting, delivered to its subscribers."""
        now_ms = self._now_ms()
        ring = self._current(meeting, now_ms) or self._begin(meeting)
        ahead = ring.publications.get(ring.last)
        at_ms = now_ms if ahead is None else max(now_ms, ahead.at_ms)
        publication = Publication(ring.last + 1, at_ms, event)
        self._hold(ring, publication)
        if len(ring.publications) > self._bounds.max_publications:
            self._drop_oldest(ring)
        self._drop_beyond_share(ring)
        self._rank(ring)
        self._drop_beyond_bounds(ring)
        self._deliver(ring, publication)
        return publication

    def read(self, meeting: str, after: int, limit: int = 200) -> Page:
        """As `EventLog.read`."""
        ring = self._current(meeting, self._now_ms())
        return Page("", first=1, last=0) if ring is None else ring.page(after, limit)

    def meetings(self) -> tuple[LoggedMeeting, ...]:
        """As `EventLog.meetings`."""
        held = [(ring, ring.publications.get(ring.last)) for ring in self._rings.values()]
        return tuple(
            LoggedMeeting(ring.meeting, len(ring.publications), ring.bytes, newest.at_ms if newest else None)
            for ring, newest in held
        )

    def erase(self, meeting: str) -> bool:
        """Let go of all of it; its subscribers go on in a new epoch. Returns whether there was a log."""
        if (ring := self._rings.get(meeting)) is None:
            return False
        while ring.publications:
            self._drop_oldest(ring)
        ring.epoch, ring.first, ring.last, ring.title = secrets.token_hex(4), 1, 0, NO_TITLE
        self._forget_if_over(ring)
        return True

    def holds(self, meeting: str, offset: int) -> bool:
        return meeting in self._rings and offset in self._rings[meeting].publications

    def account_of(self, meeting: str) -> str:
        """Who is charged for a meeting's log."""
        return self._rings[meeting].account if meeting in self._rings else ""

    @contextmanager
    def subscribe(
        self,
        meeting: str,
        deliver: Callable[[Publication], None],
        *,
        account: str = "",
        record: bool | None = None,
    ) -> Iterator[Page]:
        """As `EventLog.subscribe`; yields the position at which delivery begins."""
        ring = self._current(meeting, self._now_ms()) or self._begin(meeting, account, record)
        subscription = object()
        ring.subscribers[subscription] = deliver
        self._rank(ring)
        try:
            yield ring.page(ring.last, 0)
        finally:
            del ring.subscribers[subscription]
            self._rank(ring)
            self._forget_if_over(ring)

    def sweep(self) -> int:
        """Drop all expired publications. Returns how many there were."""
        now_ms = self._now_ms()
        before = self._publications
        for ring in tuple(self._rings.values()):
            self._expire(ring, now_ms)
            self._forget_if_over(ring)
        return before - self._publications

    def entitle(self, meeting: str, title: Title) -> None:
        """As `EventLog.entitle`."""
        if (ring := self._current(meeting, self._now_ms())) is not None:
            ring.title = title

    def dump(self) -> tuple[KeptMeeting, ...]:
        """All meetings, for `restore` in the next process; also empty ones, of which only the position is left."""
        return tuple(
            KeptMeeting(
                ring.meeting,
                ring.epoch,
                ring.first,
                ring.last,
                tuple(ring.publications.values()),
                account=ring.account,
                recorded=ring.recorded,
                title=ring.title,
            )
            for ring in self._rings.values()
        )

    def restore(self, meetings: Iterable[KeptMeeting]) -> None:
        """Restore the meetings of a dump with their epochs and offsets, within the bounds of this log.

        An empty meeting stays until the next `sweep`, so that its sessions can subscribe again.
        Raises `RuntimeError` unless this log is empty.
        """
        if self._rings:
            raise RuntimeError("a log can be restored only before it is used")
        now_ms, ring = self._now_ms(), None
        for kept in sorted(meetings, key=lambda kept: kept.publications[-1].at_ms if kept.publications else 0):
            horizon_ms = now_ms - self._keeps_ms[kept.recorded]
            first = max(kept.first, kept.last + 1 - self._bounds.max_publications)
            while first <= kept.last and kept.publications[first - kept.first].at_ms < horizon_ms:
                first += 1
            ring = _Ring(kept.meeting, kept.epoch, first, kept.account, recorded=kept.recorded)
            ring.title = kept.title
            self._rings[kept.meeting] = ring
            for publication in kept.publications[first - kept.first :]:
                self._hold(ring, publication)
            self._drop_beyond_share(ring)
            self._rank(ring)
        for last_of_account in {ring.account: ring for ring in self._rings.values()}.values():
            self._drop_beyond_bounds(last_of_account)

    def _now_ms(self) -> int:
        return int(self._wall_clock() * 1_000)

    def _begin(self, meeting: str, account: str = "", record: bool | None = None) -> _Ring:
        recorded = self._bounds.record if record is None else record
        ring = _Ring(meeting, epoch=secrets.token_hex(4), account=account, recorded=recorded)
        return self._rings.setdefault(meeting, ring)

    def _current(self, meeting: str, now_ms: int) -> _Ring | None:
        """The meeting's log without expired publications. None if there is no log, or nothing is left of it."""
        if (ring := self._rings.get(meeting)) is not None and self._expire(ring, now_ms):
            self._forget_if_over(ring)
        return self._rings.get(meeting)

    def _expire(self, ring: _Ring, now_ms: int) -> bool:
        """Drop the meeting's expired publications. Returns whether there were any."""
        first, horizon_ms = ring.first, now_ms - self._keeps_ms[ring.recorded]
        while ring.publications and ring.publications[ring.first].at_ms < horizon_ms:
            self._drop_oldest(ring)
        return ring.first > first

    def _forget_if_over(self, ring: _Ring) -> None:
        if not ring.publications and not ring.subscribers and not self._needed(ring.meeting):
            del self._rings[ring.meeting]
            if (order := self._orders.get(ring.account)) is not None:
                order.changed(ring.meeting)
            self._ended(ring.meeting)

    def _hold(self, ring: _Ring, publication: Publication) -> None:
        taken = publication_bytes(publication) + (0 if ring.publications else MEETING_BYTES)
        ring.publications[publication.offset] = publication
        ring.last = publication.offset
        self._appended += 1
        ring.newest = self._appended
        self._publications += 1
        self._charge(ring, taken)

    def _drop_oldest(self, ring: _Ring) -> None:
        publication = ring.publications.pop(ring.first)
        ring.first += 1
        self._publications -= 1
        freed = publication_bytes(publication) + (0 if ring.publications else MEETING_BYTES)
        self._charge(ring, -freed)
        self._dropped(ring.meeting, publication)

    def _charge(self, ring: _Ring, size: int) -> None:
        ring.bytes += size
        self._bytes += size
        held = self._held.get(ring.account, 0) + size
        if held:
            self._held[ring.account] = held
        else:
            del self._held[ring.account]
            self._orders.pop(ring.account, None)
        self._accounts.changed(ring.account)

    def _rank(self, ring: _Ring) -> None:
        """The meeting's place in the order of its account's is another now."""
        if ring.account in self._held:
            self._orders.setdefault(ring.account, _Order(self._rank_of)).changed(ring.meeting)

    def _rank_of(self, meeting: str) -> _Rank | None:
        ring = self._rings.get(meeting)
        return ring.rank() if ring is not None and ring.publications else None

    def _drop_beyond_share(self, ring: _Ring) -> None:
        """Drop the meeting's oldest publications until it is within its share; keep its newest one."""
        while ring.bytes > self._bounds.meeting_bytes and len(ring.publications) > 1:
            self._drop_oldest(ring)

    def _drop_beyond_bounds(self, newest: _Ring) -> None:
        """Drop publications until all is within bounds, but not the newest one, which is in `newest`."""
        most = self._account_bytes(newest.account)
        while most is not None and self._held.get(newest.account, 0) > most:
            if not self._drop_one(newest.account, newest):
                break
        while self._bytes > self._bounds.max_bytes:
            # An account may hold nothing else than the newest publication.
            alone = len(newest.publications) == 1 and newest.bytes == self._held.get(newest.account, 0)
            account = self._accounts.first(but=newest.account if alone else None)
            if account is None or not self._drop_one(account, newest):
                return

    def _drop_one(self, account: str, newest: _Ring) -> bool:
        """Drop a publication of an account, but not the only one of `newest`. Returns whether there was one."""
        meeting = self._orders[account].first(but=newest.meeting if len(newest.publications) == 1 else None)
        if meeting is None:
            return False
        ring = self._rings[meeting]
        self._drop_oldest(ring)
        self._forget_if_over(ring)
        return True

    def _deliver(self, ring: _Ring, publication: Publication) -> None:
        for subscription, deliver in tuple(ring.subscribers.items()):
            if subscription in ring.subscribers:  # unless an earlier delivery of this loop has ended it
                deliver_to(deliver, publication)

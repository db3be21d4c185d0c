"""The publications of one meeting for this gateway's subscribers: each once, in the order of offsets.

They come by pushes, and by reading where a push is missing; in whichever order that happens.

Knows: positions, what was delivered to whom. Must not know: connections, scripts, tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gateway.domain.log import Page, Publication
from gateway.stores.delivery import deliver_to
from gateway.stores.redis.entries import Position, Push

# Pushes that wait for an earlier one; more are read again instead.
_MOST_WAITING = 1_000


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
        self.agree(position)
        subscriber.after = max(self.position, position.last)
        self._subscribers[subscriber] = None
        return Page(position.epoch, position.first, subscriber.after, recorded=position.recorded)

    def remove(self, subscriber: Subscriber) -> None:
        self._subscribers.pop(subscriber, None)

    def agree(self, position: Position) -> bool:
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

    def know(self, epoch: str, offset: int) -> None:
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

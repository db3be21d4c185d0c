"""What a client has to get through to the gateway: finals and updates until they are answered, in order.

Knows: which message is next, and what its answer means. Must not know: sockets, tasks, clocks (the time is an
argument).

An entry is `waiting` (to be sent), `sent` (unanswered on this connection), or gone: accepted, taken, or refused
for good. The oldest waiting entry is the next to be sent. If it was refused for the moment and has to wait, all
behind it wait as well: so entries reach the gateway in the order in which they were given, except for what was
under way already when an earlier one was refused. A lost connection makes every sent entry waiting again.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.errors import Draining, RateLimited, UnsupportedOption
from gateway.protocol.messages import Error, SessionEnd, SessionStart, SessionUpdate, UtteranceFinal

__all__ = ["Entry", "Outgoing"]

# Before an entry is sent again, where the gateway does not say how long to wait.
_RETRY_MS = 500

# Utterances without a final whose revision is remembered.
_REVISIONS = 1_000

_OPTIONS = ("reads", "speaks", "stability", "glossary", "context", "formality", "originals")


class Entry(Struct, eq=False):
    """One message on its way. not_before_s: when it may be sent; sent: whether an answer may come."""

    message: UtteranceFinal | SessionUpdate
    not_before_s: float = 0.0
    sent: bool = False


class Outgoing:
    """The messages to get through.

    start: how to start a session now, with every update that the gateway has taken.
    window: finals that may be unanswered at once. capacity: finals and updates that are kept.
    """

    def __init__(self, start: SessionStart, window: int, capacity: int) -> None:
        self.start = start
        self.window = window
        self._capacity = capacity
        self._entries: list[Entry] = []
        self._revisions: OrderedDict[str, int] = OrderedDict()
        self._draining = False
        self._ending = False
        self._end_sent = False
        self._end_not_before_s = 0.0

    @property
    def finals(self) -> tuple[UtteranceFinal, ...]:
        """The finals that are neither accepted nor refused for good, oldest first."""
        return tuple(each.message for each in self._entries if isinstance(each.message, UtteranceFinal))

    @property
    def idle(self) -> bool:
        """Whether there is nothing to get through."""
        return not self._entries and not self._ending

    @property
    def full(self) -> bool:
        """Whether as much is kept as may be."""
        return len(self._entries) >= self._capacity

    def next_revision(self, id: str) -> int:
        """The revision of the next partial or final of an utterance, unless the caller knows better."""
        return self._revisions.get(id, 0) + 1

    def revised(self, id: str, rev: int) -> None:
        """A partial or final with this revision is given to the gateway."""
        self._revisions[id] = rev
        self._revisions.move_to_end(id)
        if len(self._revisions) > _REVISIONS:
            self._revisions.popitem(last=False)

    # ------------------------------------------------------------ from the caller

    def keep(self, message: UtteranceFinal | SessionUpdate) -> None:
        """A message to get through."""
        self._entries.append(Entry(message))
        if isinstance(message, UtteranceFinal):
            self.revised(message.id, message.rev)

    def keeps(self, final: UtteranceFinal) -> bool:
        """Whether the same is on its way already, at whichever revision."""
        return any(final == replace(each, rev=final.rev) for each in self.finals)

    def withdraw(self, id: str, *, unanswered: bool = False) -> bool:
        """Forget the finals of an utterance that wait to be sent; with `unanswered` those that were sent, too."""
        kept = [each for each in self._entries if _final_of(each) != id or (each.sent and not unanswered)]
        withdrawn = len(kept) < len(self._entries)
        self._entries = kept
        return withdrawn

    def end(self) -> None:
        """Nothing follows: `session.end` is sent once every final is answered."""
        self._ending = True

    # ------------------------------------------------------------ to the socket

    def take(self, now_s: float) -> Entry | SessionEnd | None:
        """The next message to send, from now on counted as sent; null where there is none or it has to wait."""
        entry = self._oldest_waiting()
        if entry is None:
            if not self._may_end() or now_s < self._end_not_before_s:
                return None
            self._end_sent = True
            return SessionEnd()
        if not self._may_send(entry) or now_s < entry.not_before_s:
            return None
        entry.sent = True
        return entry

    def due_s(self) -> float | None:
        """When `take` has something, if nothing else happens; null where nothing is to be waited for."""
        entry = self._oldest_waiting()
        if entry is None:
            return self._end_not_before_s if self._may_end() else None
        return entry.not_before_s if self._may_send(entry) else None

    def put_back(self, taken: Entry | SessionEnd) -> None:
        """What was taken may not have been sent: it is sent again, which does no harm."""
        if isinstance(taken, Entry):
            taken.sent = False
        else:
            self._end_sent = False

    def _oldest_waiting(self) -> Entry | None:
        return next((each for each in self._entries if not each.sent), None)

    def _may_send(self, entry: Entry) -> bool:
        if not isinstance(entry.message, UtteranceFinal):
            return True
        under_way = sum(each.sent for each in self._entries if isinstance(each.message, UtteranceFinal))
        return not self._draining and under_way < self.window

    def _may_end(self) -> bool:
        return self._ending and not self._end_sent and not self.finals

    # ------------------------------------------------------------ from the gateway

    def accepted(self, id: str) -> None:
        """A final is the gateway's duty now."""
        if (entry := self._sent_final(id)) is not None:
            self._forget(entry)

    def updated(self) -> None:
        """The oldest update was taken."""
        if (entry := self._sent_update()) is not None:
            assert isinstance(entry.message, SessionUpdate)  # noqa: S101 -- that is what was looked for
            changes = {name: value for name in _OPTIONS if (value := getattr(entry.message, name)) is not None}
            self.start = replace(self.start, **changes)
            self._entries.remove(entry)

    def refused(self, error: Error, now_s: float) -> None:
        """An error came; what it is about is sent again where that makes sense, else forgotten."""
        if error.utterance is not None:
            entry = self._sent_final(error.utterance)
        elif error.retryable:
            # Errors do not tell which message of no utterance they are about; to send one twice does no harm.
            entry = self._sent_update()
            if error.code == RateLimited.code and self._end_sent:
                self._end_sent = False
                self._end_not_before_s = _again_s(error, now_s)
        elif error.code != UnsupportedOption.code and (error.field or "").startswith(_OPTIONS):
            entry = self._sent_update()
        else:
            entry = None
        if error.code == Draining.code:
            self._draining = True
        if entry is None:
            return
        if error.retryable:
            entry.sent = False
            entry.not_before_s = _again_s(error, now_s)
        else:
            self._forget(entry)

    def draining(self) -> None:
        """The gateway takes no more finals on this connection."""
        self._draining = True

    def lost(self) -> None:
        """The connection is gone: every answer that was not received is unknown."""
        for entry in self._entries:
            entry.sent = False
            entry.not_before_s = 0.0
        self._draining = False
        self._end_sent = False
        self._end_not_before_s = 0.0

    def _sent_final(self, id: str) -> Entry | None:
        return next((each for each in self._entries if each.sent and _final_of(each) == id), None)

    def _sent_update(self) -> Entry | None:
        return next((each for each in self._entries if each.sent and _final_of(each) is None), None)

    def _forget(self, entry: Entry) -> None:
        self._entries.remove(entry)
        if (id := _final_of(entry)) is not None:
            self._revisions.pop(id, None)


def _final_of(entry: Entry) -> str | None:
    return entry.message.id if isinstance(entry.message, UtteranceFinal) else None


def _again_s(error: Error, now_s: float) -> float:
    return now_s + (_RETRY_MS if error.retry_after_ms is None else error.retry_after_ms) / 1000

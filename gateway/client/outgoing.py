"""The client's queue of finals and updates, kept in order until they are answered.

Knows: which message is next, and what an answer means.
Must not know: sockets, tasks, clocks (the time is an argument).

An entry is waiting (not sent on this connection) or sent (not answered yet). It is removed once it is accepted or
refused for good. The oldest waiting entry is sent next. If the gateway refuses an entry for the moment, the entry
waits, and all waiting entries behind it wait too. So entries reach the gateway in order, except those that were
already sent when an earlier one was refused. When the connection is lost, every sent entry waits again.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.errors import Draining, InvalidMessage, MessageTooLarge, RateLimited, UnsupportedOption
from gateway.protocol.messages import (
    Error,
    SessionEnd,
    SessionStart,
    SessionUpdate,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)

# Wait before an entry is sent again if the gateway does not say how long to wait.
_RETRY_MS = 500

# How many unfinished utterances have their revision remembered.
_REVISIONS = 1_000

# Errors about a frame that may not name what was in it.
_UNREADABLE = (InvalidMessage.code, MessageTooLarge.code)

_OPTIONS = ("reads", "speaks", "stability", "glossary", "context", "formality", "originals")


class Entry(Struct, eq=False):
    """One message in the queue."""

    message: UtteranceFinal | SessionUpdate | UtteranceCancel
    # It must not be sent before this time.
    not_before_s: float = 0.0
    # Whether it was sent on this connection, so that an answer may come.
    sent: bool = False
    # Whether the gateway may have been unable to read it.
    is_suspect: bool = False


class Outgoing:
    """The queue. capacity: finals and updates that it holds."""

    def __init__(self, start: SessionStart, window: int, capacity: int) -> None:
        # How to start a session now: the first start with every accepted update applied.
        self.start = start
        # Finals that may be unanswered at once.
        self.window = window
        self._capacity = capacity
        self._entries: list[Entry] = []
        self._revisions: OrderedDict[str, int] = OrderedDict()
        # Utterance → text and language of the newest partial; None: it may not have arrived.
        self._shown: dict[str, tuple[str, str | None] | None] = {}
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
        """Whether there is nothing to send."""
        return not self._entries and not self._ending

    @property
    def full(self) -> bool:
        """Whether the queue holds as much as it may."""
        return len(self._entries) >= self._capacity

    def next_revision(self, id: str) -> int:
        """The default revision of the next partial or final of an utterance."""
        return self._revisions.get(id, 0) + 1

    def note_revision(self, id: str, rev: int) -> None:
        """Note the revision of a partial or final that is sent or queued."""
        self._revisions[id] = rev
        self._revisions.move_to_end(id)
        if len(self._revisions) > _REVISIONS:
            oldest, _ = self._revisions.popitem(last=False)
            self._shown.pop(oldest, None)

    def is_news(self, partial: UtterancePartial) -> bool:
        """Note a partial that is sent, unless the last one of its utterance said the same."""
        said = partial.text, partial.lang
        if self._shown.get(partial.id) == said:
            return False
        self._shown[partial.id] = said
        return True

    def is_begun(self, id: str) -> bool:
        """Whether a partial of it was sent, and no final."""
        return id in self._shown and all(final.id != id for final in self.finals)

    def give_up_utterance(self, id: str) -> bool:
        """It will not be final. Returns whether a partial of it was sent."""
        was_shown = id in self._shown
        self._shown.pop(id, None)
        return was_shown

    # ------------------------------------------------------------ from the caller

    def queue_message(self, message: UtteranceFinal | SessionUpdate) -> None:
        """Queue a message."""
        self._entries.append(Entry(message))
        if isinstance(message, UtteranceFinal):
            self.note_revision(message.id, message.rev)

    def queue_cancel(self, id: str) -> None:
        """Queue a cancel, if there is room."""
        if not self.full:
            self._entries.append(Entry(UtteranceCancel(id)))

    def holds_final(self, final: UtteranceFinal) -> bool:
        """Whether the same final, at any revision, is queued already."""
        return any(final == replace(each, rev=final.rev) for each in self.finals)

    def withdraw(self, id: str, *, unanswered: bool = False) -> bool:
        """Remove an utterance's waiting finals; with `unanswered` also its sent ones. Returns whether any were."""
        kept = [each for each in self._entries if _final_of(each) != id or (each.sent and not unanswered)]
        withdrawn = len(kept) < len(self._entries)
        self._entries = kept
        return withdrawn

    def start_over(self) -> None:
        """There is another session, in which nothing was shown and nothing can be cancelled."""
        self._entries = [each for each in self._entries if not isinstance(each.message, UtteranceCancel)]
        self._shown.clear()

    def end(self) -> None:
        """Queue `session.end`, which is sent once every final is answered."""
        self._ending = True

    # ------------------------------------------------------------ to the socket

    def next_message(self, now_s: float) -> Entry | SessionEnd | None:
        """The next message to send, marked as sent. None if there is none or it has to wait."""
        entry = self._oldest_waiting()
        if entry is None:
            if not self._may_end() or now_s < self._end_not_before_s:
                return None
            self._end_sent = True
            return SessionEnd()
        if not self._may_send(entry) or now_s < entry.not_before_s:
            return None
        entry.sent = True
        if isinstance(entry.message, UtteranceCancel):
            self._entries.remove(entry)  # its answer does not matter
        return entry

    def due_s(self) -> float | None:
        """When `next_message` will next return a message if nothing else happens. None if that is not known."""
        entry = self._oldest_waiting()
        if entry is None:
            return self._end_not_before_s if self._may_end() else None
        return entry.not_before_s if self._may_send(entry) else None

    def put_back(self, taken: Entry | SessionEnd) -> None:
        """Mark a taken message as waiting again. It may have been sent; sending it twice does no harm."""
        if isinstance(taken, Entry):
            taken.sent = False
            if taken not in self._entries:
                self._entries.insert(0, taken)
        else:
            self._end_sent = False

    def _oldest_waiting(self) -> Entry | None:
        return next((each for each in self._entries if not each.sent), None)

    def _may_send(self, entry: Entry) -> bool:
        if not isinstance(entry.message, UtteranceFinal):
            return True
        under_way = [each for each in self._entries if each.sent and _final_of(each) is not None]
        # One at a time, until it is known which of them cannot be read.
        window = 1 if any(each.is_suspect for each in self._entries) else self.window
        return not self._draining and len(under_way) < window

    def _may_end(self) -> bool:
        return self._ending and not self._end_sent and not self.finals

    # ------------------------------------------------------------ from the gateway

    def accepted(self, id: str) -> None:
        """The gateway accepted a final."""
        if (entry := self._sent_final(id)) is not None:
            self._forget(entry)

    def updated(self) -> None:
        """The gateway accepted the oldest update."""
        if (entry := self._sent_update()) is not None:
            assert isinstance(entry.message, SessionUpdate)  # noqa: S101 -- not a final, so an update
            changes = {name: value for name in _OPTIONS if (value := getattr(entry.message, name)) is not None}
            self.start = replace(self.start, **changes)
            self._entries.remove(entry)

    def refused(self, error: Error, now_s: float) -> Error:
        """The gateway sent an error: send its message again if the error is retryable, else remove it.

        Returns the error, with its utterance where only this client can know it.
        """
        if error.utterance is not None:
            if (entry := self._sent_final(error.utterance)) is None:
                self._forget_shown(error.utterance)  # a refused partial may come again
        elif error.retryable:
            # An error without an utterance does not name its message. Sending an update twice does no harm.
            entry = self._sent_update()
            if error.code == RateLimited.code and self._end_sent:
                self._end_sent = False
                self._end_not_before_s = _again_s(error, now_s)
        elif error.code != UnsupportedOption.code and (error.field or "").startswith(_OPTIONS):
            entry = self._sent_update()
        elif error.code in _UNREADABLE and error.field is None:
            entry = self._unreadable()
            error = error if entry is None else replace(error, utterance=_final_of(entry))
        else:
            entry = None
        if error.code == Draining.code:
            self._draining = True
        if entry is None:
            return error
        if error.retryable:
            entry.sent = False
            entry.not_before_s = _again_s(error, now_s)
        else:
            self._forget(entry)
        return error

    def _unreadable(self) -> Entry | None:
        """What the gateway could not read, if that is certain. If not, all that are out are tried one by one."""
        finals = [each for each in self._entries if each.sent and _final_of(each) is not None]
        if len(finals) == 1 and finals[0].is_suspect:
            return finals[0]
        for each in finals:
            each.sent, each.is_suspect = False, True
        return None

    def draining(self) -> None:
        """The gateway accepts no more finals on this connection."""
        self._draining = True

    def connection_lost(self) -> None:
        """The connection was lost: every unanswered message waits again, and what is shown may be shown again."""
        self._shown = dict.fromkeys(self._shown)
        for entry in self._entries:
            entry.sent = False
            entry.not_before_s = 0.0
        self._draining = False
        self._end_sent = False
        self._end_not_before_s = 0.0

    def _forget_shown(self, id: str) -> None:
        if id in self._shown:
            self._shown[id] = None

    def _sent_final(self, id: str) -> Entry | None:
        return next((each for each in self._entries if each.sent and _final_of(each) == id), None)

    def _sent_update(self) -> Entry | None:
        return next((each for each in self._entries if each.sent and _final_of(each) is None), None)

    def _forget(self, entry: Entry) -> None:
        self._entries.remove(entry)
        if (id := _final_of(entry)) is not None:
            self._revisions.pop(id, None)
            self._shown.pop(id, None)


def _final_of(entry: Entry) -> str | None:
    return entry.message.id if isinstance(entry.message, UtteranceFinal) else None


def _again_s(error: Error, now_s: float) -> float:
    return now_s + (_RETRY_MS if error.retry_after_ms is None else error.retry_after_ms) / 1000

"""What one reader gets of its meeting: first what it missed, then what happens, without gap or duplicate.

Knows: one reader's outbox and its seam. Must not know: who the reader is, what the log is, sockets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gateway.domain.errors import SlowReader
from gateway.domain.log import Page, Publication, Said
from gateway.meeting.outbox import Outbox, Payload
from gateway.protocol.from_domain import accepted_message, publication_message, replaced_message

# What is held back is passed on in one go, whether there is room for it or not; more is read from the log.
_MOST_HELD = 16


class Feed:
    """One connection's stream."""

    def __init__(
        self,
        outbox: Outbox,
        # Offset behind which the stream begins.
        after: int,
        *,
        # Whose own utterances are acknowledged.
        participant: str,
        # Whether this reader gets a publication.
        wants: Callable[[Publication], bool],
        # Whether it has seen nothing of the log yet: what is gone from its beginning by then, it does not miss.
        newcomer: bool = False,
    ) -> None:
        self.outbox = outbox
        # Offset up to which everything is in the outbox, while not live.
        self.passed = after
        self._seam = Seam(after, newcomer=newcomer)
        self._participant = participant
        self._wants = wants

    @property
    def live(self) -> bool:
        """Whether everything missed was passed on; before that, nothing live is."""
        return self._seam.live

    @property
    def position(self) -> int:
        """The offset behind which the log is to be read next."""
        return self._seam.position

    def publish(self, publication: Publication, payload: Payload) -> None:
        """A publication has just been made; `payload` is its message, shared with the other readers."""
        for due in self._seam.publish(publication):
            self._pass(due, payload)

    async def replay(self, page: Page) -> None:
        """The log was read behind `position`; waits while the outbox has no room.

        Raises `SlowReader` when what comes next is not in the log any more.
        """
        for publication in self._seam.replay(page):
            self._pass(publication, None, page.first)
            if not self.live:  # else what is published next would overtake the rest
                await self.outbox.room()
        if self._seam.trimmed:
            raise SlowReader("The log was trimmed faster than this client reads; reconnect.", retry_after_ms=0)

    def show(self, payload: Payload) -> None:
        """What is not in the log, and is sent whole once the feed is live: deltas and partial captions."""
        if self._seam.live:
            self.outbox.put_shared(payload)

    def send_now(self, payload: Payload) -> None:
        """What has no place in the order of the log."""
        self.outbox.put_shared(payload)

    def _pass(self, publication: Publication, payload: Payload | None, first: int = 1) -> None:
        """first: offset of the oldest that the log holds, as far as that matters."""
        self.passed = publication.offset
        wants, event = self._wants(publication), publication.event
        if isinstance(event, Said):
            said, delivery = event.utterance, None if payload is None else payload.delivery
            if said.sent_by == self._participant and not said.continues:
                self._put(Payload(accepted_message(said, publication.offset), delivery))
            if said.replaces:  # also to a reader who has only translations
                self._put(Payload(replaced_message(said, first), delivery))
        if wants:
            self._put(payload or Payload(publication_message(publication)))

    def _put(self, payload: Payload) -> None:
        if payload.delivery is not None:
            payload.delivery.queued()
        self.outbox.put_shared(payload)


# What every live feed has; a deque of its own would take 0.7 KiB even while it is empty.
_NOTHING_HELD: deque[Publication] = deque(maxlen=0)


class Seam:
    """Between what a reader missed and what happens now: each publication once, in order, none left out.

    A reader that joins is subscribed first and reads the log afterwards. What is published while it reads is held
    back; once a page of the log has nothing new, what was held follows, and the reader is live.
    """

    def __init__(self, after: int, *, newcomer: bool = False, most_held: int = _MOST_HELD) -> None:
        self._newcomer = newcomer
        # The offset up to which everything was passed on.
        self.position = after
        # Nothing is held back any more.
        self.live = False
        # The log dropped publications behind `position` before they were read: the reader has to start over.
        self.trimmed = False
        # The oldest are dropped when it is full: the log has them.
        self._held: deque[Publication] = deque(maxlen=most_held)

    def publish(self, publication: Publication) -> list[Publication]:
        """A publication has just been made; what to pass on now."""
        if not self.live:
            self._held.append(publication)
            return []
        if publication.offset <= self.position:
            return []
        self.position = publication.offset
        return [publication]

    def replay(self, page: Page) -> list[Publication]:
        """The log was read behind `position`; what to pass on now. Go on reading while not `live`."""
        if self.live:
            return []
        if page.first > self.position + 1:
            self.trimmed = not self._newcomer
            if self.trimmed:
                return []
            self.position = page.first - 1
        self._newcomer = False
        fresh = [publication for publication in page.publications if publication.offset > self.position]
        if not fresh:
            fresh = self._close()
        if fresh:
            self.position = fresh[-1].offset
        return fresh

    def _close(self) -> list[Publication]:
        """Go live, unless so much was published meanwhile that the log has to be read once more."""
        fresh = [publication for publication in self._held if publication.offset > self.position]
        if fresh and fresh[0].offset != self.position + 1:
            return []
        self._held = _NOTHING_HELD
        self.live = True
        return fresh

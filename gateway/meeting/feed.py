"""What one reader gets of its meeting: first what it missed, then what happens, without gap or duplicate.

Knows: one reader's outbox and its seam. Must not know: who the reader is, what the log is, sockets.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.domain.errors import SlowReader
from gateway.domain.log import Page, Publication, Said
from gateway.meeting.outbox import Outbox
from gateway.meeting.payload import Payload
from gateway.meeting.replay import Seam
from gateway.protocol.from_domain import publication_message
from gateway.protocol.messages import UtteranceAccepted

__all__ = ["Feed"]


class Feed:
    """One connection's stream. passed: the offset up to which everything is in the outbox, while not live.

    wants: whether a publication is this reader's business. participant: whose own utterances are acknowledged.
    """

    def __init__(
        self, outbox: Outbox, after: int, *, participant: str, wants: Callable[[Publication], bool]
    ) -> None:
        self.outbox = outbox
        self.passed = after
        self._seam = Seam(after)
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
            self._pass(publication, None)
            if not self.live:  # else what is published next would overtake the rest
                await self.outbox.room()
        if self._seam.trimmed:
            raise SlowReader("The log was trimmed faster than this client reads; reconnect.", retry_after_ms=0)

    def show(self, payload: Payload) -> None:
        """What is not in the log, and is sent whole once the feed is live: deltas and partial captions."""
        if self._seam.live:
            self.outbox.put_shared(payload)

    def tell(self, payload: Payload) -> None:
        """What has no place in the order of the log."""
        self.outbox.put_shared(payload)

    def _pass(self, publication: Publication, payload: Payload | None) -> None:
        self.passed = publication.offset
        if not self._wants(publication):
            return
        event = publication.event
        if isinstance(event, Said) and event.utterance.participant == self._participant:
            said = event.utterance
            self.outbox.put(UtteranceAccepted(said.id, said.rev, publication.offset))
        self.outbox.put_shared(payload or Payload(publication_message(publication)))

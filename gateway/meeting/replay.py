"""The seam between what a reader missed and what happens now: each publication once, in order, none left out.

Knows: offsets. Must not know: where publications come from, who reads them.

A reader that joins is subscribed first and reads the log afterwards. What is published while it reads is held
back; once a page of the log has nothing new, what was held follows, and the reader is live.
"""

from __future__ import annotations

from collections import deque

from gateway.domain.log import Page, Publication

__all__ = ["Seam"]

# What is held back is passed on in one go, whether there is room for it or not; more is read from the log.
_MOST_HELD = 16


class Seam:
    """`position`: the offset up to which everything was passed on. `live`: nothing is held back any more.

    trimmed: publications behind `position` were dropped from the log before they were read; they are lost for
    this reader, who has to begin anew.
    """

    def __init__(self, after: int, *, most_held: int = _MOST_HELD) -> None:
        self.position = after
        self.live = False
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
            self.trimmed = True
            return []
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
        self._held.clear()
        self.live = True
        return fresh
